#include <utility>

#include "client/authorization/challenge.hpp"
#include "client/authorization/client_registration.hpp"
#include "client/authorization/grant.hpp"

namespace sluice {
namespace {

constexpr std::string_view kJwtBearerGrant = "urn:ietf:params:oauth:grant-type:jwt-bearer";
constexpr std::string_view kExchangeGrant = "urn:ietf:params:oauth:grant-type:token-exchange";
constexpr std::string_view kIdTokenType = "urn:ietf:params:oauth:token-type:id_token";
constexpr std::string_view kIdJagType = "urn:ietf:params:oauth:token-type:id-jag";

/// The grants in which no user takes part. Nothing is tried twice, and none becomes another.
class MachineGrant final : public Grant, public std::enable_shared_from_this<MachineGrant> {
 public:
  MachineGrant(AuthorizationContextPtr context, GrantTarget target)
      : context_(std::move(context)), target_(std::move(target)) {}

  void start(Done done) override {
    done_ = std::move(done);
    const AuthorizationOptions& options = context_->options;
    Result<OauthClient> client = configured_client(options, target_.server);
    if (!client) return finish(std::unexpected(client.error()));
    client_ = *std::move(client);
    if (options.grant == GrantKind::client_credentials) {
      if (client_.auth_method == kAuthNone) {
        return finish(fail(kNotAuthorized,
                           "A client that acts for itself needs a secret or a private key (OAuth "
                           "2.1, section 4.2)"));
      }
      return ask({{"grant_type", "client_credentials"}});
    }
    if (!options.assertion) {
      return finish(fail(kNotAuthorized, "This grant needs a token of the identity provider"));
    }
    Result<std::string> assertion = options.assertion();
    if (!assertion) return finish(std::unexpected(assertion.error()));
    if (options.grant == GrantKind::workload_identity) return redeem(*std::move(assertion));
    exchange(*assertion);
  }

 private:
  /// The identity provider turns the user's ID token into an ID-JAG for the server (RFC 8693;
  /// SEP-990).
  void exchange(const std::string& id_token) {
    const AuthorizationOptions& options = context_->options;
    FormFields fields = {{"grant_type", std::string(kExchangeGrant)},
                         {"requested_token_type", std::string(kIdJagType)},
                         {"audience", target_.server.issuer},
                         {"resource", target_.resource.resource},
                         {"subject_token", id_token},
                         {"subject_token_type", std::string(kIdTokenType)}};
    if (!target_.scopes.empty()) fields.emplace_back("scope", join_scopes(target_.scopes));
    request_token(
        context_->http,
        {.endpoint = options.idp_token_endpoint,
         .issuer = options.idp_token_endpoint,
         .client = {.id = options.idp_client_id,
                    .secret = options.idp_client_secret,
                    .auth_method =
                        std::string(options.idp_client_secret.empty() ? kAuthNone : kAuthBasic)},
         .fields = std::move(fields),
         .named_by = NamedBy::user},
        context_->time_of_day(), [weak = weak_from_this()](const Result<TokenReply>& reply) {
          const auto self = weak.lock();
          if (self == nullptr) return;
          if (!reply) return self->finish(std::unexpected(reply.error()));
          if (reply->issued_token_type != kIdJagType) {
            return self->finish(fail(kNotAuthorized,
                                     "The identity provider gives a token of another type than the "
                                     "ID-JAG that was asked for"));
          }
          self->redeem(reply->access_token);
        });
  }
  /// RFC 7523, section 2.1.
  void redeem(std::string assertion) {
    ask({{"grant_type", std::string(kJwtBearerGrant)}, {"assertion", std::move(assertion)}});
  }
  void ask(FormFields fields) {
    add_target(fields, *context_, target_);
    request_token(context_->http,
                  {.endpoint = target_.server.token_endpoint,
                   .issuer = target_.server.issuer,
                   .client = client_,
                   .fields = std::move(fields),
                   .dpop = target_.dpop},
                  context_->time_of_day(),
                  [weak = weak_from_this()](const Result<TokenReply>& reply) {
                    const auto self = weak.lock();
                    if (self == nullptr) return;
                    if (!reply) return self->finish(std::unexpected(reply.error()));
                    self->finish(make_token(*self->context_, self->target_, self->client_, *reply));
                  });
  }
  void finish(Result<StoredToken> outcome) {
    const auto keep = shared_from_this();
    if (const Done done = std::exchange(done_, {})) done(std::move(outcome));
  }

  const AuthorizationContextPtr context_;
  const GrantTarget target_;
  Done done_;
  OauthClient client_;
};

}  // namespace

std::shared_ptr<Grant> make_machine_grant(AuthorizationContextPtr context, GrantTarget target) {
  return std::make_shared<MachineGrant>(std::move(context), std::move(target));
}

}  // namespace sluice
