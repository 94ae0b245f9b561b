#include "server/tool_schemas.hpp"

#include <utility>

#include "rpc/error_codes.hpp"

namespace sluice {

Result<ToolSchemas> ToolSchemas::compile(const ServerDefinition& definition) {
  ToolSchemas compiled(definition);
  for (const Tool& tool : definition.tools) {
    const Result<json::value> text = parse_json(tool.input_schema);
    if (!text) {
      return fail(kInternalError, "The input schema of tool '" + tool.name +
                                      "' is no JSON: " + text.error().message);
    }
    Result<JsonSchema> schema = JsonSchema::compile(*text);
    if (!schema) {
      return fail(kInternalError, "Tool '" + tool.name + "': " + schema.error().message);
    }
    compiled.schemas_.push_back(std::move(*schema));
  }
  return compiled;
}

std::optional<std::string> ToolSchemas::check(const Tool& tool,
                                              const json::value& arguments) const {
  const auto index = static_cast<std::size_t>(&tool - definition_->tools.data());
  const auto valid = schemas_[index].validate(arguments);
  if (valid) return std::nullopt;
  return valid.error().describe("arguments");
}

}  // namespace sluice
