#include "engine/methods/model_session.hpp"

#include <utility>

#include "core/log/over_limit.hpp"
#include "rpc/error_codes.hpp"

namespace sluice {
namespace {

/// About how much memory a message takes besides its text.
constexpr std::size_t kAroundMessage = 256;

std::unexpected<Error> too_long(std::string_view what, std::size_t most) {
  return fail(kInvalidParams, "Invalid params: " + std::string(what) + " must be at most " +
                                  std::to_string(most) + " bytes long");
}

}  // namespace

ModelSession::Turn::~Turn() {
  const std::lock_guard lock(session_->mutex_);
  session_->has_turn_ = false;
}

void ModelSession::Turn::append(const Delta& delta) {
  if (delta.kind != Delta::Kind::text && delta.kind != Delta::Kind::tool_call) return;
  bytes_ += delta.text.size();
  is_too_long_ = is_too_long_ || bytes_ > kMaxHistory;
  if (is_too_long_) return;
  if (delta.kind == Delta::Kind::text) {
    answer_.content.append(delta.text);
    return;
  }
  const Result<json::value> call = parse_json(delta.text);
  if (!call || !call->is_object()) return;
  const json::object& made = call->get_object();
  const json::value* const name = made.if_contains("name");
  const json::value* const arguments = made.if_contains("arguments");
  if (name == nullptr || !name->is_string()) return;
  answer_.tool_calls.push_back({.name = std::string(name->get_string()),
                                .arguments = arguments == nullptr ? "{}" : to_json(*arguments)});
}

void ModelSession::Turn::end(const Completion& completion) {
  if (is_too_long_ || completion.error || completion.reason == Completion::Reason::cancelled) {
    return;
  }
  session_->keep(std::move(said_), std::move(answer_),
                 completion.usage.prompt_tokens + completion.usage.completion_tokens);
}

Result<void> ModelSession::hold(std::size_t bytes, std::size_t before) {
  if (!memory_.add(bytes)) {
    return over_limit(
        "Your streams, calls and sessions have used all the memory that one client may have; end "
        "some, or raise streams.max_total_bytes");
  }
  memory_.remove(before);
  return {};
}

Result<void> ModelSession::set_chat_template(std::string system, std::string prefix,
                                             std::string postfix) {
  const std::size_t bytes = system.size() + prefix.size() + postfix.size();
  if (bytes > kMaxTemplate) return too_long("the texts of a chat template together", kMaxTemplate);
  const std::lock_guard lock(mutex_);
  const std::size_t before =
      template_ ? template_->system.size() + template_->prefix.size() + template_->postfix.size()
                : 0;
  if (Result<void> held = hold(bytes, before); !held) return held;
  template_ = {
      .system = std::move(system), .prefix = std::move(prefix), .postfix = std::move(postfix)};
  return {};
}

Result<void> ModelSession::set_function_tools(std::string system, std::string tools) {
  const std::size_t bytes = system.size() + tools.size();
  if (bytes > kMaxTools) return too_long("system_prompt and tools together", kMaxTools);
  const std::lock_guard lock(mutex_);
  if (Result<void> held = hold(bytes, tools_system_.size() + tools_.size()); !held) return held;
  tools_system_ = std::move(system);
  tools_ = std::move(tools);
  return {};
}

void ModelSession::clear() {
  const std::lock_guard lock(mutex_);
  history_.clear();
  tokens_ = 0;
  memory_.remove(std::exchange(history_bytes_, 0));
}

std::uint32_t ModelSession::tokens() const {
  const std::lock_guard lock(mutex_);
  return tokens_;
}

Result<std::string> ModelSession::render(const std::vector<ChatMessage>& messages) const {
  std::size_t bytes = template_->system.size();
  for (const ChatMessage& each : messages) {
    bytes += each.content.size() + template_->prefix.size() + template_->postfix.size();
  }
  if (bytes > kMaxRendered) return too_long("the messages with their template", kMaxRendered);
  std::string out = template_->system;
  for (const ChatMessage& each : messages) {
    if (each.role == "assistant") {
      out.append(each.content);
    } else {
      out.append(template_->prefix).append(each.content).append(template_->postfix);
    }
  }
  return out;
}

Result<std::unique_ptr<ModelSession::Turn>> ModelSession::prepare(RunCall& call) {
  std::unique_ptr<Turn> turn;  // its end needs the mutex
  const std::lock_guard lock(mutex_);
  GenerationRequest& request = call.request;
  call.settings.fill(settings_);
  if (request.input != nullptr) return nullptr;  // it stands alone
  // As with RKLLM, a template of the client's own has no place for tools.
  if (request.tools.empty() && request.json_schema.empty() && request.grammar.empty() &&
      request.yields == Yield::text && !template_) {
    request.tools = tools_;
  }
  std::vector<ChatMessage> said = std::move(request.messages);
  request.messages.clear();
  if (!request.prompt.empty()) {
    said.push_back({.role = "user", .content = std::exchange(request.prompt, {})});
  }
  if (said.empty()) return nullptr;  // the engine says what is missing
  if (call.keep_history) {
    if (said.size() != 1) {
      return fail(kInvalidParams,
                  "Invalid params: with keep_history, give what is new: one prompt or message");
    }
    if (has_turn_) {
      return fail(kInvalidRequest,
                  "A run with keep_history is under way in this session; wait for its end");
    }
    if (history_.size() >= 2 * kMaxTurns || history_bytes_ >= kMaxHistory) {
      return fail(kInvalidRequest,
                  "The conversation of this session is too long; call clear_kv_cache");
    }
    has_turn_ = true;
    turn = std::make_unique<Turn>(shared_from_this(), said.front());
    said.insert(said.begin(), history_.begin(), history_.end());
  }
  if (template_) {
    Result<std::string> prompt = render(said);
    if (!prompt) return std::unexpected(std::move(prompt.error()));
    request.prompt = *std::move(prompt);
    request.is_raw = true;
    return turn;
  }
  const bool has_system = said.front().role == "system";
  if (!tools_system_.empty() && !has_system) {
    said.insert(said.begin(), {.role = "system", .content = tools_system_});
  }
  if (said.size() == 1 && said.front().role == "user") {
    request.prompt = std::move(said.front().content);
  } else {
    request.messages = std::move(said);
  }
  return turn;
}

void ModelSession::change_settings(const RunSettings& settings) {
  const std::lock_guard lock(mutex_);
  RunSettings next = settings;
  next.fill(settings_);
  settings_ = next;
}

void ModelSession::keep(ChatMessage said, ChatMessage answer, std::uint32_t tokens) {
  const std::lock_guard lock(mutex_);
  answer.role = "assistant";
  const std::size_t calls = said.tool_calls.size() + answer.tool_calls.size();
  const std::size_t bytes = text_bytes(said) + text_bytes(answer) + (2 + calls) * kAroundMessage;
  if (!memory_.add(bytes)) return;
  history_bytes_ += bytes;
  history_.push_back(std::move(said));
  history_.push_back(std::move(answer));
  tokens_ = tokens;
}

}  // namespace sluice
