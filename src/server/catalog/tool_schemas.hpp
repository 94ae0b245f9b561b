#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "core/log.hpp"
#include "core/log_limit.hpp"
#include "json_schema/json_schema.hpp"
#include "protocol/mirrored_headers.hpp"
#include "server/catalog/definition.hpp"

namespace sluice {

/// A tool's schemas, compiled, and what they say of HTTP headers.
struct CompiledTool {
  std::string name;
  JsonSchema input;
  std::optional<JsonSchema> output;
  std::vector<ParameterHeader> headers;  // none for most tools
  std::shared_ptr<LogLimit> misfits = std::make_shared<LogLimit>();

  /// Whether the structured content of `result` can be sent: text is JSON, and is put on one line;
  /// a value is at most kMaxNestedDepth deep. And whether it follows the output schema, if there is
  /// one; failures need not. What is wrong is logged: the Error (-32603) goes to the client, whose
  /// fault it is not.
  [[nodiscard]] Result<void> check(ToolResult& result) const;
};

/// The tools of a definition, compiled. Immutable, shared by all loops.
class ToolSchemas {
 public:
  /// `definition` outlives the schemas. The Error names the tool whose schema is none or breaks the
  /// rules of `x-mcp-header`, and where.
  static Result<ToolSchemas> compile(const ServerDefinition& definition);

  /// That of `tool`, one of the definition.
  [[nodiscard]] const CompiledTool& of(const Tool& tool) const {
    return tools_[static_cast<std::size_t>(&tool - definition_->tools.data())];
  }

 private:
  explicit ToolSchemas(const ServerDefinition& definition) : definition_(&definition) {}

  const ServerDefinition* definition_;
  std::vector<CompiledTool> tools_;  // in the order of the definition's
};

}  // namespace sluice
