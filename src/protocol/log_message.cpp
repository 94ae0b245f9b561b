#include "protocol/log_message.hpp"

#include <string_view>

#include "json/members.hpp"

namespace sluice {

std::string text_of_block(const json::value& block) {
  const json::object* const object = block.if_object();
  if (object == nullptr) return {};
  if (text_at(*object, "type") == "text") return std::string(text_at(*object, "text"));
  if (const json::object* const resource = object_at(*object, "resource")) {
    if (resource->contains("text")) return std::string(text_at(*resource, "text"));
    return "[a resource: " + std::string(text_at(*resource, "uri")) + "]";
  }
  if (object->contains("uri")) return "[a link: " + std::string(text_at(*object, "uri")) + "]";
  return "[" + std::string(text_at(*object, "type")) + ": " +
         std::string(text_at(*object, "mimeType")) + "]";
}

std::string text_of_log_message(const json::object& params) {
  if (const json::value* const data = params.if_contains("data")) {
    if (data->is_string()) return std::string(data->get_string());
    if (data->is_object() && data->get_object().contains("type")) return text_of_block(*data);
    if (!data->is_null()) return to_json(*data);
  }
  const json::value* const content = params.if_contains("content");
  if (content == nullptr || !content->is_array()) return {};
  std::string out;
  for (const json::value& block : content->get_array()) out += text_of_block(block);
  return out;
}

}  // namespace sluice
