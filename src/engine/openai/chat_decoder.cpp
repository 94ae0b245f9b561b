#include "engine/openai/chat_decoder.hpp"

#include <utility>

#include "json/members.hpp"
#include "rpc/error_codes.hpp"

namespace sluice {
namespace {

/// Bytes of a reason that are kept: more than any that is known.
constexpr std::size_t kMaxReason = 64;

}  // namespace

Result<void> ChatDecoder::take_object(std::string_view /*name*/, const json::object& event,
                                      std::vector<Delta>& out) {
  if (const json::object* const usage = object_at(event, "usage")) take_usage(*usage);
  // The last chunk has the usage alone, and those of other kinds have no choices either.
  const json::value* const choices = event.if_contains("choices");
  if (choices == nullptr || !choices->is_array() || choices->get_array().empty()) return {};
  const json::object* const choice = choices->get_array().front().if_object();
  return choice == nullptr ? Result<void>() : take_choice(*choice, out);
}

Result<void> ChatDecoder::take_choice(const json::object& choice, std::vector<Delta>& out) {
  if (const std::string_view reason = text_at(choice, "finish_reason"); !reason.empty()) {
    finish_reason_ = reason.substr(0, kMaxReason);
  }
  const json::object* delta = object_at(choice, "delta");
  // Some servers do not stream, although they are asked to.
  if (delta == nullptr) delta = object_at(choice, "message");
  if (delta == nullptr) return {};
  server_data_.take_message(*delta);
  // vLLM calls it `reasoning`, llama-server and others `reasoning_content`; some send both.
  std::string_view reasoning = text_at(*delta, "reasoning_content");
  if (reasoning.empty()) reasoning = text_at(*delta, "reasoning");
  say(Delta::Kind::reasoning, reasoning, out);
  say(Delta::Kind::text, text_at(*delta, "content"), out);
  say(Delta::Kind::text, text_at(*delta, "refusal"), out);
  const json::value* const pieces = delta->if_contains("tool_calls");
  if (pieces == nullptr || !pieces->is_array()) return {};
  for (const json::value& piece : pieces->get_array()) {
    if (!piece.is_object()) continue;
    if (Result<void> taken = take_call(piece.get_object(), out); !taken) return taken;
  }
  return {};
}

bool ChatDecoder::begins_another(std::size_t call, bool has_index, std::string_view id,
                                 std::string_view name, std::string_view arguments) {
  const std::string& its_id = calls().id(call);
  if (!id.empty() && !its_id.empty() && id != its_id) return true;
  const std::string& its_name = calls().name(call);
  if (name.empty() || its_name.empty()) return false;
  // Some give all calls the same id.
  if (name != its_name) return true;
  // Some give the id in the first piece alone.
  if (has_index && !its_id.empty()) return false;
  if (repeats(call, has_index, id, name, arguments)) return false;
  return arguments.starts_with('{') && calls().is_whole(call);
}

bool ChatDecoder::repeats(std::size_t call, bool has_index, std::string_view id,
                          std::string_view name, std::string_view arguments) const {
  if (calls().id(call).empty() || (id.empty() && !has_index)) return false;
  return name == calls().name(call) && calls().is_whole(call) &&
         arguments == calls().arguments(call);
}

Result<void> ChatDecoder::take_call(const json::object& piece, std::vector<Delta>& out) {
  static const json::object kNothing;
  const json::object* const given = object_at(piece, "function");
  const json::object& function = given == nullptr ? kNothing : *given;
  const std::string_view id = text_at(piece, "id");
  const std::string_view name = text_at(function, "name");
  const std::string arguments = arguments_at(function);
  const auto index = integer_at(piece, "index");
  if (index && (*index < 0 || *index >= std::int64_t{CallCollector::kMaxCalls})) {
    return fail(kLimitReached, "The model calls more tools than are taken");
  }
  begin_answer();
  if (!index) repair(Repair::call_index);
  std::optional<std::size_t> call;
  if (!index && calls().size() > 0) call = calls().size() - 1;
  if (index && positions_.contains(*index)) call = positions_[*index];
  if (call && begins_another(*call, index.has_value(), id, name, arguments)) {
    call.reset();
    if (index) repair(Repair::call_index);
    // Pieces that are mixed have at least their ids.
    for (std::size_t i = 0; i < calls().size() && !id.empty(); ++i) {
      if (calls().id(i) == id && !begins_another(i, index.has_value(), id, name, arguments)) {
        call = i;
      }
    }
  }
  if (!call) {
    const Result<std::size_t> begun = calls().begin();
    if (!begun) return std::unexpected(begun.error());
    call = *begun;
  } else if (!name.empty() && !calls().name(*call).empty()) {
    repair(Repair::call_name);
    if (repeats(*call, index.has_value(), id, name, arguments)) return {};
  }
  server_data_.take_call(*call, piece);
  if (index) positions_[*index] = *call;
  if (Result<void> described = calls().describe(*call, id, name); !described) return described;
  return calls().append(*call, arguments, out);
}

void ChatDecoder::take_usage(const json::object& given) {
  usage().prompt_tokens = token_count_at(given, "prompt_tokens");
  usage().completion_tokens = token_count_at(given, "completion_tokens");
  if (const json::object* const details = object_at(given, "prompt_tokens_details")) {
    usage().cached_tokens = token_count_at(*details, "cached_tokens");
  }
  if (const json::object* const details = object_at(given, "completion_tokens_details")) {
    usage().reasoning_tokens = token_count_at(*details, "reasoning_tokens");
  }
}

Result<std::optional<Completion::Reason>> ChatDecoder::reason() {
  if (finish_reason_.empty()) return std::nullopt;
  if (finish_reason_ == "content_filter") {
    return fail(kInternalError, "The model's server withheld the answer: its content filter");
  }
  return finish_reason_ == "length" ? Completion::Reason::length : Completion::Reason::stop;
}

}  // namespace sluice
