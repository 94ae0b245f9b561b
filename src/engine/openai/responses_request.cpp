#include "engine/openai/responses_request.hpp"

#include <utility>

#include "engine/openai/request_parts.hpp"
#include "rpc/error_codes.hpp"

namespace sluice {
namespace {

constexpr PartForms kResponsesParts = {
    .text = [](std::string_view text) -> json::object {
      return {{"type", "input_text"}, {"text", text}};
    },
    .image = [](const std::string& url) -> json::object {
      return {{"type", "input_image"}, {"image_url", url}, {"detail", "auto"}};
    },
};

/// Adds the images of results, if there are some.
void add_images(ResultImages& images, json::array& input) {
  if (images.is_empty()) return;
  input.push_back(json::object{{"type", "message"}, {"role", "user"}, {"content", images.take()}});
}

/// Adds the items of a message: itself, and one for each call.
void add_items(const ChatMessage& message, CallIds& ids, ResultImages& images, json::array& input) {
  if (message.role == "tool") {
    const std::string id = ids.of_result(message);
    images.add(id, message);
    input.push_back(json::object{
        {"type", "function_call_output"}, {"call_id", id}, {"output", message.content}});
    return;
  }
  if (message.role == "assistant") add_images(images, input);
  ids.forget();
  if (!message.content.empty() || message.tool_calls.empty()) {
    json::object item{{"type", "message"}, {"role", message.role}};
    // What the model has said is another type of text than what it is told.
    if (message.role == "assistant") {
      item["content"] = {{{"type", "output_text"}, {"text", message.content}}};
    } else {
      item["content"] =
          message.role == "user" ? images.before(message) : json::value(message.content);
    }
    input.push_back(std::move(item));
  }
  for (const ChatToolCall& call : message.tool_calls) {
    input.push_back(json::object{{"type", "function_call"},
                                 {"call_id", ids.of_call(call)},
                                 {"name", call.name},
                                 {"arguments", call.arguments}});
  }
}

/// What chat completions have and the Responses API has not.
Result<void> check_chat_parameters(const GenerationRequest& request) {
  static const SamplingParams kDefault;
  const SamplingParams& sampling = request.sampling;
  if (request.stop.empty() && !sampling.seed &&
      sampling.frequency_penalty == kDefault.frequency_penalty &&
      sampling.presence_penalty == kDefault.presence_penalty && sampling.top_k == kDefault.top_k &&
      sampling.min_p == kDefault.min_p && sampling.repeat_penalty == kDefault.repeat_penalty) {
    return {};
  }
  return fail(kInvalidParams,
              "stop, seed, top_k, min_p and penalties are not known to the Responses API of "
              "this model's server; leave them out, or ask it with --model-api chat");
}

void add_format(json::value schema, const Dialect& dialect, json::object& body) {
  if (dialect.responses_take_chat_parameters) {
    body["response_format"] = {
        {"type", "json_schema"},
        {"json_schema", {{"name", "answer"}, {"strict", true}, {"schema", std::move(schema)}}}};
  } else {
    body["text"] = {{"format",
                     {{"type", "json_schema"},
                      {"name", "answer"},
                      {"strict", true},
                      {"schema", std::move(schema)}}}};
  }
}

}  // namespace

Result<json::object> responses_request(const GenerationRequest& request, std::string_view model,
                                       const Dialect& dialect) {
  const auto failed = [](Result<void> result) {
    return std::unexpected(std::move(result.error()));
  };
  json::object body{{"model", model}, {"store", false}};
  json::array input;
  CallIds ids;
  ResultImages images(kResponsesParts);
  for (const ChatMessage& message : request.messages) add_items(message, ids, images, input);
  add_images(images, input);
  if (request.messages.empty()) {
    add_items({.role = "user", .content = request.prompt}, ids, images, input);
  }
  body["input"] = std::move(input);
  if (request.max_tokens) body["max_output_tokens"] = *request.max_tokens;
  if (!dialect.responses_take_chat_parameters) {
    if (Result<void> checked = check_chat_parameters(request); !checked) return failed(checked);
  } else if (!request.stop.empty()) {
    body["stop"] = json::array(request.stop.begin(), request.stop.end());
  }
  if (Result<void> added = add_sampling(request.sampling, dialect, body); !added) {
    return failed(added);
  }
  if (!request.json_schema.empty()) {
    Result<json::value> schema = answer_schema(request.json_schema);
    if (!schema) return std::unexpected(std::move(schema.error()));
    add_format(*std::move(schema), dialect, body);
  }
  if (Result<void> added = add_grammar(request.grammar, dialect, body); !added) {
    return failed(added);
  }
  if (!request.tools.empty()) {
    Result<std::vector<json::object>> functions = functions_of(request.tools);
    if (!functions) return std::unexpected(std::move(functions.error()));
    json::array tools;
    for (json::object& function : *functions) {
      function["type"] = "function";
      // Schemas of MCP rarely have the form that strict calls demand.
      function["strict"] = false;
      tools.push_back(std::move(function));
    }
    if (!tools.empty()) body["tools"] = std::move(tools);
  }
  return body;
}

}  // namespace sluice
