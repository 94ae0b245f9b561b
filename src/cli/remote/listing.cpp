#include "cli/remote/listing.hpp"

#include <algorithm>

#include "cli/content/schema_hints.hpp"
#include "json/members.hpp"

namespace sluice {
namespace {

void append_argument(std::string& out, std::string_view name, bool is_required,
                     std::string_view type) {
  out.append(out.empty() ? "" : ", ").append(name).append(is_required ? "" : "?");
  if (!type.empty()) out.append(": ").append(type);
}

bool is_true(const json::object& object, std::string_view name) {
  const json::value* const value = object.if_contains(name);
  return value != nullptr && value->is_bool() && value->get_bool();
}

}  // namespace

std::string signature_of(const json::object& definition) {
  std::string out;
  if (const json::object* const schema = object_at(definition, "inputSchema")) {
    const json::object* const properties = object_at(*schema, "properties");
    // Required ones first, as in a call.
    for (const bool is_required : {true, false}) {
      if (properties == nullptr) break;
      for (const auto& [name, property] : *properties) {
        if (requires_property(*schema, name) != is_required) continue;
        append_argument(out, name, is_required, type_text(property, *schema));
      }
    }
  } else if (const json::value* const arguments = definition.if_contains("arguments");
             arguments != nullptr && arguments->is_array()) {
    for (const json::value& each : arguments->get_array()) {
      const json::object* const argument = each.if_object();
      if (argument == nullptr) continue;
      append_argument(out, text_at(*argument, "name"), is_true(*argument, "required"), {});
    }
  }
  return one_line("(" + out + ")");
}

std::string first_sentence(std::string_view description) {
  while (!description.empty() && (description.front() == ' ' || description.front() == '\n')) {
    description.remove_prefix(1);
  }
  std::size_t end = description.find('\n');
  for (const std::string_view stop : {". ", ".\n", "! ", "? "}) {
    const auto at = description.find(stop);
    if (at != std::string_view::npos) end = std::min(end, at + 1);
  }
  std::string out = shortened(one_line(description.substr(0, end)), kMaxSentence);
  if (out.ends_with('.') && !out.ends_with("..")) out.pop_back();
  return out;
}

std::string listing_of(std::span<const Listed> entries, const Style& style) {
  std::string out;
  for (const Listed& entry : entries) {
    std::string_view place = text_at(entry.definition, "uri");
    if (place.empty()) place = text_at(entry.definition, "uriTemplate");
    out.append(style.bold()).append(one_line(place.empty() ? entry.name : place));
    out.append(style.reset());
    if (place.empty()) out.append(signature_of(entry.definition));
    const std::string& about = entry.description.empty() ? entry.title : entry.description;
    const std::string said = first_sentence(about.empty() && !place.empty() ? entry.name : about);
    if (!said.empty()) out.append("  ").append(style.dim()).append(said).append(style.reset());
    out.push_back('\n');
  }
  return out;
}

std::string json_listing(std::string_view key, std::span<const Listed> entries) {
  json::array list;
  for (const Listed& entry : entries) list.push_back(entry.definition);
  return printable_json(to_json(json::object{{key, std::move(list)}})) + "\n";
}

}  // namespace sluice
