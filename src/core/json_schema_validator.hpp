#pragma once

#include "core/json.hpp"
#include "core/json_schema_program.hpp"
#include "core/json_schema_violation.hpp"

namespace sluice {

/// Whether `instance` follows the schema. If it does not, and `violation` is given, that says why;
/// asking for it makes the work slower, and allocates also on the way to "yes".
bool follows_json_schema(const JsonSchemaProgram& program, const json::value& instance,
                         ViolationDraft* violation);

}  // namespace sluice
