#pragma once

#include "core/error.hpp"
#include "json/json.hpp"
#include "json_schema/json_schema.hpp"
#include "json_schema/program.hpp"

namespace sluice {

/// Compiles `schema` and every document that its references lead to. Subschemas that nothing refers
/// to are compiled too, so that their errors are found. For errors see JsonSchema::compile().
Result<JsonSchemaProgram> compile_json_schema(const json::value& schema,
                                              const JsonSchemaOptions& options);

}  // namespace sluice
