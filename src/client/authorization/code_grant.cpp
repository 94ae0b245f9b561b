#include "client/authorization/code_grant.hpp"

#include <algorithm>
#include <utility>

#include "client/authorization/challenge.hpp"
#include "client/authorization/client_registration.hpp"
#include "client/authorization/grant.hpp"
#include "core/crypto/digest.hpp"
#include "core/crypto/random.hpp"
#include "core/text/base64.hpp"
#include "net/http/status_codes.hpp"

namespace sluice {
namespace {

constexpr std::size_t kStateLength = 43;
constexpr std::size_t kVerifierLength = 64;  // 43 to 128 (RFC 7636, section 4.1)

/// The port in a redirect URI of ours, or 0.
std::uint16_t port_of(const std::string& redirect_uri) {
  const Result<Url> url = parse_url(redirect_uri);
  return url ? url->port : std::uint16_t{0};
}

/// The authorization code grant with PKCE (OAuth 2.1, section 4.1).
class CodeGrant final : public Grant, public std::enable_shared_from_this<CodeGrant> {
 public:
  CodeGrant(AuthorizationContextPtr context, GrantTarget target)
      : context_(std::move(context)), target_(std::move(target)) {}
  ~CodeGrant() override { release(); }
  CodeGrant(const CodeGrant&) = delete;
  CodeGrant& operator=(const CodeGrant&) = delete;

  void start(Done done) override {
    done_ = std::move(done);
    if (Result<void> fit = check_server(); !fit) return finish(std::unexpected(fit.error()));
    if (Result<void> listening = listen(); !listening) {
      return finish(std::unexpected(listening.error()));
    }
    find_client(context_, target_.server, receiver_->redirect_uri(),
                [weak = weak_from_this()](Result<OauthClient> client) {
                  if (const auto self = weak.lock()) self->on_client(std::move(client));
                });
  }

 private:
  [[nodiscard]] Result<void> check_server() const {
    const ServerMetadata& server = target_.server;
    if (!context_->options.on_prompt) {
      return fail(kNotAuthorized, "A login needs a user, and there is none");
    }
    if (std::ranges::find(server.challenge_methods, "S256") == server.challenge_methods.end()) {
      return fail(kNotAuthorized,
                  "The authorization server " + server.issuer +
                      " does not say that it supports PKCE with S256 "
                      "(code_challenge_methods_supported), so a stolen code could be used (OAuth "
                      "2.1, section 7.5.2)");
    }
    // Whatever opens the URL must not be led to run something else.
    const Result<Url> url = parse_url(server.authorization_endpoint);
    if (!url || url->is_websocket()) {
      return fail(kNotAuthorized, "The authorization server " + server.issuer +
                                      " has no authorization_endpoint that is an https URL");
    }
    return {};
  }

  /// On the port that the client was registered with, if there is one and it is free.
  Result<void> listen() {
    const AuthorizationOptions& options = context_->options;
    std::uint16_t port = options.redirect_port;
    if (port == 0 && options.client_id.empty()) {
      const Result<StoredCredentials> stored = context_->store->load();
      if (!stored) return std::unexpected(stored.error());
      const auto has_uri = [](const StoredClient& client) { return !client.redirect_uri.empty(); };
      if (const StoredClient* const known =
              stored->find_client(target_.server.issuer, context_->now(), has_uri)) {
        port = port_of(known->redirect_uri);
      }
    }
    const auto on_redirect = [this](std::string_view query) { return on_query(query); };
    auto receiver = context_->listen(port, on_redirect);
    if (!receiver && options.redirect_port == 0) receiver = context_->listen(0, on_redirect);
    if (!receiver) return std::unexpected(receiver.error());
    receiver_ = *std::move(receiver);
    return {};
  }

  void on_client(Result<OauthClient> client) {
    if (!client) return finish(std::unexpected(client.error()));
    client_ = *std::move(client);
    request_ = {.state = random_id(kStateLength),
                .verifier = random_id(kVerifierLength),
                .issuer = target_.server.issuer,
                .expects_iss = target_.server.sends_iss,
                .accepted_issuer = context_->options.accept_issuer};
    timer_ = context_->loop->schedule_at(
        context_->loop->clock().now() + context_->options.login_timeout, [this] {
          timer_ = 0;
          finish(fail(kNotAuthorized, "Nobody has logged in within the time for it"));
        });
    const auto keep = shared_from_this();
    context_->options.on_prompt({.url = authorization_url(), .user_code = {}});
  }

