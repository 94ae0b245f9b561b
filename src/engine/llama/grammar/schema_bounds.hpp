#pragma once

#include <string_view>

#include "core/error.hpp"
#include "json/json.hpp"

namespace sluice {

/// Checks that llama.cpp can make a grammar of `schema` within about a tenth of a second and
/// without deep recursion. The time of its converter grows with the third power of an object's
/// optional properties and exponentially with nested lists of types, and it follows references
/// without a limit. This check takes time proportional to the schema. `budget` is what may be
/// spent, in units of about 100 ns, and is reduced by the cost of this schema. Error: -32602, which
/// begins with `what` and says what to change.
Result<void> check_schema_bounds(const json::value& schema, std::string_view what, double& budget);

/// The budget of one request.
inline constexpr double kSchemaBudget = 1e6;

}  // namespace sluice
