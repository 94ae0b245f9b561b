#include "client/api/elicitation_defaults.hpp"

#include "json/members.hpp"

namespace sluice {

void fill_in_defaults(const json::object& params, json::object& result) {
  const json::object* const schema = object_at(params, "requestedSchema");
  const json::object* const properties =
      schema == nullptr ? nullptr : object_at(*schema, "properties");
  if (properties == nullptr || text_at(result, "action") != "accept") return;
  json::value& content = result["content"];
  if (content.is_null()) content.emplace_object();
  if (!content.is_object()) return;
  for (const auto& [name, property] : *properties) {
    const json::object* const members = property.if_object();
    const json::value* const initial =
        members == nullptr ? nullptr : members->if_contains("default");
    if (initial != nullptr) content.get_object().emplace(name, *initial);
  }
}

}  // namespace sluice
