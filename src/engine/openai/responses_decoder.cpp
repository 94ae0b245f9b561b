#include "engine/openai/responses_decoder.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "engine/openai/model_error.hpp"
#include "json/json.hpp"
#include "json/members.hpp"
#include "rpc/error_codes.hpp"

namespace sluice {
namespace {

/// Bytes of an id that are kept: more than any that is known.
constexpr std::size_t kMaxId = 512;

enum class Event : std::uint8_t {
  text,
  reasoning,
  summary,
  item_added,
  item_done,
  arguments,
  arguments_done,
  state,  // the response has another status, which its name ends with
  error,
};

struct KnownEvent {
  std::string_view name;
  Event event;
};

constexpr std::array<KnownEvent, 19> kEvents = {{
    {"response.output_text.delta", Event::text},
    {"response.refusal.delta", Event::text},
    {"response.reasoning_text.delta", Event::reasoning},
    {"response.reasoning.delta", Event::reasoning},  // of early servers
    {"response.reasoning_summary_text.delta", Event::summary},
    {"response.reasoning_summary.delta", Event::summary},  // of early servers
    {"response.output_item.added", Event::item_added},
    {"response.output_item.done", Event::item_done},
    {"response.function_call_arguments.delta", Event::arguments},
    {"response.function_call_arguments.done", Event::arguments_done},
    {"response.created", Event::state},
    {"response.queued", Event::state},
    {"response.in_progress", Event::state},
    {"response.completed", Event::state},
    {"response.incomplete", Event::state},
    {"response.failed", Event::state},
    {"response.cancelled", Event::state},
    {"error", Event::error},
    {"response.error", Event::error},
}};

constexpr std::string_view kFunctionCall = "function_call";

/// The texts of an item's parts, such as content or summary.
std::string text_of_parts(const json::object& item, std::string_view member) {
  std::string text;
  const json::value* const parts = item.if_contains(member);
  if (parts == nullptr || !parts->is_array()) return text;
  for (const json::value& part : parts->get_array()) {
    if (!part.is_object()) continue;
    text.append(text_at(part.get_object(), "text")).append(text_at(part.get_object(), "refusal"));
  }
  return text;
}

}  // namespace

Result<void> ResponsesDecoder::take_object(std::string_view name, const json::object& event,
                                           std::vector<Delta>& out) {
  std::string_view type = text_at(event, "type");
  if (type.empty() && text_at(event, "object") == "response") {
    return take_response(text_at(event, "status"), event, out);
  }
  if (type.empty()) type = name;
  const auto* const known = std::ranges::find(kEvents, type, &KnownEvent::name);
  if (known == kEvents.end()) return {};
  switch (known->event) {
    case Event::text:
      take_text(event, out);
      return {};
    case Event::reasoning:
    case Event::summary:
      take_reasoning(known->event == Event::summary, event, out);
      return {};
    case Event::item_added:
    case Event::item_done:
      return take_item(known->event == Event::item_done, event, out);
    case Event::arguments:
    case Event::arguments_done:
      return take_arguments(known->event == Event::arguments_done, event, out);
    case Event::state: {
      static const json::object kNothing;
      const json::object* const response = object_at(event, "response");
      return take_response(type.substr(type.find('.') + 1),
                           response == nullptr ? kNothing : *response, out);
    }
    case Event::error:
      break;
  }
  const std::string_view message = text_at(event, "message");
  return remote_failed(message.empty() ? "an error without a message" : on_one_line(message));
}

void ResponsesDecoder::take_text(const json::object& event, std::vector<Delta>& out) {
  const std::string_view text = text_at(event, "delta");
  has_text_ |= !text.empty();
  say(Delta::Kind::text, text, out);
}

void ResponsesDecoder::take_reasoning(bool is_summary, const json::object& event,
                                      std::vector<Delta>& out) {
  const std::string_view text = text_at(event, "delta");
  if (text.empty()) return;
  has_reasoning_ = true;
  if (!is_summary) {
    has_raw_reasoning_ = true;
    return say(Delta::Kind::reasoning, text, out);
  }
  // What is summarized has been said.
  if (has_raw_reasoning_) return;
  const auto part = integer_at(event, "summary_index");
  if (summary_part_ && part && *part != *summary_part_) say(Delta::Kind::reasoning, "\n\n", out);
  if (part) summary_part_ = part;
  say(Delta::Kind::reasoning, text, out);
}

std::optional<std::size_t> ResponsesDecoder::find_call(
    std::string_view item_id, std::string_view call_id,
    std::optional<std::int64_t> output_index) const {
  const auto has_index = [&](std::size_t i) {
    return output_index && items_[i].output_index == output_index;
  };
  const auto has_item_id = [&](std::size_t i) {
    return !item_id.empty() && items_[i].id == item_id;
  };
  // Some servers give the pieces the id of the call for that of the item.
  const auto has_call_id = [&](std::size_t i) {
    const std::string& id = calls().id(i);
    return !id.empty() && (id == call_id || id == item_id);
  };
  const auto first = [this](const auto& fits) -> std::optional<std::size_t> {
    for (std::size_t i = 0; i < items_.size(); ++i) {
      if (fits(i)) return i;
    }
    return std::nullopt;
  };
  const auto last = [this](const auto& fits) -> std::optional<std::size_t> {
    for (std::size_t i = items_.size(); i > 0; --i) {
      if (fits(i - 1)) return i - 1;
    }
    return std::nullopt;
  };
  // Some give all items the same id, and some the same index. So the index decides between items
  // of one id, and the last item is meant if nothing does.
  auto found = last([&](std::size_t i) { return has_index(i) && has_item_id(i); });
  if (!found) found = first(has_item_id);
  if (!found) found = last([&](std::size_t i) { return has_index(i) && has_call_id(i); });
  if (!found) found = first(has_call_id);
  return found ? found : last(has_index);
}

bool ResponsesDecoder::is_another(std::size_t call, bool is_done, const json::object& event,
                                  const json::object& item) const {
  const Item& known = items_[call];
  const auto index = integer_at(event, "output_index");
  const std::string arguments = arguments_at(item);
  if (is_done) {
    return index && known.output_index && *index != *known.output_index &&
           calls().is_settled(call) && !arguments.empty() &&
           !is_same_json(arguments, calls().arguments(call));
  }
  if (calls().name(call).empty()) return false;
  const std::string_view call_id = text_at(item, "call_id");
  const bool is_repeated = (!known.id.empty() || !call_id.empty()) &&
                           known.id == text_at(item, "id").substr(0, kMaxId) &&
                           calls().id(call) == call_id && known.output_index == index &&
                           calls().name(call) == text_at(item, "name") && arguments.empty() &&
                           calls().arguments(call).empty() && !calls().is_settled(call);
  return !is_repeated;
}

Result<std::size_t> ResponsesDecoder::begin_call(std::string_view item_id,
                                                 std::optional<std::int64_t> output_index) {
  Result<std::size_t> begun = calls().begin();
  if (!begun) return begun;
  begin_answer();
  items_.push_back({.id = std::string(item_id.substr(0, kMaxId)), .output_index = output_index});
  return begun;
}

Result<void> ResponsesDecoder::take_item(bool is_done, const json::object& event,
                                         std::vector<Delta>& out) {
  const json::object* const item = object_at(event, "item");
  if (item == nullptr || text_at(*item, "type") != kFunctionCall) return {};
  const std::string_view item_id = text_at(*item, "id");
  const std::string_view call_id = text_at(*item, "call_id");
  const auto index = integer_at(event, "output_index");
  std::optional<std::size_t> call = find_call(item_id, call_id, index);
  if (!call || is_another(*call, is_done, event, *item)) {
    const Result<std::size_t> begun = begin_call(item_id, index);
    if (!begun) return std::unexpected(begun.error());
    call = *begun;
    if (is_done) repair(Repair::call_item);
  }
  Result<void> taken = calls().describe(*call, call_id, text_at(*item, "name"));
  if (!taken) return taken;
  const std::string arguments = arguments_at(*item);
  if (is_done) return calls().settle(*call, arguments);
  return calls().append(*call, arguments, out);
}

Result<void> ResponsesDecoder::take_arguments(bool is_done, const json::object& event,
                                              std::vector<Delta>& out) {
  const std::string_view item_id = text_at(event, "item_id");
  const auto index = integer_at(event, "output_index");
  std::optional<std::size_t> call = find_call(item_id, text_at(event, "call_id"), index);
  if (!call) {
    repair(Repair::call_item);
    const bool is_of_last = !items_.empty() && (item_id.empty() || items_.back().id.empty());
    if (is_of_last) call = items_.size() - 1;
  }
  if (!call) {
    const Result<std::size_t> begun = begin_call(item_id, index);
    if (!begun) return std::unexpected(begun.error());
    call = *begun;
  }
  if (!is_done) return calls().append(*call, arguments_at(event, "delta"), out);
  Result<void> taken = calls().describe(*call, {}, text_at(event, "name"));
  return taken ? calls().settle(*call, arguments_at(event)) : taken;
}

Result<void> ResponsesDecoder::take_response(std::string_view status, const json::object& response,
                                             std::vector<Delta>& out) {
  if (const std::string_view id = text_at(response, "id"); !id.empty()) {
    response_id_ = id.substr(0, kMaxId);
  }
  if (const json::object* const usage = object_at(response, "usage")) take_usage(*usage);
  if (const auto error = model_error_of(response)) return remote_failed(*error);
  if (status == "failed") return remote_failed("it does not say why");
  if (status == "cancelled") return remote_failed("the response was cancelled there");
  if (status != "completed" && status != "incomplete") return {};
  finish();
  reason_ = Completion::Reason::stop;
  if (status == "incomplete") {
    const json::object* const details = object_at(response, "incomplete_details");
    const std::string_view why = details == nullptr ? "" : text_at(*details, "reason");
    if (why == "content_filter") {
      return fail(kInternalError, "The model's server withheld the answer: its content filter");
    }
    if (why != "max_output_tokens") {
      return fail(kInternalError, "The model's server ended its answer before it was whole" +
                                      (why.empty() ? "" : ": " + on_one_line(why)));
    }
    reason_ = Completion::Reason::length;
  }
  if (Result<void> taken = take_output(response, out); !taken) return taken;
  // llama-server calls an answer complete that has reached the limit.
  const auto limit = options().max_tokens;
  if (status == "completed" && calls().size() == 0 && limit &&
      usage().completion_tokens >= static_cast<std::uint32_t>(std::max(1, *limit))) {
    repair(Repair::finish_reason);
    reason_ = Completion::Reason::length;
  }
  return {};
}

Result<void> ResponsesDecoder::take_output(const json::object& response, std::vector<Delta>& out) {
  const json::value* const output = response.if_contains("output");
  if (output == nullptr || !output->is_array()) return {};
  const bool needs_text = !has_text_;
  const bool needs_reasoning = !has_reasoning_;
  const bool needs_calls = calls().size() == 0;
  const std::size_t said = out.size();
  for (const json::value& each : output->get_array()) {
    const json::object* const item = each.if_object();
    if (item == nullptr) continue;
    const std::string_view type = text_at(*item, "type");
    if (needs_text && type == "message") {
      say(Delta::Kind::text, text_of_parts(*item, "content"), out);
    } else if (needs_reasoning && type == "reasoning") {
      const std::string raw = text_of_parts(*item, "content");
      say(Delta::Kind::reasoning, raw.empty() ? text_of_parts(*item, "summary") : raw, out);
    } else if (needs_calls && type == kFunctionCall) {
      const Result<std::size_t> call = begin_call(text_at(*item, "id"), std::nullopt);
      if (!call) return std::unexpected(call.error());
      Result<void> taken =
          calls().describe(*call, text_at(*item, "call_id"), text_at(*item, "name"));
      if (taken) taken = calls().settle(*call, arguments_at(*item));
      if (!taken) return taken;
    }
  }
  if (out.size() > said || (needs_calls && calls().size() > 0)) repair(Repair::text);
  return {};
}

void ResponsesDecoder::take_usage(const json::object& given) {
  usage().prompt_tokens = token_count_at(given, "input_tokens");
  usage().completion_tokens = token_count_at(given, "output_tokens");
  if (const json::object* const details = object_at(given, "input_tokens_details")) {
    usage().cached_tokens = token_count_at(*details, "cached_tokens");
  }
  if (const json::object* const details = object_at(given, "output_tokens_details")) {
    usage().reasoning_tokens = token_count_at(*details, "reasoning_tokens");
  }
}

Result<std::optional<Completion::Reason>> ResponsesDecoder::reason() {
  return reason_;
}

}  // namespace sluice
