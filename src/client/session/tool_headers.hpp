#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/log/log_limit.hpp"
#include "json/json.hpp"
#include "protocol/mirrored_headers.hpp"

namespace sluice {

/// Which parameters of a server's tools are mirrored in header fields (2026-07-28, Streamable HTTP,
/// Custom Headers from Tool Parameters), as far as they have been listed.
class ToolHeaders {
 public:
  /// Remembers the tools of the result of tools/list, and removes from it those whose annotations
  /// break a rule, which is logged. Beyond kMaxTools, further tools are not remembered.
  void learn(json::object& result);
  /// The header fields for a call.
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> of_call(
      std::string_view tool, const json::object& arguments) const;

  static constexpr std::size_t kMaxTools = 10'000;  // with such parameters

 private:
  std::map<std::string, std::vector<ParameterHeader>, std::less<>> tools_;
  LogLimit logged_{10, LogLimit::kPeriod};  // tools that are left out
};

}  // namespace sluice
