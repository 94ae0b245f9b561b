#pragma once

#include <cstdint>
#include <expected>

#include "json/json.hpp"
#include "json_schema/program.hpp"
#include "json_schema/violation.hpp"

namespace sluice {

/// Whether `instance` follows the schema, and how not, in at most `max_steps` for either.
std::expected<void, ViolationDraft> check_json_schema(const JsonSchemaProgram& program,
                                                      const json::value& instance,
                                                      std::uint64_t max_steps);

}  // namespace sluice
