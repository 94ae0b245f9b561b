#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "json/json.hpp"

namespace sluice {

// Describes how llama.cpp reads schemas. It knows only some keywords, and if several are combined
// it uses some and ignores the others.

/// Whether `keyword` demands something of values. `format` does not: it is an annotation (JSON
/// Schema Validation, section 7.2.1).
bool is_demand(std::string_view keyword);

/// Says why answers that match the grammar of `schema` may violate a demand of the schema; nothing
/// if they satisfy all. Does not look at schemas inside `schema`, nor at the values of `const` and
/// `enum`. `root` and the targets of references must be within the bounds of check_schema_bounds().
/// `effort` is how many schemas and values may be compared, and is reduced accordingly; a demand
/// that would take more counts as unsatisfied.
std::optional<std::string> unfollowed_demand(const json::object& schema, const json::value& root,
                                             std::size_t& effort);

}  // namespace sluice