  [[nodiscard]] std::string authorization_url() const {
    FormFields fields = {{"response_type", "code"},
                         {"client_id", client_.id},
                         {"redirect_uri", receiver_->redirect_uri()},
                         {"state", request_.state},
                         {"code_challenge", to_base64url(sha256(request_.verifier))},
                         {"code_challenge_method", "S256"}};
    add_target(fields, *context_, target_);
    if (std::ranges::find(target_.scopes, "offline_access") != target_.scopes.end()) {
      // OpenID Connect Core, section 11, asks for that.
      fields.emplace_back("prompt", "consent");
    }
    if (target_.dpop) fields.emplace_back("dpop_jkt", key_thumbprint(*target_.dpop));
    const std::string& endpoint = target_.server.authorization_endpoint;
    const std::string_view place = std::string_view(endpoint).substr(0, endpoint.find('#'));
    return std::string(place) + (place.contains('?') ? "&" : "?") + to_form(fields);
  }

  RedirectVerdict on_query(std::string_view query) {
    if (request_.state.empty() || is_answered_) return RedirectVerdict::not_of_it;
    // Any page in the browser can send those. The state cannot be guessed, so they are not counted.
    if (!is_answer_to(request_, query)) return RedirectVerdict::not_of_it;
    is_answered_ = true;
    Result<std::string> code = read_redirect(request_, query);
    if (!code) {
      finish_later(std::unexpected(code.error()));
      return RedirectVerdict::refused;
    }
    redeem(*code);
    return RedirectVerdict::accepted;
  }

  void redeem(const std::string& code) {
    if (timer_ != 0) context_->loop->cancel(std::exchange(timer_, 0));
    ClientRequest request{.endpoint = target_.server.token_endpoint,
                          .issuer = target_.server.issuer,
                          .client = client_,
                          .fields = {{"grant_type", "authorization_code"},
                                     {"code", code},
                                     {"redirect_uri", receiver_->redirect_uri()},
                                     {"code_verifier", request_.verifier}},
                          .dpop = target_.dpop};
    if (context_->options.send_resource) {
      request.fields.emplace_back("resource", target_.resource.resource);
    }
    request_token(context_->http, std::move(request), context_->time_of_day(),
                  [weak = weak_from_this()](const Result<TokenReply>& reply) {
                    const auto self = weak.lock();
                    if (self == nullptr) return;
                    if (!reply) return self->finish(std::unexpected(reply.error()));
                    self->finish(make_token(*self->context_, self->target_, self->client_, *reply));
                  });
  }

  /// The receiver that calls still has to answer the browser.
  void finish_later(Result<StoredToken> outcome) {
    context_->loop->post([weak = weak_from_this(), outcome = std::move(outcome)]() mutable {
      if (const auto self = weak.lock()) self->finish(std::move(outcome));
    });
  }
  void finish(Result<StoredToken> outcome) {
    const auto keep = shared_from_this();
    const Done done = std::exchange(done_, {});
    if (!done) return;
    release();
    done(std::move(outcome));
  }
  void release() {
    if (timer_ != 0) context_->loop->cancel(std::exchange(timer_, 0));
    receiver_ = nullptr;
  }

  const AuthorizationContextPtr context_;
  const GrantTarget target_;
  Done done_;
  std::unique_ptr<RedirectReceiver> receiver_;
  OauthClient client_;
  AuthorizationRequest request_;  // its state is empty before the user is sent
  bool is_answered_ = false;
  Executor::TimerId timer_ = 0;
};

}  // namespace

bool is_answer_to(const AuthorizationRequest& request, std::string_view query) {
  return constant_time_equal(field_of(parse_form(query), "state"), request.state);
}

Result<std::string> read_redirect(const AuthorizationRequest& request, std::string_view query) {
  const FormFields fields = parse_form(query);
  const std::string_view iss = field_of(fields, "iss");
  const bool is_accepted = !request.accepted_issuer.empty() && iss == request.accepted_issuer;
  if (iss.data() == nullptr ? request.expects_iss : iss != request.issuer && !is_accepted) {
    return fail(kNotAuthorized,
                std::string("The answer to the login ") +
                    (iss.data() == nullptr ? "names no issuer, although the authorization server "
                                           : "is not one of the authorization server ") +
                    request.issuer + (iss.data() == nullptr ? " says that it does" : "") +
                    ": it could be mixed up with another's (RFC 9207, section 2.4). If the server "
                    "is right, accept the issuer that it names (accept_issuer)");
  }
  if (const std::string_view error = field_of(fields, "error"); !error.empty()) {
    return std::unexpected(
        make_oauth_error(request.issuer, error, field_of(fields, "error_description")));
  }
  const std::string_view code = field_of(fields, "code");
  if (code.empty()) {
    return fail(kNotAuthorized, "The authorization server " + request.issuer +
                                    " answers to the login without a code");
  }
  return std::string(code);
}

std::shared_ptr<Grant> make_code_grant(AuthorizationContextPtr context, GrantTarget target) {
  return std::make_shared<CodeGrant>(std::move(context), std::move(target));
}

}  // namespace sluice
