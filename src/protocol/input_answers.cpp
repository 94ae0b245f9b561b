#include "protocol/input_answers.hpp"

#include <string>
#include <string_view>

#include "core/log/over_limit.hpp"
#include "json_schema/json_schema.hpp"
#include "rpc/error_codes.hpp"

namespace sluice {
namespace {

constexpr std::string_view kAnyObject = R"({"type":"object"})";

constexpr std::string_view kElicitResult = R"({
  "type": "object",
  "required": ["action"],
  "properties": {
    "action": {"enum": ["accept", "decline", "cancel"]},
    "content": {"type": "object"}
  }
})";

constexpr std::string_view kListRootsResult = R"({
  "type": "object",
  "required": ["roots"],
  "properties": {
    "roots": {
      "type": "array",
      "items": {
        "type": "object",
        "required": ["uri"],
        "properties": {
          "uri": {"type": "string", "pattern": "^file://"},
          "name": {"type": "string"}
        }
      }
    }
  }
})";

constexpr std::string_view kCreateMessageResult = R"({
  "type": "object",
  "required": ["role", "content", "model"],
  "properties": {
    "role": {"enum": ["user", "assistant"]},
    "model": {"type": "string"},
    "stopReason": {"type": "string"},
    "content": {
      "if": {"type": "array"},
      "then": {"items": {"$ref": "#/$defs/block"}},
      "else": {"$ref": "#/$defs/block"}
    }
  },
  "$defs": {
    "block": {
      "type": "object",
      "required": ["type"],
      "properties": {"type": {"enum": ["text", "image", "audio", "tool_use", "tool_result"]}},
      "allOf": [
        {
          "if": {"properties": {"type": {"const": "text"}}},
          "then": {"required": ["text"], "properties": {"text": {"type": "string"}}}
        },
        {
          "if": {"properties": {"type": {"enum": ["image", "audio"]}}},
          "then": {
            "required": ["data", "mimeType"],
            "properties": {"data": {"type": "string"}, "mimeType": {"type": "string"}}
          }
        },
        {
          "if": {"properties": {"type": {"const": "tool_use"}}},
          "then": {
            "required": ["id", "name", "input"],
            "properties": {
              "id": {"type": "string"},
              "name": {"type": "string"},
              "input": {"type": "object"}
            }
          }
        },
        {
          "if": {"properties": {"type": {"const": "tool_result"}}},
          "then": {
            "required": ["toolUseId", "content"],
            "properties": {"toolUseId": {"type": "string"}, "content": {"type": "array"}}
          }
        }
      ]
    }
  }
})";

JsonSchema compiled(std::string_view text) {
  return JsonSchema::compile(parse_json(text).value()).value();
}

const JsonSchema& shape_of(std::string_view method) {
  static const JsonSchema kElicitation = compiled(kElicitResult);
  static const JsonSchema kSampling = compiled(kCreateMessageResult);
  static const JsonSchema kRoots = compiled(kListRootsResult);
  static const JsonSchema kAny = compiled(kAnyObject);
  if (method == "elicitation/create") return kElicitation;
  if (method == "sampling/createMessage") return kSampling;
  if (method == "roots/list") return kRoots;
  return kAny;
}

/// The most steps that checking one answer may take. The loop does it, in about a millisecond.
constexpr std::uint64_t kMaxSteps = 20'000;

std::unexpected<Error> unfit(const InputRequest& request, const std::string& why) {
  return fail(kInvalidParams,
              "The client's answer to " + request.method + " does not match the request: " + why);
}

/// Checks the content of `accepted` against the schema in `request`.
Result<void> check_form(const InputRequest& request, const json::object& accepted) {
  static const json::value kNoContent(json::object_kind);
  const json::value* const requested = request.params.if_contains("requestedSchema");
  if (requested == nullptr) return {};
  const Result<JsonSchema> schema = JsonSchema::compile(
      *requested, {.assert_formats = true, .limits = JsonSchemaLimits::for_peers()});
  if (!schema) return fail(kInternalError, "requestedSchema: " + schema.error().message);
  const json::value* const content = accepted.if_contains("content");
  const auto valid = schema->validate(content == nullptr ? kNoContent : *content, kMaxSteps);
  if (!valid) return unfit(request, valid.error().describe("content"));
  return {};
}

}  // namespace

Result<void> check_answer(const InputRequest& request, const json::value& answer) {
  if (size_of(answer, kMaxAnswerValues).values > kMaxAnswerValues) {
    return unfit(request,
                 "it has more than " + std::to_string(kMaxAnswerValues) + " values and names");
  }
  if (const auto valid = shape_of(request.method).validate(answer, kMaxSteps); !valid) {
    return unfit(request, valid.error().describe("result"));
  }
  if (request.method != "elicitation/create") return {};
  const json::object& result = answer.get_object();
  return result.at("action") == "accept" ? check_form(request, result) : Result<void>();
}

std::vector<const InputRequest*> AskedInputs::missing() const {
  std::vector<const InputRequest*> out;
  for (std::size_t i = 0; i < requests_.size(); ++i) {
    if (!answers_[i]) out.push_back(&requests_[i]);
  }
  return out;
}

Result<void> AskedInputs::check(std::size_t index, const json::value& answer) const {
  return answers_[index] ? Result<void>() : check_answer(requests_[index], answer);
}

Result<void> AskedInputs::take(std::size_t index, const json::value& answer) {
  if (answers_[index]) return {};
  if (Result<void> fits = check(index, answer); !fits) return fits;
  const std::size_t bytes = size_of(answer).memory();
  if (bytes > CoarseHold::kFree && !memory_.add(bytes)) {
    return over_limit(
        "Your streams, calls and subscriptions have used all the memory that one client may have, "
        "and there is none "
        "for the answer to " +
        requests_[index].method + "; wait for some, or raise streams.max_total_bytes");
  }
  answers_[index].emplace(answer, json::storage_ptr());
  --missing_;
  return {};
}

std::vector<json::value> AskedInputs::release() {
  std::vector<json::value> out;
  out.reserve(answers_.size());
  for (std::optional<json::value>& answer : answers_) out.push_back(std::move(*answer));
  return out;
}

}  // namespace sluice
