#pragma once

#include <cstdint>

namespace sluice {

/// How severe a log message is, the least first (RFC 5424, section 6.2.1).
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
