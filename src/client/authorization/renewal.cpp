#include "client/authorization/renewal.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "client/authorization/client_registration.hpp"
#include "client/authorization/discovery.hpp"
#include "core/crypto/digest.hpp"
#include "core/log/log.hpp"
#include "core/text/base64.hpp"
#include "core/text/shell_word.hpp"
#include "net/http/status_codes.hpp"

namespace sluice {
namespace {

/// Beyond the time for a login, for what comes before and after it.
constexpr Duration kLockMargin = std::chrono::minutes(1);

/// The lock of one server's tokens.
std::string lock_path(const AuthorizationContext& context) {
  if (context.store->is_in_memory()) return {};
  const std::string which = canonical_resource(context.server) + " " +
                            std::string(to_text(context.options.grant)) + " " +
                            context.options.client_id;
  return context.store->path() + "." + to_base64url(sha256(which)).substr(0, 16) + ".lock";
}

bool has_issuer(const std::vector<std::string>& issuers, const std::string& issuer) {
  return std::ranges::any_of(
      issuers, [&issuer](const std::string& each) { return is_same_issuer(each, issuer); });
}

}  // namespace

void Renewal::start(Done done) {
  done_ = std::move(done);
  FileLock::acquire(*context_->loop, lock_path(*context_),
                    context_->options.login_timeout + kLockMargin,
                    [weak = weak_from_this()](Result<FileLock> lock) {
                      if (const auto self = weak.lock()) self->on_locked(std::move(lock));
                    });
}

void Renewal::on_locked(Result<FileLock> lock) {
  if (!lock) {
    return finish(fail(lock.error().code, "The server " + canonical_resource(context_->server) +
                                              " asks for authorization, but its tokens cannot be "
                                              "used. " +
                                              lock.error().message));
  }
  lock_ = *std::move(lock);
  Result<StoredCredentials> stored = context_->store->load();
  if (!stored) return finish(std::unexpected(stored.error()));
  stored_ = *std::move(stored);
  if (const StoredToken* const token =
          stored_.find(canonical_resource(context_->server), to_text(context_->options.grant),
                       context_->options.client_id)) {
    known_ = *token;
  }
  using Kind = RenewalReason::Kind;
  if (known_ && reason_.kind != Kind::login && is_usable(*known_)) return finish(*known_);
  may_refresh_ = known_ && !known_->refresh_token.empty() && reason_.kind != Kind::login &&
                 reason_.kind != Kind::needs_more;
  // A refused token may be of an authorization server that is no longer the server's.
  if (may_refresh_ && reason_.kind != Kind::refused) return refresh();
  if (reason_.kind == Kind::early) {
    return finish(fail(kNotAuthorized, "The token cannot be refreshed"));
  }
  find_resource();
}

bool Renewal::is_usable(const StoredToken& token) const {
  if (token.access_token == reason_.access_token) return false;
  if (token.expires_at != 0 && token.expires_at <= context_->now()) return false;
  const std::vector<std::string> granted = split_scopes(token.scope);
  return reason_.kind != RenewalReason::Kind::needs_more ||
         std::ranges::all_of(reason_.challenge.scopes, [&granted](const std::string& scope) {
           return std::ranges::find(granted, scope) != granted.end();
         });
}

Result<OauthClient> Renewal::client_of(const StoredToken& token) const {
  const AuthorizationOptions& options = context_->options;
  OauthClient client{.id = token.client_id, .secret = {}, .auth_method = token.auth_method};
  if (token.client_id == options.client_id) {
    client.secret = options.client_secret;
    client.private_key = options.private_key;
    client.private_key_id = options.private_key_id;
  } else if (const StoredClient* const known = client_of_token(stored_, token, context_->now())) {
    client.secret = known->client_secret;
  }
  if ((client.auth_method == kAuthBasic || client.auth_method == kAuthPost) &&
      client.secret.empty()) {
    return fail(kNotAuthorized, "The secret of the client that the token belongs to is not known");
  }
  return client;
}

void Renewal::refresh() {
  may_refresh_ = false;
  Result<OauthClient> client = client_of(*known_);
  if (!client) return on_refreshed(std::unexpected(client.error()));
  ClientRequest request{
      .endpoint = known_->token_endpoint,
      .issuer = known_->issuer,
      .client = *std::move(client),
      .fields = {{"grant_type", "refresh_token"}, {"refresh_token", known_->refresh_token}}};
  // A public client's refresh token is for this resource only if the request says so.
  if (context_->options.send_resource) request.fields.emplace_back("resource", known_->resource);
  if (!known_->dpop_key.empty()) request.dpop = SigningKey::from_pem(known_->dpop_key);
  request_token(context_->http, std::move(request), context_->time_of_day(),
                [weak = weak_from_this()](const Result<TokenReply>& reply) {
                  if (const auto self = weak.lock()) self->on_refreshed(reply);
                });
}

void Renewal::on_refreshed(const Result<TokenReply>& reply) {
  if (reply) {
    StoredToken token = *known_;
    token.access_token = reply->access_token;
    token.token_type = reply->token_type;
    token.issued_at = context_->now();
    token.expires_at = reply->expiry ? token.issued_at + reply->expiry->count() : 0;
    if (!reply->refresh_token.empty()) token.refresh_token = reply->refresh_token;
    if (reply->scope) token.scope = *reply->scope;
    log_debug("an access token was refreshed", {{"issuer", token.issuer}});
    return keep(std::move(token));
  }
  const Error& why = reply.error();
  if (why.code != kNotAuthorized) return finish(std::unexpected(why));
  log_debug("an access token could not be refreshed", {{"error", why.message}});
  // A refresh token that was refused must not be spent by the next process too.
  if (oauth_error(why) == "invalid_grant") {
    StoredToken spent = *known_;
    spent.refresh_token.clear();
    change_credentials(
        *context_->loop, context_->store, [spent](StoredCredentials& all) { all.put(spent); },
        [weak = weak_from_this(), why](const Result<void>& saved) {
          const auto self = weak.lock();
          if (self == nullptr) return;
          if (!saved) return self->finish(std::unexpected(saved.error()));
          if (self->reason_.kind == RenewalReason::Kind::early) {
            return self->finish(std::unexpected(why));
          }
          self->find_resource();
        });
    return;
  }
  if (reason_.kind == RenewalReason::Kind::early) return finish(std::unexpected(why));
  find_resource();
}

void Renewal::find_resource() {
  // Without a user, only a refresh can help.
  const AuthorizationOptions& options = context_->options;
  if (needs_user(options.grant) && !options.on_prompt && !may_refresh_) {
    std::string message = "The server " + canonical_resource(context_->server) + " asks for ";
    // Users copy the command, and the scopes are the server's words. A query may have a secret.
    const std::string& target = context_->server.target;
    std::string command = "sluice login ";
    command.append(shell_word(to_origin(context_->server) + target.substr(0, target.find('?'))));
    if (reason_.kind == RenewalReason::Kind::needs_more) {
      const std::string scopes = join_scopes(reason_.challenge.scopes);
      message.append("more rights (").append(scopes).append(")");
      command.append(" --scope ").append(shell_word(scopes));
    } else {
      message.append(known_ ? "a new login" : "authorization");
    }
    message.append(": run `").append(command).append("`");
    return finish(fail(kNotAuthorized, std::move(message)));
  }
  if (resource_) return on_resource(*std::exchange(resource_, {}));
  find_resource_metadata(context_->http, context_->server, reason_.challenge.resource_metadata,
                         [weak = weak_from_this()](Result<ResourceMetadata> resource) {
                           if (const auto self = weak.lock())
                             self->on_resource(std::move(resource));
                         });
}

void Renewal::on_resource(Result<ResourceMetadata> resource) {
  if (!resource) return finish(std::unexpected(resource.error()));
  resource_ = *std::move(resource);
  if (may_refresh_) {
    if (has_issuer(resource_->authorization_servers, known_->issuer) ||
        known_->issuer == context_->options.accept_issuer) {
      return refresh();
    }
    may_refresh_ = false;
    log_info("a server has another authorization server now",
             {{"server", canonical_resource(context_->server)}, {"before", known_->issuer}});
    return find_resource();
  }
  const Result<std::string> issuer = choose_issuer();
  if (!issuer) return finish(std::unexpected(issuer.error()));
  find_server(*issuer);
}

Result<std::string> Renewal::choose_issuer() const {
  const AuthorizationOptions& options = context_->options;
  const std::vector<std::string>& offered = resource_->authorization_servers;
  std::string bound = options.client_issuer;
  if (bound.empty() && !options.client_id.empty() && known_) bound = known_->issuer;
  if (!bound.empty()) {
    // Credentials of one authorization server are not shown to another (SEP-2352).
    if (has_issuer(offered, bound) || bound == options.accept_issuer) return bound;
    return fail(kNotAuthorized, "The client " + options.client_id + " is registered with " + bound +
                                    ", but the server now has the authorization server " +
                                    offered.front() +
                                    ". Register a client there, log out, and give its client id");
  }
  if (known_ && has_issuer(offered, known_->issuer)) return known_->issuer;
  return offered.front();
}

void Renewal::find_server(const std::string& issuer) {
  find_server_metadata(context_->http, issuer, context_->options.accept_issuer,
                       [weak = weak_from_this()](Result<ServerMetadata> server) {
                         if (const auto self = weak.lock()) self->on_server(std::move(server));
                       });
}

void Renewal::on_server(Result<ServerMetadata> server) {
  if (server) return begin_grant(*std::move(server));
  if (resource_->is_assumed && server.error().code == kNotFound) {
    return begin_grant(assumed_metadata(context_->server));
  }
  if (server.error().code == kNotFound) {
    return finish(fail(kNotAuthorized, server.error().message));
  }
  finish(std::unexpected(server.error()));
}

std::vector<std::string> Renewal::choose_scopes(const ServerMetadata& server) const {
  const AuthorizationOptions& options = context_->options;
  std::vector<std::string> scopes = options.scopes;
  // What was granted before is asked for again, so that it is not lost (Step-Up Authorization
  // Flow).
  const bool is_step = reason_.kind != RenewalReason::Kind::login;
  if (is_step && known_ && is_same_issuer(known_->issuer, server.issuer)) {
    add_scopes(scopes, split_scopes(known_->requested_scope));
    std::erase(scopes, "offline_access");
  }
  if (!reason_.challenge.scopes.empty()) {
    add_scopes(scopes, reason_.challenge.scopes);
  } else if (scopes.empty()) {
    scopes = resource_->scopes_supported;
  }
  const bool takes_offline =
      std::ranges::find(server.scopes_supported, "offline_access") != server.scopes_supported.end();
  if (options.offline_access && takes_offline && needs_user(options.grant)) {
    add_scopes(scopes, {"offline_access"});
  }
  return scopes;
}

void Renewal::begin_grant(ServerMetadata server) {
  const ServerChallenge& challenge = reason_.challenge;
  GrantTarget target{.resource = *resource_, .server = std::move(server), .scopes = {}};
  target.scopes = choose_scopes(target.server);
  const DpopPolicy policy = context_->options.dpop;
  const bool is_asked = resource_->wants_dpop || (challenge.has_dpop && !challenge.has_bearer);
  if (policy == DpopPolicy::always || (policy == DpopPolicy::when_asked && is_asked)) {
    target.dpop = SigningKey::generate();
  }
  grant_ = make_grant(context_, std::move(target));
  grant_->start([weak = weak_from_this()](Result<StoredToken> token) {
    if (const auto self = weak.lock()) self->on_granted(std::move(token));
  });
}

void Renewal::on_granted(Result<StoredToken> token) {
  if (token) return keep(*std::move(token));
  const std::string name = oauth_error(token.error());
  if (name != "invalid_client" && name != "unauthorized_client") {
    return finish(std::unexpected(token.error()));
  }
  // The registration is gone, so the next login makes a new one.
  const std::vector<std::string> issuers = resource_->authorization_servers;
  change_credentials(
      *context_->loop, context_->store,
      [issuers](StoredCredentials& all) {
        std::erase_if(all.clients, [&issuers](const StoredClient& client) {
          return has_issuer(issuers, client.issuer);
        });
      },
      [weak = weak_from_this(), why = token.error()](const Result<void>&) {
        if (const auto self = weak.lock()) self->finish(std::unexpected(why));
      });
}

void Renewal::keep(StoredToken token) {
  change_credentials(
      *context_->loop, context_->store, [token](StoredCredentials& all) { all.put(token); },
      [weak = weak_from_this(), token](const Result<void>& saved) {
        const auto self = weak.lock();
        if (self == nullptr) return;
        // A login is there to be kept. Otherwise the token works, even if it cannot be kept.
        if (!saved && self->reason_.kind == RenewalReason::Kind::login) {
          return self->finish(std::unexpected(saved.error()));
        }
        if (!saved) log_warning("a token could not be kept", {{"error", saved.error().message}});
        self->finish(token);
      });
}

void Renewal::finish(Result<StoredToken> outcome) {
  const auto keep_this = shared_from_this();
  lock_ = FileLock();
  grant_ = nullptr;
  if (const Done done = std::exchange(done_, {})) done(std::move(outcome));
}

}  // namespace sluice
