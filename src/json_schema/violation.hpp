#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "json/json.hpp"
#include "json_schema/json_schema.hpp"

namespace sluice {

/// A violation while it is being built. Steps of the path are added from the inside to the outside.
struct ViolationDraft {
  std::string message;
  std::vector<std::variant<std::size_t, std::string_view>> path;  // the innermost step first
  std::uint8_t expected_types = 0;  // if the value has none of these types
  bool names_value = false;         // the violated keyword is const or enum
  bool is_unfinished = false;       // JsonSchemaViolation::is_unfinished

  /// How close the instance came to following the schema; larger is closer.
  std::size_t closeness() const;
  JsonSchemaViolation finish() &&;
};

/// Adds the reason why a value does not match one more alternative to `list`. What would make the
/// list longer than a few hundred bytes is left out.
void append_mismatch(std::string& list, std::string_view reason);

/// `matches none of the 2 alternatives: kind: expected "circle", got "line"; ...`, given what
/// append_mismatch() made.
std::string describe_mismatches(std::size_t count, std::string_view list);

/// `integer`, `string or null`, given a set of SchemaType.
std::string describe_types(std::uint8_t types);

/// `integer`, `string`: what the schema would call the type of `value`.
std::string_view type_name(const json::value& value);

/// `value` as JSON text if that is short, otherwise its type. A long string is cut off.
std::string describe_value(const json::value& value);

}  // namespace sluice
