#include "auth/trusted_proxies.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <ranges>
#include <utility>

#include "core/text/text.hpp"

namespace sluice {
namespace {

constexpr std::size_t kV4Prefix = 96;  // bits before an IPv4 address that is mapped to IPv6

/// Parses "192.0.2.1", "192.0.2.1:80", "2001:db8::1" or "[2001:db8::1]:80".
std::optional<PeerAddress> parse_node(std::string_view text) {
  if (text.starts_with('[')) {
    const std::size_t end = text.find(']');
    if (end == std::string_view::npos) return std::nullopt;
    const std::string_view port = text.substr(end + 1);
    if (!port.empty() && !port.starts_with(':')) return std::nullopt;
    return PeerAddress::parse(text.substr(1, end - 1));
  }
  const std::size_t colon = text.find(':');
  const bool has_port = colon != std::string_view::npos && text.find(':', colon + 1) == text.npos;
  return PeerAddress::parse(has_port ? text.substr(0, colon) : text);
}

/// The position of the last `separator` outside quoted strings (RFC 9110, section 5.6.4). Searches
/// from the end, because the beginning may be forged and have unbalanced quotes.
std::size_t find_last(std::string_view text, char separator) {
  bool quoted = false;
  for (std::size_t i = text.size(); i-- > 0;) {
    if (text[i] == '"') {
      const std::size_t before = text.substr(0, i).find_last_not_of('\\');
      const std::size_t slashes = i - (before == std::string_view::npos ? 0 : before + 1);
      if (slashes % 2 == 0) quoted = !quoted;
    } else if (!quoted && text[i] == separator) {
      return i;
    }
  }
  return std::string_view::npos;
}

/// Removes and returns the part of `text` after the last `separator`.
std::string_view take_last(std::string_view& text, char separator) {
  const std::size_t at = find_last(text, separator);
  const std::string_view last = trim(at == text.npos ? text : text.substr(at + 1));
  text = at == text.npos ? std::string_view() : text.substr(0, at);
  return last;
}

/// The value of the parameter "for" of `element` (RFC 7239, section 4); empty if there is none or
/// more than one.
std::string_view forwarded_for(std::string_view element) {
  std::string_view node;
  while (!element.empty()) {
    const std::string_view pair = take_last(element, ';');
    const std::size_t equals = pair.find('=');
    if (equals == std::string_view::npos || !equals_ignoring_case(pair.substr(0, equals), "for")) {
      continue;
    }
    if (!node.empty()) return {};
    node = pair.substr(equals + 1);
    if (node.size() >= 2 && node.starts_with('"') && node.ends_with('"')) {
      node = node.substr(1, node.size() - 2);
    }
  }
  return node;
}

}  // namespace

Result<TrustedProxies> TrustedProxies::make(const std::vector<std::string>& networks, Field field) {
  TrustedProxies proxies;
  proxies.field_ =
      field == Field::forwarded ? KnownHeader::forwarded : KnownHeader::x_forwarded_for;
  for (const std::string& text : networks) {
    const std::size_t slash = text.find('/');
    const std::optional<PeerAddress> address = PeerAddress::parse(text.substr(0, slash));
    bool is_network = address.has_value();
    std::size_t bits = 128;
    if (is_network && slash != std::string::npos) {
      // A mapped prefix such as ::ffff:10.0.0.0/104 counts its bits like IPv6.
      const bool is_mapped = text.contains(':');
      const std::size_t before = address->is_v4() && !is_mapped ? kV4Prefix : 0;
      const char* const end = text.data() + text.size();
      std::size_t prefix = 0;
      const auto [stop, error] = std::from_chars(text.data() + slash + 1, end, prefix);
      is_network = error == std::errc() && stop == end && prefix <= 128 - before;
      bits = before + prefix;
    }
    if (!is_network) {
      return fail(
          1,
          "'" + text + "' is not the address or prefix of a proxy; write 192.0.2.1 or 10.0.0.0/8");
    }
    proxies.networks_.push_back({*address, bits});
  }
  return proxies;
}

bool TrustedProxies::trusts(const PeerAddress& address) const {
  return std::ranges::any_of(networks_, [&](const Network& network) {
    const std::size_t bytes = network.bits / 8;
    if (!std::equal(network.address.ip.begin(), network.address.ip.begin() + bytes,
                    address.ip.begin())) {
      return false;
    }
    const unsigned rest = network.bits % 8;
    return rest == 0 || (network.address.ip[bytes] ^ address.ip[bytes]) >> (8 - rest) == 0;
  });
}

bool TrustedProxies::hides_client(const HttpRequest& request) const {
  if (trusts(request.peer)) return !request.has(field_);
  return request.has(KnownHeader::x_forwarded_for) || request.has(KnownHeader::forwarded);
}

PeerAddress TrustedProxies::client_of(const HttpRequest& request) const {
  PeerAddress client = request.peer;
  if (!trusts(client)) return client;
  if (!request.has(field_)) return client;
  const std::string_view name = field_ == KnownHeader::forwarded ? "forwarded" : "x-forwarded-for";
  for (const HeaderField& header : request.headers | std::views::reverse) {
    if (!equals_ignoring_case(header.name, name)) continue;
    for (std::string_view left = header.value; !left.empty();) {
      const std::string_view element = take_last(left, ',');
      if (element.empty()) continue;  // RFC 9110, section 5.6.1.2
      const std::optional<PeerAddress> node =
          parse_node(field_ == KnownHeader::forwarded ? forwarded_for(element) : element);
      // The element is "unknown", or a name that only the proxy understands.
      if (!node) return client;
      client = *node;
      if (!trusts(client)) return client;
    }
  }
  return client;
}

}  // namespace sluice
