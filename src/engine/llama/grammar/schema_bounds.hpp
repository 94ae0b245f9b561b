#pragma once

#include <string_view>

#include "core/error.hpp"
#include "json/json.hpp"

namespace sluice {

/// Checks that llama.cpp can make a grammar of `schema` within about a tenth of a second and
/// without deep recursion: its converter takes time that grows with the third power of the optional
/// properties of an object and exponentially with nested lists of types, and follows references
/// without a limit. Takes time in proportion to the schema. `budget` is what may be spent, in units
/// of about 100 ns, and loses what this schema takes. Errors: -32602 that begin with `what` and say
/// what to change.
Result<void> check_schema_bounds(const json::value& schema, std::string_view what, double& budget);

/// For one request.
inline constexpr double kSchemaBudget = 1e6;

}  // namespace sluice
