#include "client/authorization/authorizer.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "client/authorization/guarded_http.hpp"
#include "client/authorization/token_endpoint.hpp"
#include "core/log/log.hpp"
#include "net/http/status_codes.hpp"
#include "rpc/error_codes.hpp"

namespace sluice {
namespace {

/// A token that expires within so many seconds counts as expired: requests take time, and clocks
/// differ.
constexpr std::int64_t kExpiryMargin = 5;
/// A token is renewed so many seconds before it expires, but not in the first four fifths of its
/// life.
constexpr std::int64_t kEarly = 60;
constexpr std::int64_t kEarlyPart = 5;
/// After an early renewal has failed.
constexpr Duration kEarlyPause = std::chrono::seconds(30);
constexpr std::size_t kMaxNonce = 1024;
constexpr std::size_t kMaxStepUpScopes = 64;

bool is_same_origin(const Url& a, const Url& b) {
  return a.is_tls() == b.is_tls() && a.host == b.host && a.port == b.port;
}

bool has_all(const std::vector<std::string>& scopes, const std::vector<std::string>& wanted) {
  return std::ranges::all_of(wanted, [&scopes](const std::string& scope) {
    return std::ranges::find(scopes, scope) != scopes.end();
  });
}

}  // namespace

Authorizer::Authorizer(AuthorizationContextPtr context) : context_(std::move(context)) {}

void Authorizer::load() {
  if (std::exchange(is_loaded_, true)) return;
  Result<StoredCredentials> stored = context_->store->load();
  if (!stored) {
    // Requests are sent without a token. The renewal that follows tells what is wrong.
    log_warning("the stored tokens cannot be used", {{"error", stored.error().message}});
    return;
  }
  const StoredToken* const token =
      stored->find(canonical_resource(context_->server), to_text(context_->options.grant),
                   context_->options.client_id);
  if (token != nullptr) use(*token);
}

void Authorizer::use(StoredToken token) {
  key_ = token.dpop_key.empty() ? std::nullopt : SigningKey::from_pem(token.dpop_key);
  header_ = (token.token_type == "dpop" ? "DPoP " : "Bearer ") + token.access_token;
  token_ = std::move(token);
  ++credential_;
}

RequestAuthorization Authorizer::sign(std::string_view method, const Url& url) const {
  RequestAuthorization out;
  if (!token_) return out;
  out.credential = credential_;
  out.headers.emplace_back("Authorization", header_);
  if (token_->token_type == "dpop" && key_) {
    const std::string place = url.to_string();
    out.headers.emplace_back(
        "DPoP",
        make_dpop_proof(
            *key_,
            {.method = method, .url = place, .nonce = nonce_, .access_token = token_->access_token},
            context_->time_of_day()));
  }
  return out;
}

bool Authorizer::has_expired() const {
  return token_ && token_->expires_at != 0 &&
         context_->now() >=
             token_->expires_at -
                 std::min(kExpiryMargin, (token_->expires_at - token_->issued_at) / kEarlyPart);
}

bool Authorizer::expires_soon() const {
  if (!token_ || token_->expires_at == 0) return false;
  const std::int64_t life = token_->expires_at - token_->issued_at;
  return context_->now() >= token_->expires_at - std::min(kEarly, life / kEarlyPart);
}

bool Authorizer::is_renewable() const {
  return token_ && (!token_->refresh_token.empty() || !needs_user(context_->options.grant));
}

void Authorizer::on_address(const Endpoint& endpoint) {
  context_->http->server_is_at(endpoint);
}

void Authorizer::authorize(std::string_view method, const Url& url, Authorized done) {
  // A token goes to the server that it is for, and nowhere else.
  if (!is_same_origin(url, context_->server)) return done(RequestAuthorization());
  load();
  // An expired token that cannot be renewed is sent all the same: clocks differ, and the server's
  // refusal leads to a login.
  if (!has_expired() || !is_renewable()) {
    if (expires_soon()) renew_early();
    return done(sign(method, url));
  }
  renew({.kind = RenewalReason::Kind::expired, .access_token = token_->access_token},
        [weak = weak_from_this(), method = std::string(method), url,
         done = std::move(done)](Result<void> outcome) mutable {
          const auto self = weak.lock();
          if (self == nullptr) return;
          if (!outcome) return done(std::unexpected(outcome.error()));
          done(self->sign(method, url));
        });
}

void Authorizer::renew_early() {
  const TimePoint now = context_->loop->clock().now();
  if (renewal_ != nullptr || token_->refresh_token.empty() || now < next_early_) return;
  next_early_ = now + kEarlyPause;
  renew({.kind = RenewalReason::Kind::early, .access_token = token_->access_token},
        [](const Result<void>&) {});
}

void Authorizer::on_reply(const HttpReplyHead& reply) {
  // Only a server whose tokens are bound to a key needs a nonce in each proof.
  if (!key_) return;
  const std::string_view nonce = reply.header("DPoP-Nonce");
  if (!nonce.empty() && nonce.size() <= kMaxNonce) nonce_ = nonce;
}

bool Authorizer::on_refused(const HttpReplyHead& reply, std::uint64_t credential, Handled done) {
  ServerChallenge challenge = read_challenge(reply.headers);
  if (reply.status == kForbidden) {
    if (challenge.error != "insufficient_scope" || challenge.scopes.empty() || !token_) {
      return false;
    }
    step_up(std::move(challenge), credential, std::move(done));
    return true;
  }
  const bool has_newer = credential != credential_;
  const bool wants_nonce = challenge.error == "use_dpop_nonce" && key_ && !nonce_.empty();
  if (has_newer || wants_nonce) {
    done({});
    return true;
  }
  renew({.kind = RenewalReason::Kind::refused,
         .access_token = token_ ? token_->access_token : std::string(),
         .challenge = std::move(challenge)},
        std::move(done));
  return true;
}

void Authorizer::step_up(ServerChallenge challenge, std::uint64_t credential, Handled done) {
  if (credential != credential_) return done({});
  const std::string missing = join_scopes(challenge.scopes);
  if (has_all(split_scopes(token_->scope), challenge.scopes)) {
    return done(fail(kForbidden, "The server refuses the request for want of the scopes " +
                                     missing + ", which the token has"));
  }
  if (step_ups_.size() >= kMaxStepUpScopes && !step_ups_.contains(missing)) step_ups_.clear();
  if (++step_ups_[missing] > kMaxStepUps) {
    return done(fail(kForbidden, "The authorization server does not grant the scopes " + missing +
                                     ", which the server needs for this request"));
  }
  renew({.kind = RenewalReason::Kind::needs_more,
         .access_token = token_->access_token,
         .challenge = std::move(challenge)},
        std::move(done));
}

void Authorizer::renew(RenewalReason reason, Handled done) {
  using Kind = RenewalReason::Kind;
  if (waiting_.size() >= kMaxWaiting) {
    return done(fail(kBusy, "There are too many requests that wait for authorization"));
  }
  const bool is_new_failure = failure_ && reason.kind != Kind::login &&
                              context_->loop->clock().now() - failed_at_ < kFailureMemory;
  if (renewal_ == nullptr && is_new_failure) return done(std::unexpected(*failure_));
  waiting_.push_back(std::move(done));
  if (renewal_ != nullptr) return;
  is_early_ = reason.kind == Kind::early;
  renewal_ = std::make_shared<Renewal>(context_, std::move(reason));
  renewal_->start([weak = weak_from_this()](Result<StoredToken> outcome) {
    if (const auto self = weak.lock()) self->on_renewed(std::move(outcome));
  });
}

void Authorizer::on_renewed(Result<StoredToken> outcome) {
  const auto keep = shared_from_this();
  const std::shared_ptr<Renewal> over = std::exchange(renewal_, nullptr);
  Result<void> verdict;
  if (outcome) {
    failure_.reset();
    use(*std::move(outcome));
  } else {
    verdict = std::unexpected(outcome.error());
    // A refusal before time leaves a token that is still good.
    if (!is_early_) {
      failure_ = outcome.error();
      failed_at_ = context_->loop->clock().now();
    }
  }
  // Who waits for an early renewal only needs a token that is good, and may find that it is not.
  if (is_early_) verdict = {};
  for (Handled& done : std::exchange(waiting_, {})) done(verdict);
}

void Authorizer::login(ServerChallenge challenge, Handled done) {
  load();
  renew({.kind = RenewalReason::Kind::login,
         .access_token = token_ ? token_->access_token : std::string(),
         .challenge = std::move(challenge)},
        std::move(done));
}

/// A logout under way: it is over when the file is written and the authorization servers have
/// answered.
struct Authorizer::Logout {
  std::size_t open = 1;   // what is awaited; the file is the first
  std::size_t count = 0;  // tokens
  Result<void> saved;
  std::function<void(Result<std::size_t>)> done;

