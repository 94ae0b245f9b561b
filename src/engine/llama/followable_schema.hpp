#pragma once

#include <cstdint>

#include "core/error.hpp"
#include "core/json.hpp"

namespace sluice {

/// What becomes of a schema that a grammar cannot express.
enum class Inexpressible : std::uint8_t { refused, passed_over };

/// `schema`, which is within the bounds of check_schema_bounds(), as llama.cpp makes a grammar of
/// it that takes nothing that does not follow the schema: its patterns as followed_pattern(), the
/// bounds of integers and the lengths as it reads them rightly, its references without escapes, of
/// an `enum` the values that follow what stands beside it. What it does not read as a schema stays
/// as it is, so what `const` and `default` hold. Errors: -32602 that say what cannot be expressed,
/// by its keyword, and where it stands, where that is not passed over.
Result<json::value> followable_schema(const json::value& schema, Inexpressible what);

}  // namespace sluice
