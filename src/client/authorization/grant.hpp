#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/authorization/authorization_context.hpp"
#include "client/authorization/metadata.hpp"
#include "client/authorization/token_endpoint.hpp"
#include "client/authorization/token_store.hpp"
#include "core/crypto/signing_key.hpp"
#include "core/error.hpp"

namespace sluice {

/// What a token is asked for.
struct GrantTarget {
  ResourceMetadata resource;
  ServerMetadata server;
  std::vector<std::string> scopes;  // empty: the server chooses
  std::optional<SigningKey> dpop = {};
};

/// A grant under way. Destroying it ends that.
class Grant {
 public:
  using Done = std::function<void(Result<StoredToken>)>;
  virtual ~Grant() = default;
  /// Calls `done` once, perhaps from within. Errors: kNotAuthorized, 400, 502, 504, each with what
  /// is to be done.
  virtual void start(Done done) = 0;
};

/// The grant that the options name, for that target.
std::shared_ptr<Grant> make_grant(AuthorizationContextPtr context, GrantTarget target);

// The kinds of it:
std::shared_ptr<Grant> make_code_grant(AuthorizationContextPtr context, GrantTarget target);
std::shared_ptr<Grant> make_device_grant(AuthorizationContextPtr context, GrantTarget target);
/// Without a user: client_credentials, identity_assertion, workload_identity.
std::shared_ptr<Grant> make_machine_grant(AuthorizationContextPtr context, GrantTarget target);

/// Adds the parameters `scope` and `resource` as the target and the options have them.
void add_target(FormFields& fields, const AuthorizationContext& context, const GrantTarget& target);

/// What is to be kept of a token that `client` was given. Error: kNotAuthorized, it is of a type
/// that cannot be sent to the server.
Result<StoredToken> make_token(const AuthorizationContext& context, const GrantTarget& target,
                               const OauthClient& client, const TokenReply& reply);

}  // namespace sluice
