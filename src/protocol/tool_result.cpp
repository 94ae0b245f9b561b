#include "protocol/tool_result.hpp"

#include "json/members.hpp"

namespace sluice {

bool is_tool_error(const json::object& result) {
  const json::value* const is_error = result.if_contains("isError");
  return is_error != nullptr && is_error->is_bool() && is_error->get_bool();
}

std::string text_of_tool_result(const json::object& result) {
  std::string out;
  const json::value* const content = result.if_contains("content");
  if (content == nullptr || !content->is_array()) return out;
  for (const json::value& block : content->get_array()) {
    if (!block.is_object() || text_at(block.get_object(), "type") != "text") continue;
    if (!out.empty()) out.push_back('\n');
    out.append(text_at(block.get_object(), "text"));
  }
  return out;
}

const json::value& structured_of_tool_result(const json::object& result) {
  static const json::value none;
  const json::value* const content = result.if_contains("structuredContent");
  return content == nullptr ? none : *content;
}

}  // namespace sluice
