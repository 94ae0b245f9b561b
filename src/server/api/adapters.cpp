// sluice/detail/adapters.hpp.

#include "sluice/detail/adapters.hpp"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "json/json.hpp"
#include "rpc/error_codes.hpp"
#include "sluice/error.hpp"

namespace sluice::detail {

namespace {

[[noreturn]] void throw_unfit_arguments(const DecodeError& error) {
  throw Error{kInvalidParams, "Invalid params: " + error.describe(), {}};
}

}  // namespace

std::string json_text(const json::value& value) {
  return to_json(value);
}

void decode_arguments(const Type& type, const json::object& arguments, void* out) {
  DecodeError error;
  if (!decode(type, arguments, out, "arguments", UnknownMembers::reject, error)) {
    throw_unfit_arguments(error);
  }
}

void decode_variables(const Type& type, const Variables& variables, void* out) {
  json::object arguments;
  for (const auto& [name, value] : variables) arguments[name] = value;
  DecodeError error;
  if (!decode(type, arguments, out, "arguments", UnknownMembers::ignore, error)) {
    throw_unfit_arguments(error);
  }
}

ToolResult structured_result(json::value value) {
  // The structured content serves as the text, too.
  return {.value = std::make_shared<const json::value>(std::move(value))};
}

ToolResult structured_result(const Type& type, const void* value) {
  return {.value = std::make_shared<const json::value>(encode(type, value))};
}

ToolResult shared(ToolResult&& result) {
  if (!result.structured.is_null() && result.structured_text.empty()) {
    result.value = std::make_shared<const json::value>(std::move(result.structured));
  }
  return std::move(result);
}

ToolResult content_result(Content&& content) {
  ToolResult out;
  out.content.push_back(std::move(content));
  return out;
}

ResourceResult ResourceEncoder::encode(std::vector<ResourceContents> contents) {
  return {.contents = std::move(contents)};
}

ResourceResult ResourceEncoder::encode(ResourceContents contents) {
  ResourceResult out;
  out.contents.push_back(std::move(contents));
  return out;
}

ResourceResult ResourceEncoder::encode(std::string text) {
  return encode(ResourceContents{.uri = {}, .data = std::move(text)});
}

PromptResult PromptAdapter::encode(std::vector<PromptMessage> messages) {
  return {.messages = std::move(messages)};
}

PromptResult PromptAdapter::encode(const std::string& text) {
  // A list of initializers would copy it.
  PromptResult out;
  out.messages.push_back({.content = Content::text(text)});
  return out;
}

ArgumentCompletion CompletionAdapter::encode(std::vector<std::string> values) {
  return {.values = std::move(values)};
}

}  // namespace sluice::detail
