#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/authorization/authorization_context.hpp"
#include "client/authorization/challenge.hpp"
#include "client/authorization/file_lock.hpp"
#include "client/authorization/grant.hpp"
#include "client/authorization/token_store.hpp"
#include "core/error.hpp"

namespace sluice {

/// Why another access token is wanted.
struct RenewalReason {
  enum class Kind : std::uint8_t {
    early,       // the token will expire soon
    expired,     // it has expired
    refused,     // the server takes no requests without one, or not with this one
    needs_more,  // it lacks scopes
    login,       // the user wants to log in
  };
  Kind kind = Kind::refused;
  std::string access_token = {};   // that is no longer wanted; empty: there was none
  ServerChallenge challenge = {};  // of the server
};

/// One change of a server's access token. One runs at a time, among the threads of all processes
/// that share the token file: it holds a lock from the reading of the file until the new token is
/// in it, and first looks whether another has done the work meanwhile. So no refresh token is spent
/// twice.
class Renewal final : public std::enable_shared_from_this<Renewal> {
 public:
  using Done = std::function<void(Result<StoredToken>)>;

  Renewal(AuthorizationContextPtr context, RenewalReason reason)
      : context_(std::move(context)), reason_(std::move(reason)) {}

  /// Calls `done` once, never from within this function. Destroying this object ends it. Errors:
  /// kNotAuthorized, a login is needed or fails, and what to do; 400, 500, 502, 504.
  void start(Done done);

 private:
  void on_locked(Result<FileLock> lock);
  void refresh();
  void on_refreshed(const Result<TokenReply>& reply);
  void find_resource();
  void on_resource(Result<ResourceMetadata> resource);
  [[nodiscard]] Result<std::string> choose_issuer() const;
  void find_server(const std::string& issuer);
  void on_server(Result<ServerMetadata> server);
  void begin_grant(ServerMetadata server);
  [[nodiscard]] std::vector<std::string> choose_scopes(const ServerMetadata& server) const;
  void on_granted(Result<StoredToken> token);
  void keep(StoredToken token);
  void finish(Result<StoredToken> outcome);
  [[nodiscard]] bool is_usable(const StoredToken& token) const;
  [[nodiscard]] Result<OauthClient> client_of(const StoredToken& token) const;

  const AuthorizationContextPtr context_;
  const RenewalReason reason_;
  Done done_;
  FileLock lock_;
  StoredCredentials stored_;
  std::optional<StoredToken> known_;  // the token that is stored
  bool may_refresh_ = false;          // known_ has not been tried
  std::optional<ResourceMetadata> resource_;
  std::shared_ptr<Grant> grant_;
};

}  // namespace sluice
