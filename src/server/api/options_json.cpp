#include "server/api/options_json.hpp"

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <string_view>

#include "json/json.hpp"
#include "server/catalog/content_json.hpp"

namespace sluice {
namespace {

void put(json::object& object, std::string_view name, const std::optional<bool>& value) {
  if (value) object[name] = *value;
}

}  // namespace

std::string text_or_nothing(const json::value& value) {
  return value.is_null() ? std::string() : to_json(value);
}

std::string text_or_nothing(const json::object& object) {
  return object.empty() ? std::string() : to_json(object);
}

std::string meta_json(const json::object& meta) {
  for (const auto& [name, value] : meta) {
    if (is_deeper_than(value, kMaxMetaDepth - 1)) {
      throw std::invalid_argument("meta is nested in more than " + std::to_string(kMaxMetaDepth) +
                                  " levels; see its member " + std::string(name));
    }
  }
  return text_or_nothing(meta);
}

std::string annotations_json(const ToolAnnotations& annotations) {
  json::object out;
  put(out, "readOnlyHint", annotations.read_only);
  put(out, "destructiveHint", annotations.destructive);
  put(out, "idempotentHint", annotations.idempotent);
  put(out, "openWorldHint", annotations.open_world);
  return text_or_nothing(out);
}

std::string annotations_json(const ContentAnnotations& annotations) {
  json::object out;
  if (!annotations.audience.empty()) {
    out["audience"] = json::array(annotations.audience.begin(), annotations.audience.end());
  }
  if (annotations.priority >= 0) out["priority"] = std::min(annotations.priority, 1.0);
  if (!annotations.last_modified.empty()) out["lastModified"] = annotations.last_modified;
  return text_or_nothing(out);
}

std::string icons_json(const std::vector<Icon>& icons) {
  if (icons.empty()) return {};
  json::array out;
  for (const Icon& icon : icons) {
    json::object each{{"src", icon.src}};
    if (!icon.mime_type.empty()) each["mimeType"] = icon.mime_type;
    if (!icon.sizes.empty()) each["sizes"] = json::array(icon.sizes.begin(), icon.sizes.end());
    if (!icon.theme.empty()) each["theme"] = icon.theme;
    out.push_back(std::move(each));
  }
  return to_json(out);
}

}  // namespace sluice
