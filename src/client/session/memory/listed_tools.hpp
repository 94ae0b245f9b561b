#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "core/log/log_limit.hpp"
#include "json/json.hpp"
#include "json_schema/json_schema.hpp"
#include "protocol/mirrored_headers.hpp"

namespace sluice {

/// What a client knows of its server's tools, as far as they have been listed. Belongs to its
/// session.
class ListedTools {
 public:
  /// Remembers the tools of the result of tools/list. If `mirrors`, header fields mirror parameters
  /// (2026-07-28, Streamable HTTP, Custom Headers from Tool Parameters), and the tools whose
  /// annotations break a rule of that are removed from `result`, which is logged. Beyond kMaxTools
  /// and kMaxNames, further tools are not remembered, and beyond kMaxSchemas no further schemas. A
  /// schema of more than kMaxSchema is not remembered either, which is logged.
  void learn(json::object& result, bool mirrors);

  /// The header fields for a call.
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> headers_of_call(
      std::string_view tool, const json::object& arguments) const;
  /// Whether two calls do no more than one, as its `readOnlyHint` or `idempotentHint` says. False
  /// if the tool is unknown.
  [[nodiscard]] bool may_be_repeated(std::string_view tool) const;
  /// Checks the result of a call against the tool's `outputSchema`, if both are there. Error:
  /// -32602, with the path of what does not fit. A schema that cannot be used, that is beyond
  /// JsonSchemaLimits::for_peers() (both are logged), or that takes more than kMaxSteps, is no
  /// error.
  Result<void> check_output(std::string_view tool, const json::object& result);

  /// Bytes of memory that compiled schemas take, at most kMaxCompiled.
  [[nodiscard]] std::size_t compiled_bytes() const { return compiled_bytes_; }

  static constexpr std::size_t kMaxTools = 10'000;
  static constexpr std::size_t kMaxNames = std::size_t{4} << 20U;      // bytes, together
  static constexpr std::size_t kMaxSchema = std::size_t{256} << 10U;   // bytes of JSON
  static constexpr std::size_t kMaxSchemas = std::size_t{16} << 20U;   // bytes of JSON, together
  static constexpr std::size_t kMaxCompiled = std::size_t{32} << 20U;  // bytes of memory, together
  static constexpr std::uint64_t kMaxSteps = 1'000'000;                // see JsonSchemaLimits

 private:
  struct Tool {
    std::vector<ParameterHeader> headers = {};
    bool may_be_repeated = false;
    std::string output_schema = {};         // JSON; empty: there is none that can be used
    std::optional<JsonSchema> output = {};  // made when it is used, and dropped beyond kMaxCompiled
  };

  const JsonSchema* compiled(std::string_view name, Tool& tool);
  void forget_schema(Tool& tool);
  void warn_of_schema(std::string_view name, std::string_view why);
  void remember(const std::string& name, Tool tool);
  void forget(std::string_view name);

  std::map<std::string, Tool, std::less<>> tools_;  // only those that have something of the above
  std::size_t schema_bytes_ = 0;
  std::size_t named_bytes_ = 0;  // of the names of tools, header fields and their parameters
  std::size_t compiled_bytes_ = 0;
  LogLimit logged_{10, LogLimit::kPeriod};  // what is wrong with tools
};

}  // namespace sluice
