#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace sluice {

/// A peer's IP address (IPv4 as mapped IPv6, in network order) and port.
struct PeerAddress {
  std::array<std::uint8_t, 16> ip{};
  std::uint16_t port = 0;

  /// "192.0.2.1" or "2001:db8::1", without brackets and port.
  static std::optional<PeerAddress> parse(std::string_view text);

  [[nodiscard]] bool is_v4() const;
  [[nodiscard]] bool is_loopback() const;
  /// What counts as one client: the IPv4 address, or the 64-bit IPv6 network, which is what a
  /// client is commonly given.
  [[nodiscard]] std::array<std::uint8_t, 16> network() const;
  /// The address without the port: "192.0.2.1", "2001:db8::1".
  [[nodiscard]] std::string to_string() const;
};

}  // namespace sluice
