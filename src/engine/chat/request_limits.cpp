#include "engine/chat/request_limits.hpp"

#include <cmath>
#include <string>
#include <string_view>
#include <utility>

#include "core/text/utf8.hpp"
#include "rpc/error_codes.hpp"

namespace sluice {
namespace {

Result<void> float_in_range(float value, float low, float high, std::string_view name,
                            std::string_view range) {
  if (std::isfinite(value) && value >= low && value <= high) return {};
  return fail(kInvalidParams, std::string(name) + " must be from " + std::string(range));
}

}  // namespace

Result<void> check_request(const GenerationRequest& request) {
  const auto invalid = [](std::string why) { return fail(kInvalidParams, std::move(why)); };
  const bool has_input = request.input != nullptr;
  if (has_input ? !request.messages.empty() || !request.prompt.empty()
                : request.messages.empty() == request.prompt.empty()) {
    return invalid("give either messages or a prompt that is not empty");
  }
  if ((has_input || request.yields != Yield::text) &&
      !(request.tools.empty() && request.json_schema.empty() && request.grammar.empty())) {
    return invalid(
        "tools, json_schema and grammar are for prompts that are answered with text: leave them "
        "out with another input_type or mode");
  }
  if (request.is_raw && (request.prompt.empty() || !request.tools.empty())) {
    return invalid("a raw request has a prompt, and neither messages nor tools");
  }
  if (request.max_tokens && *request.max_tokens < 1) {
    return invalid("max_tokens must be at least 1");
  }
  if (request.stop.size() > RequestLimits::kStops) {
    return invalid("stop must have at most 16 strings");
  }
  for (const std::string& stop : request.stop) {
    if (stop.empty() || stop.size() > RequestLimits::kStopBytes || !is_valid_utf8(stop)) {
      return invalid("each string of stop must be UTF-8 text of 1 to 1024 bytes");
    }
  }
  if (!request.json_schema.empty() && !request.grammar.empty()) {
    return invalid("give either json_schema or grammar, not both");
  }
  if (request.json_schema.size() > RequestLimits::kGrammarBytes ||
      request.grammar.size() > RequestLimits::kGrammarBytes) {
    return invalid("json_schema and grammar must have at most 64 KiB");
  }
  if (request.tools.size() > RequestLimits::kToolsBytes) {
    return invalid("tools must have at most 256 KiB");
  }
  return {};
}

Result<void> check_sampling(const SamplingParams& params) {
  for (const Result<void>& checked :
       {float_in_range(params.temperature.value_or(0), 0, 100, "temperature", "0 to 100"),
        float_in_range(params.top_p, 0, 1, "top_p", "0 to 1"),
        float_in_range(params.min_p, 0, 1, "min_p", "0 to 1"),
        float_in_range(params.repeat_penalty, 0.01F, 100, "repeat_penalty", "0.01 to 100"),
        float_in_range(params.frequency_penalty, -100, 100, "frequency_penalty", "-100 to 100"),
        float_in_range(params.presence_penalty, -100, 100, "presence_penalty", "-100 to 100")}) {
    if (!checked) return checked;
  }
  if (params.top_k < 0) return fail(kInvalidParams, "top_k must be at least 0");
  if (params.penalty_last_n < -1 ||
      params.penalty_last_n > static_cast<int>(RequestLimits::kPenaltyWindow)) {
    return fail(kInvalidParams, "penalty_last_n must be from -1 to 65536");
  }
  return {};
}

std::size_t count_turns(const GenerationRequest& request) {
  std::size_t count = request.messages.size();
  for (const ChatMessage& message : request.messages) count += message.tool_calls.size();
  return count;
}

}  // namespace sluice
