#pragma once

#include <expected>

#include "core/json.hpp"
#include "core/json_schema_program.hpp"
#include "core/json_schema_violation.hpp"

namespace sluice {

/// Whether `instance` follows the schema, and how not.
std::expected<void, ViolationDraft> check_json_schema(const JsonSchemaProgram& program,
                                                      const json::value& instance);

}  // namespace sluice
