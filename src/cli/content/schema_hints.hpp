#pragma once

#include <string>
#include <string_view>

#include "json/json.hpp"

namespace sluice {

// What a command needs to know of a JSON Schema: enough to read and to show values. Whether a value
// follows the schema is for the server to say.

/// The types that a schema allows; all of them if it does not say.
struct SchemaTypes {
  bool null = false;
  bool boolean = false;
  bool integer = false;
  bool number = false;  // then integers are numbers too
  bool string = false;
  bool array = false;
  bool object = false;
  bool is_silent = false;  // the schema says nothing of types

  void add(std::string_view type);
};
SchemaTypes types_of(const json::value& schema, const json::object& root);

/// `schema` itself, or what its `$ref` within `root` leads to (JSON Schema, section 8.2.3.1). Null
/// if that is no object, or after kMaxReferences.
const json::object* resolved(const json::value& schema, const json::object& root);
inline constexpr int kMaxReferences = 16;

/// The schema of a property; null if `schema` has no such property and allows no others.
const json::value* property_schema(const json::object& schema, std::string_view name);
/// Whether `schema` requires the property.
bool requires_property(const json::object& schema, std::string_view name);

/// The type in a signature: `string`, `integer|null`, `string[]`, `"a"|"b"`; empty if it may be
/// any.
std::string type_text(const json::value& schema, const json::object& root);

/// A schema as JSON for an error, cut after kMaxQuote bytes.
std::string quoted_schema(const json::value& schema);
inline constexpr std::size_t kMaxQuote = 300;

}  // namespace sluice
