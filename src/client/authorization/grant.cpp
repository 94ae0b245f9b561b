#include "client/authorization/grant.hpp"

#include <utility>

#include "client/authorization/challenge.hpp"

namespace sluice {

std::string_view to_text(GrantKind grant) {
  switch (grant) {
    case GrantKind::authorization_code:
      return "authorization_code";
    case GrantKind::device_code:
      return "device_code";
    case GrantKind::client_credentials:
      return "client_credentials";
    case GrantKind::identity_assertion:
      return "identity_assertion";
    case GrantKind::workload_identity:
      return "workload_identity";
  }
  return {};
}

std::shared_ptr<Grant> make_grant(AuthorizationContextPtr context, GrantTarget target) {
  switch (context->options.grant) {
    case GrantKind::authorization_code:
      return make_code_grant(std::move(context), std::move(target));
    case GrantKind::device_code:
      return make_device_grant(std::move(context), std::move(target));
    case GrantKind::client_credentials:
    case GrantKind::identity_assertion:
    case GrantKind::workload_identity:
      break;
  }
  return make_machine_grant(std::move(context), std::move(target));
}

void add_target(FormFields& fields, const AuthorizationContext& context,
                const GrantTarget& target) {
  if (!target.scopes.empty()) fields.emplace_back("scope", join_scopes(target.scopes));
  if (context.options.send_resource) fields.emplace_back("resource", target.resource.resource);
}

Result<StoredToken> make_token(const AuthorizationContext& context, const GrantTarget& target,
                               const OauthClient& client, const TokenReply& reply) {
  const bool is_bound = reply.token_type == "dpop";
  if ((!is_bound && reply.token_type != "bearer") || (is_bound && !target.dpop)) {
    return fail(kNotAuthorized, "The authorization server " + target.server.issuer +
                                    " gives a token of the type '" + reply.token_type +
                                    "', which this client did not ask for");
  }
  const std::int64_t now = context.now();
  return StoredToken{
      .server = canonical_resource(context.server),
      .issuer = target.server.issuer,
      .resource = target.resource.resource,
      .grant = std::string(to_text(context.options.grant)),
      .client_id = client.id,
      .access_token = reply.access_token,
      .token_type = reply.token_type,
      .issued_at = now,
      .expires_at = reply.expiry ? now + reply.expiry->count() : 0,
      .refresh_token = reply.refresh_token,
      .scope = reply.scope.value_or(join_scopes(target.scopes)),
      .requested_scope = join_scopes(target.scopes),
      .token_endpoint = target.server.token_endpoint,
      .revocation_endpoint = target.server.revocation_endpoint,
      .auth_method = client.auth_method,
      // A refresh token of a public client is bound to the key even if the access token is not (RFC
      // 9449, section 5).
      .dpop_key = target.dpop ? target.dpop->to_pem() : std::string(),
  };
}

}  // namespace sluice
