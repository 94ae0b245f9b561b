#include "client/authorization/client_registration.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include "json/json.hpp"

namespace sluice {
namespace {

constexpr std::string_view kDeviceGrant = "urn:ietf:params:oauth:grant-type:device_code";

/// How the client wants to authenticate itself: as a public one, which keeps no secret, if it can.
std::string_view wanted_auth_method(const ServerMetadata& server) {
  for (const std::string_view method : {kAuthNone, kAuthBasic, kAuthPost}) {
    if (std::ranges::find(server.auth_methods, method) != server.auth_methods.end()) return method;
  }
  return kAuthNone;
}

/// RFC 7591, section 2. `resource` does not belong here: some servers refuse the whole for it.
std::string registration_body(const AuthorizationOptions& options, const ServerMetadata& server,
                              const std::string& redirect_uri) {
  json::object body = {{"client_name", options.client_name},
                       {"token_endpoint_auth_method", wanted_auth_method(server)},
                       {"application_type", "native"}};
  if (redirect_uri.empty()) {
    body["grant_types"] = json::array{kDeviceGrant, "refresh_token"};
    // Left out, it means {"code"}, which takes a redirect URI.
    body["response_types"] = json::array();
  } else {
    body["grant_types"] = json::array{"authorization_code", "refresh_token"};
    body["response_types"] = json::array{"code"};
    body["redirect_uris"] = json::array{redirect_uri};
  }
  return to_json(body);
}

Error no_client(const ServerMetadata& server) {
  return {kNotAuthorized,
          "The authorization server " + server.issuer +
              " registers no clients by itself. Register one there, with the redirect URI "
              "http://127.0.0.1/callback, and give its client id",
          {}};
}

void on_registered(const AuthorizationContextPtr& context, const ServerMetadata& server,
                   const std::string& redirect_uri, const Result<OauthReply>& reply,
                   const std::function<void(Result<OauthClient>)>& done) {
  if (!reply) return done(std::unexpected(reply.error()));
  const Result<RegistrationReply> made =
      parse_registration_reply(reply->status, reply->body, server.issuer);
  if (!made) {
    return done(fail(made.error().code,
                     "The registration of this client fails. " + made.error().message +
                         ". A client that is registered there by hand can be used with its client "
                         "id",
                     made.error().data));
  }
  Result<std::string> method = made->auth_method;
  if (made->auth_method.empty()) {
    method =
        choose_auth_method(server.auth_methods, !made->client_secret.empty(), false, server.issuer);
    if (!method) return done(std::unexpected(method.error()));
  }
  OauthClient client{.id = made->client_id, .secret = made->client_secret, .auth_method = *method};
  StoredClient kept{.issuer = server.issuer,
                    .client_id = client.id,
                    .client_secret = client.secret,
                    .auth_method = client.auth_method,
                    .redirect_uri = redirect_uri,
                    .expires_at = made->secret_expires_at};
  change_credentials(
      *context->loop, context->store,
      [kept = std::move(kept)](StoredCredentials& all) { all.put(kept); },
      [client = std::move(client), done](const Result<void>& saved) {
        if (!saved) return done(std::unexpected(saved.error()));
        done(client);
      });
}

}  // namespace

Result<OauthClient> configured_client(const AuthorizationOptions& options,
                                      const ServerMetadata& server) {
  if (options.client_id.empty()) return std::unexpected(no_client(server));
  Result<std::string> method =
      choose_auth_method(server.auth_methods, !options.client_secret.empty(),
                         !options.private_key.empty(), server.issuer);
  if (!method) return std::unexpected(method.error());
  return OauthClient{.id = options.client_id,
                     .secret = options.client_secret,
                     .auth_method = *std::move(method),
                     .private_key = options.private_key,
                     .private_key_id = options.private_key_id};
}

void find_client(const AuthorizationContextPtr& context, const ServerMetadata& server,
                 const std::string& redirect_uri, std::function<void(Result<OauthClient>)> done) {
  const AuthorizationOptions& options = context->options;
  if (!options.client_id.empty()) return done(configured_client(options, server));
  if (server.takes_metadata_documents && !options.client_metadata_url.empty()) {
    return done(OauthClient{
        .id = options.client_metadata_url, .secret = {}, .auth_method = std::string(kAuthNone)});
  }
  const Result<StoredCredentials> stored = context->store->load();
  if (!stored) return done(std::unexpected(stored.error()));
  if (const StoredClient* const known = stored->find_client(
          server.issuer, context->now(),
          [&](const StoredClient& client) { return client.redirect_uri == redirect_uri; })) {
    return done(OauthClient{
        .id = known->client_id, .secret = known->client_secret, .auth_method = known->auth_method});
  }
  if (server.registration_endpoint.empty()) return done(std::unexpected(no_client(server)));
  context->http->send(
      {.method = "POST",
       .url = server.registration_endpoint,
       .headers = {{"Content-Type", "application/json"}, {"Accept", "application/json"}},
       .body = registration_body(options, server, redirect_uri)},
      [context, server, redirect_uri, done = std::move(done)](const Result<OauthReply>& reply) {
        on_registered(context, server, redirect_uri, reply, done);
      });
}

}  // namespace sluice
