#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "net/loop/address_lookup.hpp"

namespace sluice {

/// From where an address can be reached (RFC 6890).
enum class AddressKind : std::uint8_t {
  global,
  loopback,     // this machine
  private_use,  // its networks
  link_local,   // its links, and the metadata services of clouds
  reserved,     // nobody should be there
};

/// The kind of an IPv4 or IPv6 address. An IPv6 address that stands for an IPv4 address is of its
/// kind.
AddressKind kind_of(const Endpoint& endpoint);
std::string_view to_text(AddressKind kind);

/// Whether `host`, a name or an address, is this machine's loopback (RFC 6761, section 6.3).
bool is_this_machine(const std::string& host);

}  // namespace sluice
