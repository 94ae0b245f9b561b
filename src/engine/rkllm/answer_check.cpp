#include "engine/rkllm/answer_check.hpp"

#include <utility>

#include "core/text/text.hpp"
#include "json/json.hpp"
#include "rpc/error_codes.hpp"

namespace sluice::rkllm {
namespace {

constexpr std::string_view kFence = "```";
constexpr std::string_view kBlanks = " \t\r\n";
constexpr std::uint64_t kMaxSteps = 1'000'000;  // less than a tenth of a second

}  // namespace

Result<AnswerCheck> AnswerCheck::begin(GenerationRequest& request) {
  const auto parsed = parse_json(request.json_schema);
  if (!parsed) return fail(kInvalidParams, "json_schema must be JSON: " + parsed.error().message);
  auto schema = JsonSchema::compile(*parsed, {.limits = JsonSchemaLimits::for_peers()});
  if (!schema) return fail(kInvalidParams, "json_schema cannot be used: " + schema.error().message);
  if (request.messages.empty()) {
    request.messages.push_back({.role = "user", .content = std::exchange(request.prompt, {})});
  }
  if (request.messages.back().role != "user") request.messages.push_back({.role = "user"});
  std::string& last = request.messages.back().content;
  if (!last.empty()) last += "\n\n";
  last += "Answer with JSON that follows this JSON Schema, and with nothing else: ";
  append_json(last, *parsed);
  return AnswerCheck(*std::move(schema));
}

std::string_view AnswerCheck::json() const {
  std::string_view text = trim(answer_, kBlanks);
  if (!text.starts_with(kFence) || !text.ends_with(kFence)) return text;
  const std::size_t line_end = text.find('\n');
  if (line_end == std::string_view::npos) return text;
  text.remove_prefix(line_end);
  text.remove_suffix(kFence.size());
  return trim(text, kBlanks);
}

std::optional<std::string> AnswerCheck::fault() const {
  const auto parsed = parse_json(json());
  if (!parsed) return "it is no JSON: " + parsed.error().message;
  const auto valid = schema_.validate(*parsed, kMaxSteps);
  if (valid) return std::nullopt;
  return valid.error().describe("answer");
}

void AnswerCheck::ask_again(GenerationRequest& request, std::string_view fault) {
  ++tries_;
  std::erase(answer_, '\0');  // no text for the runtime may have it
  request.messages.push_back({.role = "assistant", .content = std::exchange(answer_, {})});
  request.messages.push_back(
      {.role = "user",
       .content = "That answer does not follow the JSON Schema: " + std::string(fault) +
                  ". Answer again, with JSON that follows it and with nothing else."});
}

}  // namespace sluice::rkllm
