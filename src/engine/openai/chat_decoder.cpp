#include "engine/openai/chat_decoder.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "core/text/utf8.hpp"
#include "json/members.hpp"
#include "rpc/error_codes.hpp"

namespace sluice {
namespace {

constexpr std::string_view kDone = "[DONE]";
/// Bytes that are quoted of what a server says.
constexpr std::size_t kQuoted = 500;

/// The beginning of a text, without beginning breaks and other control characters.
std::string on_one_line(std::string_view text) {
  const std::size_t size = complete_utf8_prefix(text.substr(0, kQuoted));
  std::string beginning(text.substr(0, size));
  std::ranges::replace_if(
      beginning, [](char c) { return (c >= 0 && c < ' ') || c == '\x7F'; }, ' ');
  if (size < text.size()) beginning.append("...");
  return beginning;
}

std::unexpected<Error> unreadable(std::string_view what) {
  return fail(kInternalError, "The model's server sent what cannot be read: " + std::string(what));
}

std::optional<std::int64_t> integer_at(const json::object& object, std::string_view name) {
  const json::value* const value = object.if_contains(name);
  if (value == nullptr) return std::nullopt;
  if (value->is_int64()) return value->get_int64();
  if (value->is_double()) return exact_integer(value->get_double());
  return std::nullopt;
}

std::uint32_t count_at(const json::object& object, std::string_view name) {
  const std::int64_t count = integer_at(object, name).value_or(0);
  constexpr std::int64_t kMost = std::numeric_limits<std::uint32_t>::max();
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>(count, 0, kMost));
}

/// A call as Delta has it. The error says that its arguments are no object.
Result<std::string> whole_call(const std::string& name, const std::string& arguments) {
  if (name.empty()) return fail(kInternalError, "The model called a tool without a name");
  // A call without arguments may have an empty text.
  const Result<json::value> parsed = parse_json(arguments.empty() ? "{}" : arguments);
  if (!parsed || !parsed->is_object()) {
    return fail(kInternalError, "The model called the tool \"" + on_one_line(name) +
                                    "\" with arguments that are no JSON object");
  }
  return to_json(json::object{{"name", name}, {"arguments", *parsed}});
}

}  // namespace

std::optional<std::string> model_error_of(const json::object& body) {
  const json::value* const error = body.if_contains("error");
  if (error == nullptr || error->is_null()) return std::nullopt;
  const std::string_view message =
      error->is_object() ? text_at(error->get_object(), "message") : text_at(body, "error");
  return message.empty() ? "an error without a message" : on_one_line(message);
}

Result<void> ChatDecoder::take(std::string_view data, std::vector<Delta>& out) {
  if (data.empty() || is_done_) return {};
  if (data.starts_with(kDone)) {
    is_done_ = true;
    return {};
  }
  const Result<json::value> parsed = parse_json(data);
  if (!parsed) return unreadable(parsed.error().message);
  const json::object* const chunk = parsed->if_object();
  if (chunk == nullptr) return unreadable("an event that is no JSON object");
  if (const auto error = model_error_of(*chunk)) {
    return fail(kInternalError, "The model's server failed: " + *error);
  }
  if (const json::object* const usage = object_at(*chunk, "usage")) take_usage(*usage);
  // The last chunk has the usage alone, and those of other kinds have no choices either.
  const json::value* const choices = chunk->if_contains("choices");
  if (choices == nullptr || !choices->is_array() || choices->get_array().empty()) return {};
  const json::object* const choice = choices->get_array().front().if_object();
  return choice == nullptr ? Result<void>() : take_choice(*choice, out);
}

