#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "json/json.hpp"

namespace sluice {

// How llama.cpp reads schemas: of many keywords it knows some, and of those that stand together it
// takes some and ignores the others.

/// Whether that keyword demands something. `format` does not: it is an annotation (JSON Schema
/// Validation, section 7.2.1).
bool is_demand(std::string_view keyword);

/// Why answers by the grammar of `schema` may break a demand of its own; nothing if they follow
/// all. What is within other schemas is not looked at, nor the values of `const` and `enum`. `root`
/// is within the bounds of check_schema_bounds(), and what references refer to. `effort` is how
/// many schemas and values may be compared, and goes down: what would take more counts as
/// unfollowed.
std::optional<std::string> unfollowed_demand(const json::object& schema, const json::value& root,
                                             std::size_t& effort);

}  // namespace sluice
