#include "cli/content/schema_hints.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "cli/terminal/terminal.hpp"
#include "json/members.hpp"

namespace sluice {
namespace {

constexpr int kMaxNesting = 8;            // of alternatives
constexpr int kMaxAlternatives = 64;      // all that are looked at for one type
constexpr std::size_t kMaxShownEnum = 6;  // values in a signature

const json::array* array_at(const json::object& object, std::string_view name) {
  const json::value* const value = object.if_contains(name);
  return value == nullptr ? nullptr : value->if_array();
}

std::string_view type_of(const json::value& value) {
  if (value.is_null()) return "null";
  if (value.is_bool()) return "boolean";
  if (value.is_string()) return "string";
  if (value.is_array()) return "array";
  if (value.is_object()) return "object";
  return value.is_double() ? "number" : "integer";
}

/// `left`: how many more schemas may be looked at. By references, a short schema can mean billions.
void add_types(SchemaTypes& types, const json::value& schema, const json::object& root, int depth,
               int& left) {
  const bool may_look = depth < kMaxNesting && left-- > 0;
  const json::object* const members = may_look ? resolved(schema, root) : nullptr;
  if (members == nullptr) {
    types.is_silent = true;
    return;
  }
  if (const auto type = text_at(*members, "type"); !type.empty()) return types.add(type);
  if (const auto* listed = array_at(*members, "type")) {
    for (const json::value& each : *listed) {
      if (each.is_string()) types.add(each.get_string());
    }
    return;
  }
  if (const auto* values = array_at(*members, "enum")) {
    for (const json::value& each : *values) types.add(type_of(each));
    return;
  }
  if (const json::value* const only = members->if_contains("const")) {
    return types.add(type_of(*only));
  }
  for (const std::string_view key : {"anyOf", "oneOf"}) {
    if (const auto* alternatives = array_at(*members, key)) {
      for (const json::value& each : *alternatives) {
        if (left <= 0) break;
        add_types(types, each, root, depth + 1, left);
      }
      return;
    }
  }
  if (members->contains("properties")) return types.add("object");
  types.is_silent = true;
}

std::string type_text_at(const json::value& schema, const json::object& root, int depth) {
  const json::object* const members = depth < kMaxNesting ? resolved(schema, root) : nullptr;
  if (members == nullptr) return {};
  if (const auto* values = array_at(*members, "enum"); values != nullptr && !values->empty()) {
    std::string out;
    for (const json::value& each : *values) {
      if (&each == values->begin() + kMaxShownEnum) return out + "|...";
      out.append(out.empty() ? "" : "|").append(to_json(each));
    }
    return out;
  }
  const SchemaTypes types = types_of(schema, root);
  if (types.is_silent) return {};
  std::string out;
  const auto add = [&out](bool is_allowed, std::string_view name) {
    if (is_allowed) out.append(out.empty() ? "" : "|").append(name);
  };
  add(types.string, "string");
  add(types.number, "number");
  add(types.integer && !types.number, "integer");
  add(types.boolean, "boolean");
  if (types.array) {
    const json::value* const items = members->if_contains("items");
    const std::string of = items == nullptr ? "" : type_text_at(*items, root, depth + 1);
    add(true, of.empty() ? "array" : of.contains('|') ? "(" + of + ")[]" : of + "[]");
  }
  add(types.object, "object");
  add(types.null, "null");
  return out;
}

}  // namespace

void SchemaTypes::add(std::string_view type) {
  const std::array<std::pair<std::string_view, bool*>, 7> known = {{{"null", &null},
                                                                    {"boolean", &boolean},
                                                                    {"integer", &integer},
                                                                    {"number", &number},
                                                                    {"string", &string},
                                                                    {"array", &array},
                                                                    {"object", &object}}};
  for (const auto& [name, is_allowed] : known) {
    if (name == type) *is_allowed = true;
  }
}

SchemaTypes types_of(const json::value& schema, const json::object& root) {
  SchemaTypes types;
  int left = kMaxAlternatives;
  add_types(types, schema, root, 0, left);
  types.is_silent = types.is_silent || left <= 0;
  return types;
}

const json::object* resolved(const json::value& schema, const json::object& root) {
  const json::value* at = &schema;
  for (int i = 0; i < kMaxReferences; ++i) {
    const json::object* const members = at->if_object();
    if (members == nullptr) return nullptr;
    const std::string_view reference = text_at(*members, "$ref");
    if (reference.empty()) return members;
    if (reference == "#") return &root;
    if (!reference.starts_with("#/")) return nullptr;
    // Names with `~` or `%` in them are not looked up.
    const json::object* from = &root;
    std::string_view rest = reference.substr(2);
    at = nullptr;
    while (from != nullptr) {
      const auto slash = rest.find('/');
      at = from->if_contains(rest.substr(0, slash));
      if (at == nullptr || slash == std::string_view::npos) break;
      from = at->if_object();
      rest.remove_prefix(slash + 1);
      at = nullptr;
    }
    if (at == nullptr) return nullptr;
  }
  return nullptr;
}

const json::value* property_schema(const json::object& schema, std::string_view name) {
  static const json::value kAnything = json::object();
  const json::object* const properties = object_at(schema, "properties");
  if (properties != nullptr) {
    if (const json::value* const found = properties->if_contains(name)) return found;
  }
  const json::value* const others = schema.if_contains("additionalProperties");
  if (others != nullptr && others->is_object()) return others;
  if (others != nullptr && others->is_bool()) return others->get_bool() ? &kAnything : nullptr;
  // Who lists the properties means these, although JSON Schema would allow others too.
  const bool is_open = properties == nullptr || schema.contains("patternProperties");
  return is_open ? &kAnything : nullptr;
}

bool requires_property(const json::object& schema, std::string_view name) {
  const auto* const required = array_at(schema, "required");
  return required != nullptr && std::ranges::any_of(*required, [&](const json::value& each) {
           return each.is_string() && each.get_string() == name;
         });
}

std::string type_text(const json::value& schema, const json::object& root) {
  return type_text_at(schema, root, 0);
}

std::string quoted_schema(const json::value& schema) {
  return shortened(to_json(schema), kMaxQuote);
}

}  // namespace sluice
