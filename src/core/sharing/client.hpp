#pragma once

#include <string>
#include <string_view>

namespace sluice {

/// The client that `principal` counts as where clients share a resource. An IPv6 address counts as
/// its 64-bit network ("2001:db8::/64"), because a client is commonly given the whole network and
/// may use any address in it (RFC 6177; RFC 4291, section 2.5.4). Other principals, including IPv4
/// addresses mapped into IPv6, count as themselves. Ownership is not affected: it depends on the
/// principal alone.
std::string client_of(std::string_view principal);

}  // namespace sluice
