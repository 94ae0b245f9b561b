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

/// `integer`, `string or null`, given a set of SchemaType.
std::string describe_types(std::uint8_t types);

/// `integer`, `string`: what the schema would call the type of `value`.
std::string_view type_name(const json::value& value);

/// `value` as JSON text if that is short, otherwise its type. A long string is cut off.
std::string describe_value(const json::value& value);

}  // namespace sluice
