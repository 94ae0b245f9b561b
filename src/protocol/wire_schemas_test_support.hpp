#pragma once

#include <array>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "json/json.hpp"
#include "json_schema/json_schema.hpp"
#include "protocol/revision.hpp"

namespace sluice {

/// The schema that the specification publishes for a revision (tests/schemas/). Tests check
/// messages with it.
class WireSchema {
 public:
  /// The folder tests/schemas of the source tree that this was compiled in.
  static std::filesystem::path folder() {
    return std::filesystem::path(__FILE__).parent_path() / "../../tests/schemas";
  }

  static const WireSchema& of(const Revision& revision) {
    static std::map<const Revision*, WireSchema> schemas;
    const auto found = schemas.find(&revision);
    if (found != schemas.end()) return found->second;
    return schemas.emplace(&revision, WireSchema(revision.name)).first->second;
  }

  [[nodiscard]] bool has(std::string_view definition) const {
    return definitions().contains(definition);
  }

  /// Checks `value` against `definition`, which must exist. Returns what is wrong, or an empty
  /// string.
  std::string check(const json::value& value, std::string_view definition) const {
    auto compiled = compiled_.find(definition);
    if (compiled == compiled_.end()) {
      const json::value reference = {
          {"$ref", std::string(kUri) + "#/" + keyword_ + "/" + std::string(definition)}};
      JsonSchemaOptions options;
      options.documents = &documents_;
      options.limits.max_subschemas = 100'000;
      compiled =
          compiled_
              .emplace(std::string(definition), JsonSchema::compile(reference, options).value())
              .first;
    }
    const auto valid = compiled->second.validate(value);
    return valid ? std::string() : valid.error().describe(definition);
  }

  /// Checks a message that a server sends: a response to a request of `method`, or a request or
  /// notification, which is checked by its own method. Returns what is wrong, or an empty string.
  /// For methods that the revision does not have, only the envelope is checked.
  std::string check_sent(const json::value& message, std::string_view method) const {
    const json::object& members = message.as_object();
    // A request without a usable id is answered without an id. The schemas before 2025-11-25 have
    // no such response.
    if (!members.contains("id") && members.contains("error") && !has("JSONRPCErrorResponse")) {
      return {};
    }
    std::string wrong = check(message, "JSONRPCMessage");
    if (!wrong.empty()) return wrong;
    if (const json::value* own = members.if_contains("method")) {
      return check_known(message, of_message(own->as_string()));
    }
    if (const json::value* error = members.if_contains("error")) {
      return check_known(message, of_error(error->at("code").as_int64()));
    }
    const json::value& result = members.at("result");
    const json::value* const type = result.as_object().if_contains("resultType");
    if (type != nullptr && *type == "input_required") return check(result, "InputRequiredResult");
    // A call may become a task. The schemas do not contain the extension of 2026-07-28 (SEP-2663).
    if (type != nullptr && *type == "task") return check(result, "Result");
    if (result.as_object().contains("task")) return check(result, "CreateTaskResult");
    return check_known(result, of_result(method));
  }

  /// Checks a message that a client sends. Returns what is wrong, or an empty string. For methods
  /// that the revision does not have, only the envelope is checked.
  std::string check_received(const json::value& message) const {
    const std::string wrong = check(message, "JSONRPCMessage");
    const json::value* const method = message.as_object().if_contains("method");
    if (!wrong.empty() || method == nullptr) return wrong;
    return check_known(message, of_asked(method->as_string()));
  }

 private:
  static constexpr std::string_view kUri = "https://schema.test/";
  using Names = std::pair<std::string_view, std::string_view>;

  explicit WireSchema(std::string_view revision) {
    const std::filesystem::path path = folder() / revision / "schema.json";
    std::ifstream file(path, std::ios::binary);
    const std::string text(std::istreambuf_iterator<char>(file), {});
    json::value schema = parse_json(text).value();
    keyword_ = schema.as_object().contains("$defs") ? "$defs" : "definitions";
    documents_.emplace(kUri, std::move(schema));
  }

  [[nodiscard]] const json::object& definitions() const {
    return documents_.begin()->second.at(keyword_).as_object();
  }

  std::string check_known(const json::value& value, std::string_view definition) const {
    return definition.empty() || !has(definition) ? std::string() : check(value, definition);
  }

  template <std::size_t kCount>
  static std::string_view find(const std::array<Names, kCount>& names, std::string_view name) {
    for (const auto& [method, definition] : names) {
      if (method == name) return definition;
    }
    return {};
  }

