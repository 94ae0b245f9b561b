#include "client/authorization/token_endpoint.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "core/text/base64.hpp"
#include "core/text/percent_encoding.hpp"
#include "core/text/secrets.hpp"
#include "json/mask.hpp"
#include "json/members.hpp"

namespace sluice {
namespace {

constexpr std::string_view kAssertionType =
    "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";

/// The user name and password of RFC 6749, section 2.3.1.
std::string basic_credentials(const OauthClient& client) {
  std::string plain;
  append_query_encoded(plain, client.id);
  plain.push_back(':');
  append_query_encoded(plain, client.secret);
  std::string out = "Basic ";
  append_base64(out, plain);
  return out;
}

Result<OauthRequest> make_request(const ClientRequest& from, std::string_view nonce, WallTime now) {
  OauthRequest out{.method = "POST",
                   .url = from.endpoint,
                   .headers = {{"Content-Type", "application/x-www-form-urlencoded"},
                               {"Accept", "application/json"}},
                   .body = {},
                   .named_by = from.named_by};
  const OauthClient& client = from.client;
  FormFields fields = from.fields;
  if (client.auth_method == kAuthBasic) {
    out.headers.emplace_back("Authorization", basic_credentials(client));
  } else {
    fields.emplace_back("client_id", client.id);
  }
  if (client.auth_method == kAuthPost) fields.emplace_back("client_secret", client.secret);
  if (client.auth_method == kAuthKey) {
    const auto key = SigningKey::from_pem(client.private_key);
    if (!key) {
      return fail(kNotAuthorized,
                  "The client's private key cannot be used: it must be an unencrypted PEM key, on "
                  "P-256, P-384 or Ed25519, or RSA of 2048 bits or more");
    }
    fields.emplace_back("client_assertion_type", kAssertionType);
    fields.emplace_back("client_assertion", make_client_assertion(*key, client.private_key_id,
                                                                  client.id, from.issuer, now));
  }
  if (from.dpop) {
    out.headers.emplace_back(
        "DPoP",
        make_dpop_proof(
            *from.dpop,
            {.method = "POST", .url = from.endpoint, .nonce = nonce, .access_token = {}}, now));
  }
  out.body = to_form(fields);
  return out;
}

/// What is secret in a request of OAuth.
SecretMask secrets_of(const OauthRequest& request) {
  static constexpr std::array<std::string_view, 9> kPublic = {
      "grant_type",           "client_id",        "client_assertion_type",
      "requested_token_type", "redirect_uri",     "scope",
      "subject_token_type",   "actor_token_type", "audience"};
  std::vector<std::string> secrets = secrets_in_url(request.url);
  const auto add = [&secrets](std::string text) {
    if (text.size() < kShortestSecret) return;
    std::string encoded;
    append_query_encoded(encoded, text);
    secrets.push_back(std::move(encoded));
    secrets.push_back(std::move(text));
  };
  for (auto& [name, value] : parse_form(request.body)) {
    if (name == "resource") {
      for (std::string& secret : secrets_in_url(value)) add(std::move(secret));
    } else if (std::ranges::find(kPublic, name) == kPublic.end()) {
      add(std::move(value));
    }
  }
  for (const auto& [name, value] : request.headers) {
    if (name != "Authorization") continue;
    const std::string credentials = value.substr(value.rfind(' ') + 1);
    const std::optional<std::string> plain = decode_base64(credentials);
    const std::size_t colon = plain ? plain->find(':') : std::string::npos;
    if (colon != std::string::npos) {
      if (auto secret = form_decode(std::string_view(*plain).substr(colon + 1))) {
        add(*std::move(secret));
      }
    }
    add(credentials);
  }
  return SecretMask(as_in_json(std::move(secrets)));
}

/// Masks what the server repeats of the request in an error, which is cut later.
void mask_error(OauthReply& reply, const SecretMask& mask) {
  Result<json::value> parsed = parse_json(reply.body);
  const json::object* const object = parsed ? parsed->if_object() : nullptr;
  if (object == nullptr || text_at(*object, "error").empty()) return;
  mask_in(*parsed, mask);
  reply.body = to_json(*parsed);
}

void send_with_nonce(const std::shared_ptr<OauthHttp>& http, ClientRequest request,
                     const std::string& nonce, WallTime now,
                     std::function<void(Result<OauthReply>)> done) {
  Result<OauthRequest> made = make_request(request, nonce, now);
  if (!made) return done(std::unexpected(made.error()));
  const bool may_repeat = request.dpop.has_value() && nonce.empty();
  SecretMask mask = secrets_of(*made);
  http->send(*std::move(made),
             [weak = std::weak_ptr(http), request = std::move(request), now, may_repeat,
              mask = std::move(mask), done = std::move(done)](Result<OauthReply> reply) mutable {
               if (reply) mask_error(*reply, mask);
               const auto again = weak.lock();
               const bool wants_nonce = reply && may_repeat && again != nullptr &&
                                        !reply->dpop_nonce.empty() && reply->status / 100 == 4 &&
                                        reply->body.find("use_dpop_nonce") != std::string::npos;
               if (!wants_nonce) return done(std::move(reply));
               send_with_nonce(again, std::move(request), reply->dpop_nonce, now, std::move(done));
             });
}

}  // namespace

Result<std::string> choose_auth_method(const std::vector<std::string>& methods, bool has_secret,
                                       bool has_key, std::string_view server) {
  const auto takes = [&methods](std::string_view method) {
    return std::ranges::find(methods, method) != methods.end();
  };
  // Without a list, a server takes client_secret_basic (RFC 8414, section 2).
  if (has_key && (methods.empty() || takes(kAuthKey))) return std::string(kAuthKey);
  if (has_secret && (methods.empty() || takes(kAuthBasic))) return std::string(kAuthBasic);
  if (has_secret && takes(kAuthPost)) return std::string(kAuthPost);
  if (methods.empty() || takes(kAuthNone)) return std::string(kAuthNone);
  std::string list;
  for (const std::string& method : methods) list.append(list.empty() ? "" : ", ").append(method);
  const std::string_view what = has_secret || has_key ? "the client has other credentials"
                                                      : "the client has no secret and no key";
  return std::unexpected(make_oauth_error(server, "invalid_client",
                                          "it takes only " + list + ", but " + std::string(what)));
}

void send_client_request(const std::shared_ptr<OauthHttp>& http, ClientRequest request,
                         WallTime now, std::function<void(Result<OauthReply>)> done) {
  send_with_nonce(http, std::move(request), {}, now, std::move(done));
}

void request_token(const std::shared_ptr<OauthHttp>& http, ClientRequest request, WallTime now,
                   std::function<void(Result<TokenReply>)> done) {
  const std::string issuer = request.issuer;
  send_client_request(http, std::move(request), now,
                      [issuer, done = std::move(done)](const Result<OauthReply>& reply) {
                        if (!reply) return done(std::unexpected(reply.error()));
                        done(parse_token_reply(reply->status, reply->body, issuer));
                      });
}

}  // namespace sluice
