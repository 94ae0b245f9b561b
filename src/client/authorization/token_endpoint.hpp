#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "client/authorization/jwt.hpp"
#include "client/authorization/oauth_http.hpp"
#include "client/authorization/oauth_reply.hpp"
#include "core/crypto/signing_key.hpp"
#include "core/error.hpp"

namespace sluice {

// The names of token_endpoint_auth_method (RFC 7591, section 2) that this client knows.
inline constexpr std::string_view kAuthNone = "none";
inline constexpr std::string_view kAuthBasic = "client_secret_basic";
inline constexpr std::string_view kAuthPost = "client_secret_post";
inline constexpr std::string_view kAuthKey = "private_key_jwt";

/// A client as an authorization server knows it.
struct OauthClient {
  std::string id = {};
  std::string secret = {};          // empty: none
  std::string auth_method = {};     // one of the above
  std::string private_key = {};     // PEM, for kAuthKey
  std::string private_key_id = {};  // empty: none
};

/// How a client that has a secret, or a key, or neither, authenticates itself at a server that
/// supports `methods`; empty: the server does not say. Error: kNotAuthorized, there is no common
/// method.
Result<std::string> choose_auth_method(const std::vector<std::string>& methods, bool has_secret,
                                       bool has_key, std::string_view server);

/// A request to an authorization server by an authenticated client.
struct ClientRequest {
  std::string endpoint;
  std::string issuer;  // for errors, and the audience of assertions
  OauthClient client;
  FormFields fields;
  NamedBy named_by = NamedBy::server;
  std::optional<SigningKey> dpop = {};  // binds the token to it
};

/// Authenticates the client in `request` and sends it. A demand for a DPoP nonce is met once (RFC
/// 9449, section 8). `done` gets the reply whatever its status, or the error of OauthHttp::send().
/// Error: kNotAuthorized, the client's key cannot be used.
void send_client_request(const std::shared_ptr<OauthHttp>& http, ClientRequest request,
                         WallTime now, std::function<void(Result<OauthReply>)> done);

/// The same for a token endpoint, whose reply is read.
void request_token(const std::shared_ptr<OauthHttp>& http, ClientRequest request, WallTime now,
                   std::function<void(Result<TokenReply>)> done);

}  // namespace sluice
