#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "auth/api_keys.hpp"
#include "auth/trusted_proxies.hpp"
#include "net/http_types.hpp"
#include "sluice/principal.hpp"

namespace sluice {

/// Whether `host`, a name or an address without brackets, is this machine to itself alone:
/// "localhost", what ends in ".localhost", 127.0.0.0/8 and ::1.
bool is_loopback_host(std::string_view host);

/// Who may talk to the server: which Host names it answers to and which pages may call it (against
/// DNS rebinding and cross-site requests; 2026-07-28, Streamable HTTP, Security), and which keys
/// name which callers. Immutable, shared by all loops.
class AccessPolicy {
 public:
  struct Options {
    std::vector<std::pair<std::string, std::string>> api_keys;  // name, key
    std::vector<std::string> allowed_origins;  // "https://example.com"; "*": every page
    std::vector<std::string> allowed_hosts;    // names and addresses without port; "*": all
    TrustedProxies proxies;
  };
  explicit AccessPolicy(Options options);

  /// Whether the request is addressed to this server: by localhost, a loopback address, one of the
  /// machine's own addresses, or an allowed host. A rebound DNS name is none of them.
  [[nodiscard]] bool host_allowed(std::string_view host_header) const;

  /// Whether a page of `origin` may call: pages of this server itself, of this machine, and of
  /// allowed origins. Requests without Origin do not come from a page.
  [[nodiscard]] bool origin_allowed(std::string_view origin, std::string_view host_header,
                                    bool tls) const;

  /// Whether the address is that of a proxy that is believed when it says for whom it asks.
  [[nodiscard]] bool trusts_proxy(const PeerAddress& peer) const { return proxies_.trusts(peer); }

  [[nodiscard]] bool requires_key() const { return !keys_.empty(); }

  /// Who makes the request: the name of its key, or without keys the address it comes from, which
  /// trusted proxies tell for others, and which several may have.
  /// Of an empty id: keys are required and it has none that is known.
  [[nodiscard]] Principal principal_of(const HttpRequest& request) const;

 private:
  ApiKeys keys_;
  std::vector<std::string> origins_;
  std::vector<std::string> hosts_;
  TrustedProxies proxies_;
};

}  // namespace sluice
