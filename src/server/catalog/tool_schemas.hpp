#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "core/log/log.hpp"
#include "core/log/log_limit.hpp"
#include "json_schema/json_schema.hpp"
#include "protocol/mirrored_headers.hpp"
#include "server/catalog/definition.hpp"

namespace sluice {

/// The compiled schemas of a tool, and the HTTP headers that they define.
struct CompiledTool {
  std::string name;
  JsonSchema input;
  std::optional<JsonSchema> output;
  std::vector<ParameterHeader> headers;  // none for most tools
  std::shared_ptr<LogLimit> misfits = std::make_shared<LogLimit>();

  /// Checks whether the structured content of `result` can be sent: text must be JSON, and is put
  /// on one line; a value must be at most kMaxNestedDepth deep. Checks that it follows the output
  /// schema, if there is one; a result that is an error need not. Logs what is wrong. The Error
  /// (-32603) for the client does not say it, because it is not the client's fault.
  [[nodiscard]] Result<void> check(ToolResult& result) const;
};

/// The compiled schemas of all tools of a definition. Immutable, shared by all loops.
class ToolSchemas {
 public:
  /// `definition` must outlive the schemas. The Error names the tool whose schema is not valid or
  /// breaks the rules of `x-mcp-header`, and says where.
  static Result<ToolSchemas> compile(const ServerDefinition& definition);

  /// The schemas of `tool`, which must be in the definition.
  [[nodiscard]] const CompiledTool& of(const Tool& tool) const {
    return tools_[static_cast<std::size_t>(&tool - definition_->tools.data())];
  }

 private:
  explicit ToolSchemas(const ServerDefinition& definition) : definition_(&definition) {}

  const ServerDefinition* definition_;
  std::vector<CompiledTool> tools_;  // in the order of the definition's tools
};

}  // namespace sluice