  static std::string_view of_result(std::string_view method) {
    static constexpr std::array<Names, 20> kResults = {{
        {"initialize", "InitializeResult"},
        {"server/discover", "DiscoverResult"},
        {"ping", "EmptyResult"},
        {"tools/list", "ListToolsResult"},
        {"tools/call", "CallToolResult"},
        {"resources/list", "ListResourcesResult"},
        {"resources/templates/list", "ListResourceTemplatesResult"},
        {"resources/read", "ReadResourceResult"},
        {"resources/subscribe", "EmptyResult"},
        {"resources/unsubscribe", "EmptyResult"},
        {"prompts/list", "ListPromptsResult"},
        {"prompts/get", "GetPromptResult"},
        {"completion/complete", "CompleteResult"},
        {"logging/setLevel", "EmptyResult"},
        {"subscriptions/listen", "SubscriptionsListenResult"},
        {"skills/list", "PaginatedResult"},
        {"skills/get", "Result"},
        {"resources/directory/read", "ListResourcesResult"},
        {"tasks/list", "ListTasksResult"},
        {"tasks/cancel", "CancelTaskResult"},
    }};
    return find(kResults, method);
  }

  static std::string_view of_asked(std::string_view method) {
    static constexpr std::array<Names, 20> kAsked = {{
        {"initialize", "InitializeRequest"},
        {"notifications/initialized", "InitializedNotification"},
        {"server/discover", "DiscoverRequest"},
        {"ping", "PingRequest"},
        {"tools/list", "ListToolsRequest"},
        {"tools/call", "CallToolRequest"},
        {"resources/list", "ListResourcesRequest"},
        {"resources/templates/list", "ListResourceTemplatesRequest"},
        {"resources/read", "ReadResourceRequest"},
        {"resources/subscribe", "SubscribeRequest"},
        {"resources/unsubscribe", "UnsubscribeRequest"},
        {"prompts/list", "ListPromptsRequest"},
        {"prompts/get", "GetPromptRequest"},
        {"completion/complete", "CompleteRequest"},
        {"logging/setLevel", "SetLevelRequest"},
        {"subscriptions/listen", "SubscriptionsListenRequest"},
        {"notifications/cancelled", "CancelledNotification"},
        {"tasks/get", "GetTaskRequest"},
        {"tasks/result", "GetTaskPayloadRequest"},
        {"tasks/list", "ListTasksRequest"},
    }};
    return find(kAsked, method);
  }

  static std::string_view of_message(std::string_view method) {
    static constexpr std::array<Names, 14> kMessages = {{
        {"ping", "PingRequest"},
        {"elicitation/create", "ElicitRequest"},
        {"sampling/createMessage", "CreateMessageRequest"},
        {"roots/list", "ListRootsRequest"},
        {"notifications/progress", "ProgressNotification"},
        {"notifications/message", "LoggingMessageNotification"},
        {"notifications/cancelled", "CancelledNotification"},
        {"notifications/tools/list_changed", "ToolListChangedNotification"},
        {"notifications/prompts/list_changed", "PromptListChangedNotification"},
        {"notifications/resources/list_changed", "ResourceListChangedNotification"},
        {"notifications/resources/updated", "ResourceUpdatedNotification"},
        {"notifications/subscriptions/acknowledged", "SubscriptionsAcknowledgedNotification"},
        {"notifications/elicitation/complete", "ElicitationCompleteNotification"},
        {"notifications/tasks/status", "TaskStatusNotification"},
    }};
    return find(kMessages, method);
  }

  static std::string_view of_error(std::int64_t code) {
    switch (code) {
      case -32020:
        return "HeaderMismatchError";
      case -32021:
        return "MissingRequiredClientCapabilityError";
      case -32022:
        return "UnsupportedProtocolVersionError";
      default:
        return {};
    }
  }

  std::string keyword_;
  JsonSchemaDocuments documents_;
  mutable std::map<std::string, JsonSchema, std::less<>> compiled_;
};

/// What a test knows about a request, to check the messages that answer it.
struct SentCheck {
  const Revision* revision = nullptr;  // null: check nothing
  std::string method;

  void expect_valid(std::string_view message) const {
    if (revision == nullptr || message.empty()) return;
    const Result<json::value> value = parse_json(message);
    ASSERT_TRUE(value) << message;
    const std::string wrong = WireSchema::of(*revision).check_sent(*value, method);
    EXPECT_EQ(wrong, "") << "in " << revision->name << ", answering " << method << ": " << message;
  }
};

}  // namespace sluice
