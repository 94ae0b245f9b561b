#pragma once

#include <cstdint>
#include <expected>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "auth/own_addresses.hpp"
#include "auth/trusted_proxies.hpp"
#include "net/http/http_types.hpp"
#include "sluice/authenticator.hpp"

namespace sluice {

class ApiKeys;

/// Whether `host`, a name or an address without brackets, is this machine to itself alone:
/// "localhost", what ends in ".localhost", 127.0.0.0/8 and ::1.
bool is_loopback_host(std::string_view host);

/// Who may talk to the server: which Host names it answers to and which pages may call it (against
/// DNS rebinding and cross-site requests; 2026-07-28, Streamable HTTP, Security), and who asks.
/// Each event loop has a copy of its own, on its thread.
class AccessPolicy {
 public:
  struct Options {
    std::shared_ptr<Authenticator> authenticator;  // null: everybody may call
    std::vector<std::string> allowed_origins;      // "https://example.com"; "*": every page
    std::vector<std::string> allowed_hosts;        // names and addresses without port; "*": all
    TrustedProxies proxies;
  };
  explicit AccessPolicy(Options options);

  /// Asks `authenticator` from the next request on. Only if there is one already, and not null:
  /// whether callers prove who they are does not change.
  void replace_authenticator(std::shared_ptr<Authenticator> authenticator) {
    authenticator_ = std::move(authenticator);
    asks_user_code_ = is_user_code(authenticator_.get());
    ++replacements_;
  }
  /// How often that has happened.
  [[nodiscard]] std::uint32_t replacements() const { return replacements_; }
  /// The authenticator, if callers are known by API keys; else null.
  [[nodiscard]] const ApiKeys* keys() const;

  /// Whether the request is addressed to this server: by localhost, a loopback address, one of the
  /// machine's own addresses, or an allowed host. A rebound DNS name is none of them.
  [[nodiscard]] bool host_allowed(std::string_view host_header) const;

  /// Whether a page of `origin` may call: pages of this server itself, of this machine, and of
  /// allowed origins. Requests without Origin do not come from a page.
  [[nodiscard]] bool origin_allowed(std::string_view origin, std::string_view host_header,
                                    bool tls) const;

  /// Whether the address is that of a proxy that is believed when it says for whom it asks.
  [[nodiscard]] bool trusts_proxy(const PeerAddress& peer) const { return proxies_.trusts(peer); }

  [[nodiscard]] const TrustedProxies& proxies() const { return proxies_; }
  /// Whether requests of one connection may be of several clients.
  [[nodiscard]] bool has_shared_connections() const {
    return authenticates() || proxies_.has_any();
  }

  /// Whether it depends on authenticate() who may call, and as whom; else on nothing, and callers
  /// are who principal_by_address() says.
  [[nodiscard]] bool authenticates() const { return authenticator_ != nullptr; }
  /// Whether authenticate() calls code of the program's user, which may take long.
  [[nodiscard]] bool asks_user_code() const { return asks_user_code_; }
  /// Who makes the request, or why it is refused; never throws what the authenticator does.
  [[nodiscard]] std::expected<Principal, Refusal> authenticate(const HttpRequest& request) const;
  /// The address that the request comes from, which trusted proxies tell for others.
  [[nodiscard]] std::string address(const HttpRequest& request) const;
  /// That address as a principal, which is not isolated: several may have it.
  [[nodiscard]] Principal principal_by_address(const HttpRequest& request) const;

 private:
  /// Whether it is not one of Sluice's own. Null: no.
  static bool is_user_code(const Authenticator* authenticator);

  std::shared_ptr<Authenticator> authenticator_;
  bool asks_user_code_;
  std::uint32_t replacements_ = 0;
  std::vector<std::string> origins_;
  std::vector<std::string> hosts_;
  TrustedProxies proxies_;
  std::shared_ptr<OwnAddresses> own_addresses_;
};

}  // namespace sluice
