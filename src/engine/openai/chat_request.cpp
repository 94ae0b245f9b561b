#include "engine/openai/chat_request.hpp"

#include <cstddef>
#include <deque>
#include <optional>
#include <utility>

#include "json/json.hpp"
#include "json/members.hpp"
#include "rpc/error_codes.hpp"

namespace sluice {
namespace {

/// Gives ids to calls and results that have none.
class CallIds {
 public:
  std::string of_call(const ChatToolCall& call) {
    std::string id = call.id.empty() ? "call_" + std::to_string(++count_) : call.id;
    open_.push_back(id);
    return id;
  }
  std::string of_result(const ChatMessage& message) {
    if (!message.tool_call_id.empty()) {
      std::erase(open_, message.tool_call_id);
      return message.tool_call_id;
    }
    if (open_.empty()) return "call_0";
    std::string id = std::move(open_.front());
    open_.pop_front();
    return id;
  }
  void forget() { open_.clear(); }

 private:
  std::size_t count_ = 0;
  std::deque<std::string> open_;
};

json::object call_of(const ChatToolCall& call, CallIds& ids) {
  return {{"id", ids.of_call(call)},
          {"type", "function"},
          {"function", {{"name", call.name}, {"arguments", call.arguments}}}};
}

json::object message_of(const ChatMessage& message, CallIds& ids) {
  json::object out{{"role", message.role}, {"content", message.content}};
  if (message.role == "tool") {
    out["tool_call_id"] = ids.of_result(message);
    return out;
  }
  ids.forget();
  if (message.tool_calls.empty()) return out;
  json::array calls;
  for (const ChatToolCall& call : message.tool_calls) calls.push_back(call_of(call, ids));
  out["tool_calls"] = std::move(calls);
  return out;
}

/// A tool as these APIs define it, from MCP's definition or their own.
json::object tool_of(const json::object& given) {
  const json::object* const function = object_at(given, "function");
  const json::object& definition = function == nullptr ? given : *function;
  json::object out{{"name", text_at(definition, "name")}};
  if (const std::string_view text = text_at(definition, "description"); !text.empty()) {
    out["description"] = text;
  }
  const json::object* schema = object_at(definition, "parameters");
  if (schema == nullptr) schema = object_at(definition, "inputSchema");
  out["parameters"] = schema == nullptr
                          ? json::object{{"type", "object"}, {"properties", json::object()}}
                          : *schema;
  return {{"type", "function"}, {"function", std::move(out)}};
}

Result<json::array> tools_of(const std::string& text) {
  const Result<json::value> parsed = parse_json(text);
  if (!parsed) return fail(kInvalidParams, "tools must be JSON: " + parsed.error().message);
  if (!parsed->is_array()) {
    return fail(kInvalidParams, "tools must be an array of tool definitions");
  }
  json::array out;
  for (const json::value& tool : parsed->get_array()) {
    if (!tool.is_object()) return fail(kInvalidParams, "each tool in tools must be an object");
    out.push_back(tool_of(tool.get_object()));
  }
  return out;
}

Result<void> add_sampling(const SamplingParams& sampling, const Dialect& dialect,
                          json::object& body) {
  static const SamplingParams kDefault;
  // 32-bit numbers would have a tail of digits as 64-bit ones.
  const auto number = [](float value) { return std::stod(std::to_string(value)); };
  if (sampling.temperature) body["temperature"] = number(*sampling.temperature);
  if (sampling.seed) body["seed"] = *sampling.seed;
  if (sampling.top_p != kDefault.top_p) body["top_p"] = number(sampling.top_p);
  if (sampling.frequency_penalty != kDefault.frequency_penalty) {
    body["frequency_penalty"] = number(sampling.frequency_penalty);
  }
  if (sampling.presence_penalty != kDefault.presence_penalty) {
    body["presence_penalty"] = number(sampling.presence_penalty);
  }
  const bool is_local = sampling.top_k != kDefault.top_k || sampling.min_p != kDefault.min_p ||
                        sampling.repeat_penalty != kDefault.repeat_penalty;
  if (!is_local) return {};
  if (!dialect.has_local_sampling) {
    return fail(kInvalidParams,
                "top_k, min_p and repeat_penalty are not known to the server of "
                "this model; leave them out");
  }
  body["top_k"] = sampling.top_k;
  body["min_p"] = number(sampling.min_p);
  body[dialect.repeat_penalty] = number(sampling.repeat_penalty);
  return {};
}

}  // namespace

Result<std::string> chat_request(const GenerationRequest& request, std::string_view model,
                                 const Dialect& dialect) {
  json::object body{
      {"model", model}, {"stream", true}, {"stream_options", {{"include_usage", true}}}};
  json::array messages;
  CallIds ids;
  for (const ChatMessage& message : request.messages) messages.push_back(message_of(message, ids));
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
    Result<json::value> schema = parse_json(request.json_schema);
    if (!schema) return fail(kInvalidParams, "json_schema must be JSON: " + schema.error().message);
    body["response_format"] = {
        {"type", "json_schema"},
        {"json_schema", {{"name", "answer"}, {"strict", true}, {"schema", *std::move(schema)}}}};
  }
  if (!request.grammar.empty()) {
    if (!dialect.has_grammar) {
      return fail(kInvalidParams,
                  "grammar is not known to the server of this model; use "
                  "json_schema, or leave it out");
    }
    body["grammar"] = request.grammar;
  }
  if (!request.tools.empty()) {
    Result<json::array> tools = tools_of(request.tools);
    if (!tools) return std::unexpected(std::move(tools.error()));
    if (!tools->empty()) body["tools"] = *std::move(tools);
  }
  return to_json(body);
}

}  // namespace sluice
