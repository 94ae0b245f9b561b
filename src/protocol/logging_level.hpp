#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

#include "sluice/logging_level.hpp"

namespace sluice {

inline constexpr std::array<std::string_view, 8> kLoggingLevels = {
    "debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"};

/// A value that is no enumerator counts as `emergency`.
inline std::string_view to_string(LoggingLevel level) {
  return kLoggingLevels[std::min(static_cast<std::size_t>(level), kLoggingLevels.size() - 1)];
}

inline std::optional<LoggingLevel> parse_logging_level(std::string_view name) {
  const auto* const found = std::ranges::find(kLoggingLevels, name);
  if (found == kLoggingLevels.end()) return std::nullopt;
  return static_cast<LoggingLevel>(found - kLoggingLevels.begin());
}

}  // namespace sluice
