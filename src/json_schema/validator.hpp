#pragma once

#include <cstdint>
#include <expected>

#include "json/json.hpp"
#include "json_schema/program.hpp"
#include "json_schema/violation.hpp"

namespace sluice {

/// Checks whether `instance` follows the schema. If it does not, finds the violation. Each of the
/// two takes at most `max_steps` steps.
std::expected<void, ViolationDraft> check_json_schema(const JsonSchemaProgram& program,
                                                      const json::value& instance,
                                                      std::uint64_t max_steps);

}  // namespace sluice
