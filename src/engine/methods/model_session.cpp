#include "engine/methods/model_session.hpp"

#include <algorithm>
#include <atomic>
#include <iterator>
#include <list>
#include <map>
#include <utility>

#include "core/crypto/random.hpp"
#include "core/log/over_limit.hpp"
#include "protocol/parameters.hpp"
#include "rpc/error_codes.hpp"
#include "server/sessions/session_storage.hpp"

namespace sluice {
namespace {

constexpr std::size_t kIdLength = 16;
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
  // As with RKLLM, a template of the client's own has no place for tools.
  if (request.tools.empty() && request.json_schema.empty() && request.grammar.empty() &&
      !template_) {
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

void ModelSession::set(const RunSettings& settings) {
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

/// The sessions by their ids.
class ModelSessions::Table {
 public:
  explicit Table(const Clock& clock) : clock_(&clock) {}

  [[nodiscard]] bool is_empty() const { return size_ == 0; }

  std::shared_ptr<ModelSession> find(const std::string& id, const std::string& principal) {
    const std::lock_guard lock(mutex_);
    end_expired();
    const auto found = entries_.find(id);
    if (found == entries_.end() || found->second.principal != principal) return nullptr;
    Entry& entry = found->second;
    entry.used = clock_->now();
    order_.splice(order_.end(), order_, entry.place);
    return entry.session;
  }
  /// The session that the principal has for itself; empty: none.
  std::string own_of(const std::string& principal) {
    const std::lock_guard lock(mutex_);
    const auto found = own_.find(principal);
    return found == own_.end() ? std::string() : found->second;
  }

  enum class Whose : std::uint8_t { connection, principal, handle };
  Result<std::string> add(const std::shared_ptr<ModelSession>& session,
                          const std::string& principal, Whose whose) {
    const std::lock_guard lock(mutex_);
    end_expired();
    if (whose != Whose::connection) {
      std::vector<std::string>& loose = loose_[principal];
      if (loose.size() >= kMaxOfPrincipal) remove_locked(std::string(loose.front()));
    } else if (connected_[principal] >= kMaxConnections) {
      return over_limit("You have too many sessions with the model; end some");
    }
    if (entries_.size() >= kMax) return over_limit("There are too many sessions; try again later");
    std::string id = random_id(kIdLength);
    order_.push_back(id);
    entries_.emplace(id, Entry{.session = session,
                               .principal = principal,
                               .used = clock_->now(),
                               .place = std::prev(order_.end()),
                               .whose = whose});
    if (whose != Whose::connection) loose_[principal].push_back(id);
    if (whose == Whose::connection) ++connected_[principal];
    if (whose == Whose::principal) own_[principal] = id;
    size_ = entries_.size();
    return id;
  }
  bool remove(const std::string& id, const std::string& principal) {
    const std::lock_guard lock(mutex_);
    const auto found = entries_.find(id);
    if (found == entries_.end() || found->second.principal != principal) return false;
    remove_locked(id);
    return true;
  }
  /// Whoever has the place of the session is gone.
  void remove(const std::string& id) {
    const std::lock_guard lock(mutex_);
    remove_locked(id);
  }

 private:
  struct Entry {
    std::shared_ptr<ModelSession> session;
    std::string principal;
    TimePoint used;
    std::list<std::string>::iterator place;
    Whose whose;
  };
  void remove_locked(const std::string& id) {
    const auto found = entries_.find(id);
    if (found == entries_.end()) return;
    const Entry& entry = found->second;
    if (entry.whose == Whose::connection) {
      const auto connected = connected_.find(entry.principal);
      if (--connected->second == 0) connected_.erase(connected);
    }
    if (const auto loose = loose_.find(entry.principal); loose != loose_.end()) {
      std::erase(loose->second, id);
      if (loose->second.empty()) loose_.erase(loose);
    }
    if (const auto own = own_.find(entry.principal); own != own_.end() && own->second == id) {
      own_.erase(own);
    }
    order_.erase(entry.place);
    entries_.erase(found);
    size_ = entries_.size();
  }
  void end_expired() {
    const TimePoint now = clock_->now();
    while (!order_.empty()) {
      const std::string oldest = order_.front();
      if (now - entries_.at(oldest).used < kExpiry) return;
      remove_locked(oldest);
    }
  }

  const Clock* clock_;
  std::mutex mutex_;
  std::map<std::string, Entry> entries_;
  std::list<std::string> order_;  // the ids; the one that was used longest ago is first
  std::map<std::string, std::vector<std::string>> loose_;  // by principal; no connection has them
  std::map<std::string, std::size_t> connected_;           // sessions of connections, by principal
  std::map<std::string, std::string> own_;                 // by principal
  std::atomic<std::size_t> size_ = 0;
};

/// The session of a connection, which ends with it.
struct ModelSessions::Place {
  static std::shared_ptr<Place> of(const MethodCaller& caller) {
    const std::shared_ptr<SessionStorage> storage = caller.storage ? caller.storage() : nullptr;
    if (storage == nullptr) return nullptr;
    static constexpr char kType = 0;
    return std::static_pointer_cast<Place>(storage->value(
        &kType, +[]() -> std::shared_ptr<void> { return std::make_shared<Place>(); }));
  }

  Place() = default;
  ~Place() {
    if (const auto kept = table.lock()) kept->remove(id);
  }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;

  std::string id_now() {
    const std::lock_guard lock(mutex);
    return id;
  }

  std::mutex mutex;
  std::string id;
  std::weak_ptr<Table> table;
};

ModelSessions::ModelSessions(const Clock& clock) : table_(std::make_shared<Table>(clock)) {}

bool ModelSessions::has_own_place(const MethodCaller& caller) {
  return caller.principal.isolated || (caller.storage && caller.storage() != nullptr);
}

Result<std::string> ModelSessions::id_of(const json::object& params,
                                         const MethodCaller& caller) const {
  const json::value* const named = find_parameter(params, "handle_id");
  if (named != nullptr && named->is_string()) return std::string(named->get_string());
  // The original's handle was always 1.
  if (named != nullptr && !integer_of(*named)) {
    return fail(kInvalidParams, "Invalid params: handle_id must be what init has returned");
  }
  if (const auto place = Place::of(caller)) return place->id_now();
  return caller.principal.isolated ? table_->own_of(caller.principal.id) : std::string();
}

Result<std::shared_ptr<ModelSession>> ModelSessions::find(const json::object& params,
                                                          const MethodCaller& caller) const {
  if (table_->is_empty() && find_parameter(params, "handle_id") == nullptr) return nullptr;
  const Result<std::string> id = id_of(params, caller);
  if (!id) return std::unexpected(id.error());
  if (id->empty()) return nullptr;
  std::shared_ptr<ModelSession> session = table_->find(*id, caller.principal.id);
  const json::value* const named = find_parameter(params, "handle_id");
  if (session == nullptr && named != nullptr && named->is_string()) {
    return fail(kInvalidParams,
                "Invalid params: you have no session of this handle_id; it may have ended, so call "
                "init again");
  }
  return session;
}

Result<ModelSessions::Begun> ModelSessions::begin(const MethodCaller& caller,
                                                  const RunSettings& settings,
                                                  std::shared_ptr<MemoryShare> memory) {
  using Whose = Table::Whose;
  const std::string& principal = caller.principal.id;
  const auto make = [&](Whose whose) -> Result<Begun> {
    auto session = std::make_shared<ModelSession>(settings, std::move(memory));
    Result<std::string> id = table_->add(session, principal, whose);
    if (!id) return std::unexpected(std::move(id.error()));
    return Begun{.handle_id = *std::move(id), .session = std::move(session), .is_new = true};
  };
  const auto known = [&](const std::string& id) { return table_->find(id, principal); };
  if (const auto place = Place::of(caller)) {
    const std::lock_guard lock(place->mutex);
    if (auto session = known(place->id)) {
      return Begun{.handle_id = place->id, .session = std::move(session), .is_new = false};
    }
    Result<Begun> begun = make(Whose::connection);
    if (!begun) return begun;
    place->id = begun->handle_id;
    place->table = table_;
    return begun;
  }
  if (!caller.principal.isolated) return make(Whose::handle);
  const std::string own = table_->own_of(principal);
  if (auto session = known(own)) {
    return Begun{.handle_id = own, .session = std::move(session), .is_new = false};
  }
  return make(Whose::principal);
}

Result<bool> ModelSessions::end(const json::object& params, const MethodCaller& caller) {
  const Result<std::string> id = id_of(params, caller);
  if (!id) return std::unexpected(id.error());
  return table_->remove(*id, caller.principal.id);
}

}  // namespace sluice
