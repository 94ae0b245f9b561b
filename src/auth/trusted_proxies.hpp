#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "net/http/http_types.hpp"

namespace sluice {

/// Proxies that are believed when they say for whom they ask. Immutable, so thread-safe.
class TrustedProxies {
 public:
  /// Where they say it. Only one is believed: a client can send the other one itself, and a proxy
  /// that does not know it passes it on.
  enum class Field : std::uint8_t {
    x_forwarded_for,  // 192.0.2.1, 198.51.100.2
    forwarded,        // RFC 7239: for=192.0.2.1;proto=https, for="[2001:db8::1]:4711"
  };

  /// None.
  TrustedProxies() = default;
  /// `networks` are addresses and prefixes, such as "192.0.2.1" and "10.0.0.0/8". The error names
  /// the first that is neither.
  static Result<TrustedProxies> make(const std::vector<std::string>& networks, Field field);

  [[nodiscard]] bool trusts(const PeerAddress& address) const;
  [[nodiscard]] bool has_any() const { return !networks_.empty(); }

  /// Whose request it is: the last address in the field that is no trusted proxy's, for what stands
  /// before it may be anybody's word. The peer itself where it is not trusted, and a proxy where it
  /// does not say.
  [[nodiscard]] PeerAddress client_of(const HttpRequest& request) const;

 private:
  struct Network {
    PeerAddress address;
    std::size_t bits = 0;  // of the 128 that count
  };

  std::vector<Network> networks_;
  KnownHeader field_ = KnownHeader::x_forwarded_for;
};

}  // namespace sluice