Result<void> ChatDecoder::take_choice(const json::object& choice, std::vector<Delta>& out) {
  if (const std::string_view reason = text_at(choice, "finish_reason"); !reason.empty()) {
    finish_reason_ = reason;
  }
  const json::object* delta = object_at(choice, "delta");
  // Some servers do not stream, although they are asked to.
  if (delta == nullptr) delta = object_at(choice, "message");
  if (delta == nullptr) return {};
  // vLLM calls it `reasoning`, llama-server and others `reasoning_content`; some send both.
  std::string_view reasoning = text_at(*delta, "reasoning_content");
  if (reasoning.empty()) reasoning = text_at(*delta, "reasoning");
  const auto add = [this, &out](Delta::Kind kind, std::string_view text) {
    if (text.empty()) return;
    has_begun_ = true;
    out.push_back({.kind = kind, .text = std::string(text)});
  };
  add(Delta::Kind::reasoning, reasoning);
  add(Delta::Kind::text, text_at(*delta, "content"));
  add(Delta::Kind::text, text_at(*delta, "refusal"));
  const json::value* const calls = delta->if_contains("tool_calls");
  if (calls == nullptr || !calls->is_array()) return {};
  for (const json::value& call : calls->get_array()) {
    if (!call.is_object()) continue;
    if (Result<void> taken = take_call(call.get_object()); !taken) return taken;
  }
  return {};
}

std::int64_t ChatDecoder::index_of(std::string_view id, std::string_view name) const {
  if (calls_.empty()) return 0;
  const auto& [last, call] = *calls_.rbegin();
  const bool is_another = id.empty() ? !name.empty() && !call.arguments.empty() : id != call.id;
  return is_another ? last + 1 : last;
}

Result<void> ChatDecoder::take_call(const json::object& piece) {
  static const json::object kNothing;
  const std::string_view id = text_at(piece, "id");
  const json::object* const function = object_at(piece, "function");
  const std::string_view name = text_at(function == nullptr ? kNothing : *function, "name");
  const auto given = integer_at(piece, "index");
  repairs_.index |= !given;
  ToolCall& call = calls_[given.value_or(index_of(id, name))];
  if (!id.empty() && call.id.empty()) call.id = id;
  has_begun_ = true;
  if (call.name.empty()) {
    call.name = name;
    call_bytes_ += name.size();
  } else if (!name.empty()) {
    repairs_.name_repeated = true;
  }
  if (const json::value* const arguments =
          function == nullptr ? nullptr : function->if_contains("arguments")) {
    // Ollama and others send the arguments as an object, whole.
    const std::string text = arguments->is_object() ? to_json(*arguments) : std::string();
    const std::string_view part =
        arguments->is_object() ? std::string_view(text) : text_at(*function, "arguments");
    call.arguments.append(part);
    call_bytes_ += part.size();
  }
  if (calls_.size() > kMaxCalls || call_bytes_ > kMaxCallBytes) {
    return fail(kLimitReached,
                "The model calls more tools, or with longer arguments, than is taken");
  }
  return {};
}

void ChatDecoder::take_usage(const json::object& usage) {
  usage_.prompt_tokens = count_at(usage, "prompt_tokens");
  usage_.completion_tokens = count_at(usage, "completion_tokens");
  const json::object* const details = object_at(usage, "prompt_tokens_details");
  if (details != nullptr) usage_.cached_tokens = count_at(*details, "cached_tokens");
}

Result<Completion> ChatDecoder::end(std::vector<Delta>& out) {
  if (finish_reason_.empty()) {
    if (!is_done_) {
      return fail(kInternalError, "The model's server ended its answer before it was whole");
    }
    repairs_.finish_reason = true;
  }
  if (finish_reason_ == "content_filter") {
    return fail(kInternalError, "The model's server withheld the answer: its content filter");
  }
  Completion completion;
  completion.usage = usage_;
  if (finish_reason_ == "length") completion.reason = Completion::Reason::length;
  // Some servers say "stop" although there are calls.
  for (auto& [index, call] : calls_) {
    Result<std::string> whole = whole_call(call.name, call.arguments);
    if (!whole && completion.reason == Completion::Reason::length) {
      return fail(kLimitReached,
                  "The answer was cut off within a call of a tool: it reached "
                  "max_tokens, or the context of the model");
    }
    if (!whole) return std::unexpected(std::move(whole.error()));
    out.push_back({.kind = Delta::Kind::tool_call, .text = *std::move(whole)});
  }
  if (!calls_.empty()) completion.reason = Completion::Reason::tool_calls;
  return completion;
}

}  // namespace sluice
