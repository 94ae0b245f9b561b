#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "core/json_schema.hpp"
#include "protocol/mirrored_headers.hpp"
#include "server/definition.hpp"

namespace sluice {

/// The schemas of a definition's tools, compiled, and what they say of HTTP headers. Immutable,
/// shared by all loops.
class ToolSchemas {
 public:
  /// `definition` outlives the schemas. The Error names the tool whose schema is none or breaks the
  /// rules of `x-mcp-header`, and where.
  static Result<ToolSchemas> compile(const ServerDefinition& definition);

  /// What is wrong with `arguments` for `tool`, one of the definition; nothing if they follow its
  /// schema.
  [[nodiscard]] std::optional<std::string> check(const Tool& tool,
                                                 const json::value& arguments) const;

  /// Whether the header fields of a request mirror `arguments` as `tool`, one of the definition,
  /// demands. -32020 if not.
  [[nodiscard]] Result<void> check_headers(const Tool& tool, const json::object& arguments,
                                           const HeaderSource& fields) const {
    return check_parameter_headers(of(tool).headers, arguments, fields);
  }

 private:
  struct Compiled {
    JsonSchema input;
    std::vector<ParameterHeader> headers;  // none for most tools
  };

  explicit ToolSchemas(const ServerDefinition& definition) : definition_(&definition) {}

  static Result<Compiled> compile(const Tool& tool);
  [[nodiscard]] const Compiled& of(const Tool& tool) const {
    return tools_[static_cast<std::size_t>(&tool - definition_->tools.data())];
  }

  const ServerDefinition* definition_;
  std::vector<Compiled> tools_;  // in the order of the definition's
};

}  // namespace sluice
