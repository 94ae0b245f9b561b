#include "json_schema/json_schema.hpp"

#include <utility>

#include "json_schema/compiler.hpp"
#include "json_schema/program.hpp"
#include "json_schema/validator.hpp"
#include "json_schema/violation.hpp"

namespace sluice {

JsonSchema::JsonSchema(std::shared_ptr<const JsonSchemaProgram> program)
    : program_(std::move(program)) {}

Result<JsonSchema> JsonSchema::compile(const json::value& schema,
                                       const JsonSchemaOptions& options) {
  Result<JsonSchemaProgram> program = compile_json_schema(schema, options);
  if (!program) return std::unexpected(std::move(program).error());
  return JsonSchema(std::make_shared<const JsonSchemaProgram>(*std::move(program)));
}

std::expected<void, JsonSchemaViolation> JsonSchema::validate(const json::value& instance,
                                                              std::uint64_t max_steps) const {
  std::expected<void, ViolationDraft> checked = check_json_schema(*program_, instance, max_steps);
  if (checked) return {};
  return std::unexpected(std::move(checked).error().finish());
}

std::size_t JsonSchema::memory() const {
  return program_->memory;
}

}  // namespace sluice
