#include "server/catalog/tool_schemas.hpp"

#include <string_view>
#include <utility>

#include "core/log/log.hpp"
#include "rpc/error_codes.hpp"

namespace sluice {
namespace {

Result<json::value> read_schema(std::string_view which, std::string_view text) {
  Result<json::value> schema = parse_json(text);
  if (schema) return schema;
  return fail(kInternalError,
              "the " + std::string(which) + " schema is no JSON: " + schema.error().message);
}

Result<CompiledTool> compile_tool(const Tool& tool) {
  const Result<json::value> text = read_schema("input", tool.input_schema);
  if (!text) return std::unexpected(text.error());
  // All revisions require it, and clients reject a whole list if one tool lacks it.
  const json::object* const root = text->if_object();
  const json::value* const type = root == nullptr ? nullptr : root->if_contains("type");
  if (type == nullptr || *type != "object") {
    return fail(kInternalError, R"(the input schema must have "type": "object")");
  }
  Result<JsonSchema> input = JsonSchema::compile(
      *text, {.assert_formats = true, .null_for_optional = tool.null_for_optional});
  if (!input) return std::unexpected(std::move(input.error()));
  Result<std::vector<ParameterHeader>> headers = find_parameter_headers(*text);
  if (!headers) return std::unexpected(std::move(headers.error()));
  CompiledTool compiled{tool.name, std::move(*input), {}, std::move(*headers)};
  if (!tool.output_schema.empty()) {
    const Result<json::value> output_text = read_schema("output", tool.output_schema);
    if (!output_text) return std::unexpected(output_text.error());
    Result<JsonSchema> output = JsonSchema::compile(*output_text);
    if (!output) return std::unexpected(std::move(output.error()));
    compiled.output = std::move(*output);
  }
  return compiled;
}

/// Says what is wrong with the structured content. Returns nothing if it can be sent and follows
/// `schema`, which may be null. Puts JSON text on one line.
std::optional<std::string> fault_of(ToolResult& result, const JsonSchema* schema) {
  Result<json::value> read;
  const json::value* value = result.value.get();
  if (!result.structured_text.empty()) {
    read = parse_json(result.structured_text);
    if (!read) return "the structured content is no JSON: " + read.error().message;
    put_on_one_line(result.structured_text);
    value = &*read;
  }
  if (value == nullptr) {
    if (schema == nullptr) return std::nullopt;
    return "there is no structured content";
  }
  if (is_deeper_than(*value, kMaxNestedDepth)) {
    return "the structured content is nested in more than " + std::to_string(kMaxNestedDepth) +
           " levels";
  }
  if (schema == nullptr) return std::nullopt;
  const auto valid = schema->validate(*value);
  if (valid) return std::nullopt;
  return valid.error().describe("structuredContent");
}

}  // namespace

Result<ToolSchemas> ToolSchemas::compile(const ServerDefinition& definition) {
  ToolSchemas compiled(definition);
  for (const Tool& tool : definition.tools) {
    Result<CompiledTool> one = compile_tool(tool);
    if (!one) return fail(kInternalError, "Tool '" + tool.name + "': " + one.error().message);
    compiled.tools_.push_back(std::move(*one));
  }
  return compiled;
}

Result<void> CompiledTool::check(ToolResult& result) const {
  const std::optional<std::string> wrong =
      fault_of(result, output && !result.is_error ? &*output : nullptr);
  if (!wrong) return {};
  if (const std::optional<std::int64_t> left_out = misfits->take()) {
    log_error("a tool has made no valid result", {{"tool", std::string_view(name)},
                                                  {"why", std::string_view(*wrong)},
                                                  {"left_out", *left_out}});
  }
  return fail(kInternalError, "Internal error: tool '" + name + "' has made no valid result");
}

}  // namespace sluice
