#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "core/json_schema.hpp"
#include "server/definition.hpp"

namespace sluice {

/// The input schemas of a definition's tools, compiled. Immutable, shared by all loops.
class ToolSchemas {
 public:
  /// `definition` outlives the schemas. The Error names the tool whose schema is none, and where.
  static Result<ToolSchemas> compile(const ServerDefinition& definition);

  /// What is wrong with `arguments` for `tool`, one of the definition; nothing if they follow its
  /// schema.
  [[nodiscard]] std::optional<std::string> check(const Tool& tool,
                                                 const json::value& arguments) const;

 private:
  explicit ToolSchemas(const ServerDefinition& definition) : definition_(&definition) {}

  const ServerDefinition* definition_;
  std::vector<JsonSchema> schemas_;  // in the order of the tools
};

}  // namespace sluice
