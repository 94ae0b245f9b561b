#include "net/loop/host_port.hpp"

#include <arpa/inet.h>
#include <charconv>
#include <netinet/in.h>
#include <sys/socket.h>

namespace sluice {
namespace {

/// Whether it is an IPv6 address, with a zone or without (RFC 4007, section 11).
bool is_v6_address(std::string_view text) {
  const std::string address(text.substr(0, text.find('%')));
  in6_addr parsed{};
  return inet_pton(AF_INET6, address.c_str(), &parsed) == 1;
}

}  // namespace

std::optional<HostPort> parse_host_port(std::string_view text) {
  const auto colon = text.rfind(':');
  if (colon == std::string_view::npos) return std::nullopt;
  std::string_view host = text.substr(0, colon);
  const std::string_view digits = text.substr(colon + 1);
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  const bool bracketed = host.starts_with('[') && host.ends_with(']');
  if (bracketed) host = host.substr(1, host.size() - 2);
  // Without brackets, it would be unclear where an IPv6 address ends.
  if (host.empty() || host.contains(':') != bracketed) return std::nullopt;
  if (bracketed && !is_v6_address(host)) return std::nullopt;
  if (host.find_first_of("[]/ \t") != std::string_view::npos) return std::nullopt;
  return HostPort{.host = std::string(host), .port = port};
}

std::string to_text(const HostPort& place) {
  const bool is_v6 = place.host.contains(':');
  return (is_v6 ? "[" + place.host + "]" : place.host) + ":" + std::to_string(place.port);
}

}  // namespace sluice
