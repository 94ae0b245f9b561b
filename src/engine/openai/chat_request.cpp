#include "engine/openai/chat_request.hpp"

#include <utility>

#include "engine/openai/request_parts.hpp"
#include "engine/openai/server_data.hpp"
#include "json/json.hpp"

namespace sluice {
namespace {

json::object call_of(const ChatToolCall& call, CallIds& ids) {
  return {{"id", ids.of_call(call)},
          {"type", "function"},
          {"function", {{"name", call.name}, {"arguments", call.arguments}}}};
}

constexpr PartForms kChatParts = {
    .text = [](std::string_view text) -> json::object {
      return {{"type", "text"}, {"text", text}};
    },
    .image = [](const std::string& url) -> json::object {
      return {{"type", "image_url"}, {"image_url", {{"url", url}}}};
    },
};

json::object message_of(const ChatMessage& message, std::string_view server, CallIds& ids,
                        ResultImages& images) {
  json::object out{{"role", message.role}};
  out["content"] = message.role == "user" ? images.before(message) : json::value(message.content);
  if (message.role == "tool") {
    const std::string id = ids.of_result(message);
    images.add(id, message);
    out["tool_call_id"] = id;
    return out;
  }
  ids.forget();
  if (message.tool_calls.empty()) return out;
  json::array calls;
  for (const ChatToolCall& call : message.tool_calls) calls.push_back(call_of(call, ids));
  out["tool_calls"] = std::move(calls);
  give_back(message.server_data, server, out);
  return out;
}

}  // namespace

Result<std::string> chat_request(const GenerationRequest& request, std::string_view model,
                                 const Dialect& dialect, std::string_view server) {
  json::object body{
      {"model", model}, {"stream", true}, {"stream_options", {{"include_usage", true}}}};
  json::array messages;
  CallIds ids;
  ResultImages images(kChatParts);
  const auto show_images = [&] {
    if (!images.is_empty()) {
      messages.push_back(json::object{{"role", "user"}, {"content", images.take()}});
    }
  };
  for (const ChatMessage& message : request.messages) {
    if (message.role == "assistant") show_images();
    messages.push_back(message_of(message, server, ids, images));
  }
  show_images();
  if (request.messages.empty()) {
    messages.push_back(json::object{{"role", "user"}, {"content", request.prompt}});
  }
  body["messages"] = std::move(messages);
  if (request.max_tokens) {
    body[dialect.renames_max_tokens ? "max_completion_tokens" : "max_tokens"] = *request.max_tokens;
  }
  if (!request.stop.empty()) body["stop"] = json::array(request.stop.begin(), request.stop.end());
  if (Result<void> added = add_sampling(request.sampling, dialect, body); !added) {
    return std::unexpected(std::move(added.error()));
  }
  if (!request.json_schema.empty()) {
    Result<json::value> schema = answer_schema(request.json_schema);
    if (!schema) return std::unexpected(std::move(schema.error()));
    body["response_format"] = {
        {"type", "json_schema"},
        {"json_schema", {{"name", "answer"}, {"strict", true}, {"schema", *std::move(schema)}}}};
  }
  if (Result<void> added = add_grammar(request.grammar, dialect, body); !added) {
    return std::unexpected(std::move(added.error()));
  }
  if (!request.tools.empty()) {
    Result<std::vector<json::object>> functions = functions_of(request.tools);
    if (!functions) return std::unexpected(std::move(functions.error()));
    json::array tools;
    for (json::object& function : *functions) {
      tools.push_back(json::object{{"type", "function"}, {"function", std::move(function)}});
    }
    if (!tools.empty()) body["tools"] = std::move(tools);
  }
  return to_json(body);
}

}  // namespace sluice
