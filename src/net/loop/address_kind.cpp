#include "net/loop/address_kind.hpp"

#include <array>
#include <bit>
#include <cstddef>
#include <cstring>
#include <netinet/in.h>

namespace sluice {
namespace {

/// The kind of an IPv4 address in host order.
AddressKind kind_of_v4(std::uint32_t address) {
  struct Network {
    std::uint32_t prefix;
    int bits;
    AddressKind kind;
  };
  static constexpr std::array kNetworks = {
      Network{0x00000000U, 8, AddressKind::reserved},      // 0.0.0.0/8
      Network{0x0A000000U, 8, AddressKind::private_use},   // 10.0.0.0/8
      Network{0x64400000U, 10, AddressKind::private_use},  // 100.64.0.0/10
      Network{0x7F000000U, 8, AddressKind::loopback},      // 127.0.0.0/8
      Network{0xA9FE0000U, 16, AddressKind::link_local},   // 169.254.0.0/16
      Network{0xAC100000U, 12, AddressKind::private_use},  // 172.16.0.0/12
      Network{0xC0000000U, 24, AddressKind::reserved},     // 192.0.0.0/24
      Network{0xC0A80000U, 16, AddressKind::private_use},  // 192.168.0.0/16
      Network{0xC6120000U, 15, AddressKind::private_use},  // 198.18.0.0/15
      Network{0xA83F8110U, 32, AddressKind::link_local},   // 168.63.129.16, each host's in Azure
      Network{0xE0000000U, 3, AddressKind::reserved},      // multicast and beyond
  };
  for (const Network& network : kNetworks) {
    if ((address ^ network.prefix) >> static_cast<unsigned>(32 - network.bits) == 0) {
      return network.kind;
    }
  }
  return AddressKind::global;
}

std::uint32_t v4_at(const std::uint8_t* bytes) {
  return static_cast<std::uint32_t>(bytes[0]) << 24U | static_cast<std::uint32_t>(bytes[1]) << 16U |
         static_cast<std::uint32_t>(bytes[2]) << 8U | bytes[3];
}

AddressKind kind_of_v6(const std::array<std::uint8_t, 16>& ip) {
  const auto begins_with = [&ip](auto... bytes) {
    const std::array<std::uint8_t, sizeof...(bytes)> prefix{static_cast<std::uint8_t>(bytes)...};
    return std::memcmp(ip.data(), prefix.data(), prefix.size()) == 0;
  };
  if (begins_with(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF)) return kind_of_v4(v4_at(&ip[12]));
  // NAT64; the networks of 64:ff9b:1::/48 are somebody's own (RFC 8215).
  if (begins_with(0, 0x64, 0xFF, 0x9B, 0, 0, 0, 0, 0, 0, 0, 0)) return kind_of_v4(v4_at(&ip[12]));
  if (begins_with(0x20, 0x02)) return kind_of_v4(v4_at(&ip[2]));  // 6to4
  if (begins_with(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)) {
    return v4_at(&ip[12]) == 1 ? AddressKind::loopback : AddressKind::reserved;
  }
  if (ip[0] == 0xFE && (ip[1] & 0xC0U) == 0x80) return AddressKind::link_local;
  if (ip[0] == 0xFE && (ip[1] & 0xC0U) == 0xC0) return AddressKind::private_use;  // site-local
  if ((ip[0] & 0xFEU) == 0xFC) return AddressKind::private_use;                   // fc00::/7
  if (begins_with(0x20, 0x01, 0, 0)) return AddressKind::reserved;                // Teredo
  // Only 2000::/3 is global unicast (RFC 4291, section 2.4).
  return ip[0] >> 5U == 1 ? AddressKind::global : AddressKind::reserved;
}

}  // namespace

AddressKind kind_of(const Endpoint& endpoint) {
  if (endpoint.address.ss_family == AF_INET) {
    sockaddr_in address{};
    std::memcpy(&address, &endpoint.address, sizeof address);
    return kind_of_v4(ntohl(address.sin_addr.s_addr));
  }
  if (endpoint.address.ss_family != AF_INET6) return AddressKind::reserved;
  sockaddr_in6 address{};
  std::memcpy(&address, &endpoint.address, sizeof address);
  return kind_of_v6(std::bit_cast<std::array<std::uint8_t, 16>>(address.sin6_addr));
}

std::string_view to_text(AddressKind kind) {
  switch (kind) {
    case AddressKind::global:
      return "global";
    case AddressKind::loopback:
      return "loopback";
    case AddressKind::private_use:
      return "private";
    case AddressKind::link_local:
      return "link-local";
    case AddressKind::reserved:
      return "reserved";
  }
  return "unknown";
}

bool is_this_machine(const std::string& host) {
  const std::string_view name =
      std::string_view(host).substr(0, host.size() - (host.ends_with('.') ? 1 : 0));
  if (name == "localhost" || name.ends_with(".localhost")) return true;
  const Endpoints literal = endpoints_of_address(host, 0);
  return !literal.empty() && kind_of(literal.front()) == AddressKind::loopback;
}

}  // namespace sluice
