#pragma once

#include <cstdint>

namespace sluice {

/// The severity of a log message, from least to most severe (RFC 5424, section 6.2.1).
enum class LoggingLevel : std::uint8_t {
  debug,
  info,
  notice,
  warning,
  error,
  critical,
  alert,
  emergency,
};

}  // namespace sluice
