#pragma once

#include "core/error.hpp"
#include "core/json.hpp"
#include "core/json_schema.hpp"
#include "core/json_schema_program.hpp"

namespace sluice {

/// Compiles `schema` and every document that its references lead to. A subschema that nothing
/// refers to is compiled too, so that no error in it goes unseen. For errors see
/// JsonSchema::compile().
Result<JsonSchemaProgram> compile_json_schema(const json::value& schema,
                                              const JsonSchemaOptions& options);

}  // namespace sluice
