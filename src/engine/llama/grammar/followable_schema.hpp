#pragma once

#include <cstdint>

#include "core/error.hpp"
#include "json/json.hpp"

namespace sluice {

/// What to do with parts of a schema that a grammar cannot express.
enum class Inexpressible : std::uint8_t { refused, passed_over };

/// Rewrites `schema` so that the grammar that llama.cpp makes of it accepts only what follows the
/// schema. Patterns become those of followed_pattern(). Bounds of integers and lengths are written
/// in a form that llama.cpp handles correctly, and references without escapes. An `enum` keeps only
/// the values that follow the keywords beside it. Values that llama.cpp does not read as a schema,
/// such as those of `const` and `default`, stay unchanged. `schema` must be within the bounds of
/// check_schema_bounds(). Unless they are `passed_over`, inexpressible parts are errors: -32602,
/// which names the keyword and its place.
Result<json::value> followable_schema(const json::value& schema, Inexpressible what);

}  // namespace sluice
