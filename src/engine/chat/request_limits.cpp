#include "engine/chat/request_limits.hpp"

#include <string>
#include <utility>

#include "core/text/utf8.hpp"
#include "rpc/error_codes.hpp"

namespace sluice {

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

std::size_t count_turns(const GenerationRequest& request) {
  std::size_t count = request.messages.size();
  for (const ChatMessage& message : request.messages) count += message.tool_calls.size();
  return count;
}

}  // namespace sluice
