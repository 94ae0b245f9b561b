#pragma once

#include "core/error.hpp"
#include "core/json.hpp"
#include "core/json_schema.hpp"
#include "core/json_schema_program.hpp"

namespace sluice {

/// Compiles `schema` and every document that its references lead to. Subschemas that nothing refers
/// to are compiled too, so that their errors are found. For errors see JsonSchema::compile().
Result<JsonSchemaProgram> compile_json_schema(const json::value& schema,
                                              const JsonSchemaOptions& options);

}  // namespace sluice