  void end_one() {
    if (--open != 0) return;
    if (!saved) return done(std::unexpected(saved.error()));
    done(count);
  }
};

void Authorizer::logout(std::function<void(Result<std::size_t>)> done) {
  const std::string server = canonical_resource(context_->server);
  const auto logout = std::make_shared<Logout>();
  logout->done = std::move(done);
  change_credentials(
      *context_->loop, context_->store,
      [weak = weak_from_this(), server, logout](StoredCredentials& all) {
        const auto self = weak.lock();
        for (const StoredToken& token : all.tokens) {
          if (token.server != server) continue;
          ++logout->count;
          if (self != nullptr) self->revoke(token, all, logout);
        }
        std::erase_if(all.tokens,
                      [&server](const StoredToken& token) { return token.server == server; });
      },
      [weak = weak_from_this(), logout](const Result<void>& saved) {
        if (const auto self = weak.lock()) {
          self->token_.reset();
          self->key_.reset();
          self->credential_ = 0;
        }
        logout->saved = saved;
        logout->end_one();
      });
}

void Authorizer::revoke(const StoredToken& token, const StoredCredentials& stored,
                        const std::shared_ptr<Logout>& logout) {
  if (token.revocation_endpoint.empty()) return;
  ++logout->open;
  OauthClient client{.id = token.client_id,
                     .secret = {},
                     .auth_method = token.auth_method,
                     .private_key = context_->options.private_key,
                     .private_key_id = context_->options.private_key_id};
  if (token.client_id == context_->options.client_id) {
    client.secret = context_->options.client_secret;
  } else if (const StoredClient* const known = client_of_token(stored, token, context_->now())) {
    client.secret = known->client_secret;
  }
  // The end of a refresh token ends the access tokens too (RFC 7009, section 2.1).
  const bool has_refresh = !token.refresh_token.empty();
  send_client_request(
      context_->http,
      {.endpoint = token.revocation_endpoint,
       .issuer = token.issuer,
       .client = std::move(client),
       .fields = {{"token", has_refresh ? token.refresh_token : token.access_token},
                  {"token_type_hint", has_refresh ? "refresh_token" : "access_token"}}},
      context_->time_of_day(), [issuer = token.issuer, logout](const Result<OauthReply>& reply) {
        if (!reply) {
          log_warning("a token was not ended",
                      {{"issuer", issuer}, {"error", reply.error().message}});
        } else if (reply->status / 100 != 2) {
          log_warning("a token was not ended", {{"issuer", issuer}, {"status", reply->status}});
        }
        logout->end_one();
      });
}

std::shared_ptr<Authorizer> make_authorizer(EventLoop& loop, const Url& server,
                                            AuthorizationOptions options,
                                            std::shared_ptr<TlsContext> tls,
                                            std::shared_ptr<const ProxySettings> proxies,
                                            HttpTap tap) {
  auto context = std::make_shared<AuthorizationContext>();
  context->loop = &loop;
  context->server = server;
  context->server.scheme = server.is_tls() ? "https" : "http";
  context->http = std::make_shared<GuardedHttp>(
      loop, GuardedHttpOptions{.server = context->server,
                               .allow_private_addresses = options.allow_private_addresses,
                               .tls = std::move(tls),
                               .proxies = std::move(proxies),
                               .tap = std::move(tap)});
  context->store = std::make_shared<TokenStore>(options.token_file);
  context->listen = [&loop, host = options.redirect_host](std::uint16_t port,
                                                          OnRedirect on_redirect) {
    return listen_for_redirect(loop, host, port, std::move(on_redirect));
  };
  context->options = std::move(options);
  return std::make_shared<Authorizer>(std::move(context));
}

}  // namespace sluice
