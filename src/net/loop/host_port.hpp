#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace sluice {

/// Where a server listens, as people write it.
struct HostPort {
  std::string host;        // a name or an address; an IPv6 address without brackets
  std::uint16_t port = 0;  // 0: any free one

  bool operator==(const HostPort&) const = default;
};

/// Parses "HOST:PORT". An IPv6 address is in brackets: "[::1]:8080". Returns nothing if the text is
/// anything else, or if the port is above 65,535.
std::optional<HostPort> parse_host_port(std::string_view text);

/// The text that parse_host_port() reads back as `place`.
std::string to_text(const HostPort& place);

}  // namespace sluice
