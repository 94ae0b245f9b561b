#pragma once

#include <string>
#include <string_view>

namespace sluice {

/// Who `principal` is where clients have shares of what there is: of an IPv6 address its network of
/// 64 bits ("2001:db8::/64"), for a client is commonly given all of it and may use each of its
/// addresses (RFC 6177; RFC 4291, section 2.5.4). Others count as themselves, IPv4 addresses that
/// are mapped into IPv6 too. What belongs to whom goes by the principal alone.
std::string client_of(std::string_view principal);

}  // namespace sluice
