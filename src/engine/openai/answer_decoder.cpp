#include "engine/openai/answer_decoder.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "engine/openai/model_error.hpp"
#include "json/lone_surrogates.hpp"
#include "json/members.hpp"
#include "rpc/error_codes.hpp"

namespace sluice {
namespace {

constexpr std::string_view kDone = "[DONE]";

}  // namespace

std::optional<std::int64_t> integer_at(const json::object& object, std::string_view name) {
  const json::value* const value = object.if_contains(name);
  if (value == nullptr) return std::nullopt;
  if (value->is_int64()) return value->get_int64();
  if (value->is_double()) return exact_integer(value->get_double());
  return std::nullopt;
}

std::uint32_t token_count_at(const json::object& object, std::string_view name) {
  const std::int64_t count = integer_at(object, name).value_or(0);
  constexpr std::int64_t kMost = std::numeric_limits<std::uint32_t>::max();
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>(count, 0, kMost));
}

std::string arguments_at(const json::object& call, std::string_view name) {
  const json::value* const given = call.if_contains(name);
  if (given == nullptr || given->is_null()) return {};
  return given->is_string() ? std::string(given->get_string()) : to_json(*given);
}

AnswerDecoder::AnswerDecoder(AnswerOptions options)
    : options_(std::move(options)), calls_(options_.made_id, options_.has_call_parts) {}

AnswerRepairs AnswerDecoder::repairs() const {
  AnswerRepairs all = repairs_;
  all.add(calls_.repairs());
  return all;
}

void AnswerDecoder::say(Delta::Kind kind, std::string_view text, std::vector<Delta>& out) {
  if (text.empty()) return;
  has_begun_ = true;
  out.push_back({.kind = kind, .text = std::string(text)});
}

Result<void> AnswerDecoder::take(std::string_view name, std::string_view data,
                                 std::vector<Delta>& out) {
  if (data.empty() || is_done_) return {};
  if (data.starts_with(kDone)) {
    is_done_ = true;
    return {};
  }
  const Result<json::value> parsed = parse_json_with_lone_surrogates(data);
  if (!parsed) return remote_unreadable(parsed.error().message);
  const json::object* const event = parsed->if_object();
  if (event == nullptr) return remote_unreadable("an event that is no JSON object");
  if (const auto error = model_error_of(*event)) return remote_failed(*error);
  return take_object(name, *event, out);
}

Result<Completion> AnswerDecoder::end(std::vector<Delta>& out) {
  Result<std::optional<Completion::Reason>> why = reason();
  if (!why) return std::unexpected(std::move(why.error()));
  if (!*why && !is_done_) {
    return fail(kInternalError, "The model's server ended its answer before it was whole");
  }
  if (!*why) repairs_.add(Repair::finish_reason);
  Completion completion;
  completion.usage = usage_;
  completion.reason = why->value_or(Completion::Reason::stop);
  const bool is_cut = completion.reason == Completion::Reason::length;
  if (Result<void> ended = calls_.end(is_cut, out); !ended) {
    return std::unexpected(std::move(ended.error()));
  }
  // Some servers say "stop" although there are calls.
  if (calls_.size() > 0) {
    completion.reason = Completion::Reason::tool_calls;
    completion.server_data = server_data();
  }
  return completion;
}

}  // namespace sluice
