#pragma once

#include "core/error.hpp"
#include "json/json.hpp"
#include "json_schema/json_schema.hpp"
#include "json_schema/program.hpp"

namespace sluice {

/// Compiles `schema` and every document that its references lead to. A subschema that nothing
/// refers to is compiled too, so that no error in it goes unseen. For errors see
/// JsonSchema::compile().
Result<JsonSchemaProgram> compile_json_schema(const json::value& schema,
                                              const JsonSchemaOptions& options);

}  // namespace sluice
