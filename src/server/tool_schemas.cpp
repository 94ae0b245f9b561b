#include "server/tool_schemas.hpp"

#include <utility>

#include "rpc/error_codes.hpp"

namespace sluice {

Result<ToolSchemas> ToolSchemas::compile(const ServerDefinition& definition) {
  ToolSchemas compiled(definition);
  for (const Tool& tool : definition.tools) {
    Result<Compiled> one = compile(tool);
    if (!one) return fail(kInternalError, "Tool '" + tool.name + "': " + one.error().message);
    compiled.tools_.push_back(std::move(*one));
  }
  return compiled;
}

Result<ToolSchemas::Compiled> ToolSchemas::compile(const Tool& tool) {
  const Result<json::value> text = parse_json(tool.input_schema);
  if (!text) return fail(kInternalError, "the input schema is no JSON: " + text.error().message);
  Result<JsonSchema> schema = JsonSchema::compile(*text);
  if (!schema) return std::unexpected(std::move(schema.error()));
  Result<std::vector<ParameterHeader>> headers = find_parameter_headers(*text);
  if (!headers) return std::unexpected(std::move(headers.error()));
  return Compiled{std::move(*schema), std::move(*headers)};
}

std::optional<std::string> ToolSchemas::check(const Tool& tool,
                                              const json::value& arguments) const {
  const auto valid = of(tool).input.validate(arguments);
  if (valid) return std::nullopt;
  return valid.error().describe("arguments");
}

}  // namespace sluice
