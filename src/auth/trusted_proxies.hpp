#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "net/http/http_types.hpp"

namespace sluice {

/// Proxies that are trusted to say which client a request is from. Immutable, therefore
/// thread-safe.
class TrustedProxies {
 public:
  /// The header field in which the proxies name the client. Only one field is trusted: a client can
  /// send the other one itself, and a proxy that does not know it forwards it.
  enum class Field : std::uint8_t {
    x_forwarded_for,  // 192.0.2.1, 198.51.100.2
    forwarded,        // RFC 7239: for=192.0.2.1;proto=https, for="[2001:db8::1]:4711"
  };

  /// Trusts no proxy.
  TrustedProxies() = default;
  /// `networks` are addresses and prefixes, such as "192.0.2.1" and "10.0.0.0/8". The error names
  /// the first entry that is neither.
  static Result<TrustedProxies> make(const std::vector<std::string>& networks, Field field);

  [[nodiscard]] bool trusts(const PeerAddress& address) const;
  [[nodiscard]] bool has_any() const { return !networks_.empty(); }

  /// The client that sent `request`. If the peer is not trusted, it is the peer. Otherwise it is
  /// the last address in the field that is not a trusted proxy's, because whatever precedes it may
  /// be forged. If a proxy names no client, it is that proxy.
  [[nodiscard]] PeerAddress client_of(const HttpRequest& request) const;
  /// Whether client_of() is a proxy that has other clients: one that is not trusted, but forwards
  /// the request of another, or a trusted one that does not send the field.
  [[nodiscard]] bool hides_client(const HttpRequest& request) const;

 private:
  struct Network {
    PeerAddress address;
    std::size_t bits = 0;  // length of the prefix, of 128 bits
  };

  std::vector<Network> networks_;
  KnownHeader field_ = KnownHeader::x_forwarded_for;
};

}  // namespace sluice
