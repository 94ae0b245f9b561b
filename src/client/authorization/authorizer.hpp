#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "client/authorization/authorization_context.hpp"
#include "client/authorization/challenge.hpp"
#include "client/authorization/renewal.hpp"
#include "client/link/request_authorizer.hpp"
#include "core/clock.hpp"
#include "core/crypto/signing_key.hpp"

namespace sluice {

/// Authorizes the requests to one MCP server (2026-07-28, Authorization): keeps its access token,
/// refreshes it before it expires, and logs in when the server asks for that. Requests that wait
/// for the same renewal share it. Belongs to the loop; owned by shared pointers.
class Authorizer final : public RequestAuthorizer, public std::enable_shared_from_this<Authorizer> {
 public:
  explicit Authorizer(AuthorizationContextPtr context);

  void authorize(std::string_view method, const Url& url, Authorized done) override;
  bool on_refused(const HttpReplyHead& reply, std::uint64_t credential, Handled done) override;
  void on_reply(const HttpReplyHead& reply) override;
  void on_address(const Endpoint& endpoint) override;

  /// Logs in anew, whatever tokens there are. `challenge` is what the server answers to a request
  /// without a token. Errors as of Renewal.
  void login(ServerChallenge challenge, Handled done);
  /// Forgets all tokens for the server, and asks the authorization servers to end them (RFC 7009),
  /// which may fail; that is logged. `done` gets how many there were, once the servers have
  /// answered or taken too long. Errors as of the token file.
  void logout(std::function<void(Result<std::size_t>)> done);

  /// The token that is in use. Never log it.
  [[nodiscard]] const std::optional<StoredToken>& token() const { return token_; }

  static constexpr std::size_t kMaxWaiting = 10'000;  // requests
  /// How often the same scopes are asked for after refusals for want of them.
  static constexpr int kMaxStepUps = 2;
  /// How long after a failed login requests fail as it did, so that the user is not asked again for
  /// each of them.
  static constexpr Duration kFailureMemory = std::chrono::seconds(10);

 private:
  void load();
  void use(StoredToken token);
  [[nodiscard]] RequestAuthorization sign(std::string_view method, const Url& url) const;
  [[nodiscard]] bool has_expired() const;
  [[nodiscard]] bool expires_soon() const;
  [[nodiscard]] bool is_renewable() const;
  void renew_early();
  void renew(RenewalReason reason, Handled done);
  void on_renewed(Result<StoredToken> outcome);
  void step_up(ServerChallenge challenge, std::uint64_t credential, Handled done);
  struct Logout;
  void revoke(const StoredToken& token, const StoredCredentials& stored,
              const std::shared_ptr<Logout>& logout);

  const AuthorizationContextPtr context_;
  bool is_loaded_ = false;
  std::optional<StoredToken> token_;
  std::string header_;             // of token_, ready to send
  std::optional<SigningKey> key_;  // that token_ is bound to
  std::string nonce_;              // of the server, for the next proof
  std::uint64_t credential_ = 0;   // changes with token_; 0: there is none

  std::shared_ptr<Renewal> renewal_;  // null: none is under way
  bool is_early_ = false;             // nobody need wait for it
  std::vector<Handled> waiting_;      // for it
  TimePoint next_early_{};            // no renewal before time is begun earlier
  std::optional<Error> failure_;      // of the last renewal
  TimePoint failed_at_{};
  std::map<std::string, int> step_ups_;  // by the scopes that were missing
};

/// The authorizer for the links to the MCP server at `server`, with real requests and a real
/// browser. `tls` is a client's context, for https. The file of tokens is shared with other threads
/// and processes. A WebSocket's URL counts as the http one. `proxies` may be null. `tap` is shown
/// the heads of the requests that authorization takes.
std::shared_ptr<Authorizer> make_authorizer(EventLoop& loop, const Url& server,
                                            AuthorizationOptions options,
                                            std::shared_ptr<TlsContext> tls,
                                            std::shared_ptr<const ProxySettings> proxies = {},
                                            HttpTap tap = {});

}  // namespace sluice
