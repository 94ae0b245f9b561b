#pragma once

// How a client gets at a server that wants to be authorized (2026-07-28, Authorization).
//
//   sluice::Client client = sluice::connect("https://example.org/mcp", {
//       .authorization = sluice::AuthorizationOptions{
//           .token_file = "/home/me/.config/example/tokens.json",
//           .on_prompt = [](const sluice::LoginPrompt& prompt) { open_browser(prompt.url); }}});

#include <cstdint>
#include <expected>
#include <functional>
#include <string>
#include <vector>

#include "sluice/detail/duration.hpp"
#include "sluice/error.hpp"

namespace sluice {

/// How a client comes to an access token.
enum class GrantKind : std::uint8_t {
  authorization_code,  // the user logs in with a browser (OAuth 2.1, section 4.1)
  device_code,         // the user logs in with another device (RFC 8628)
  client_credentials,  // the client acts for itself (OAuth 2.1, section 4.2; SEP-1046)
  identity_assertion,  // the organisation's identity provider decides (SEP-990: ID-JAG)
  workload_identity,   // the platform that runs the client vouches for it (SEP-1933, RFC 7523)
};

/// Whether tokens are bound to a key of the client (RFC 9449).
enum class DpopPolicy : std::uint8_t { when_asked, always, never };

/// What the user is to do so that a login goes on.
struct LoginPrompt {
  std::string url;        // to open in a browser; http or https
  std::string user_code;  // to type there (device code), or empty
};

/// How a client authorizes itself to one MCP server.
struct AuthorizationOptions {
  GrantKind grant = GrantKind::authorization_code;

  /// A client that is registered already. Empty: by its metadata document, or else by dynamic
  /// registration. The grants without a user need it.
  std::string client_id = {};
  std::string client_secret = {};
  /// Authenticates the client instead of a secret (private_key_jwt): PEM, see SigningKey.
  std::string private_key = {};
  std::string private_key_id = {};  // `kid`; empty: none
  /// The issuer that has registered client_id, which is never shown to another. Empty: the first
  /// that the server names.
  std::string client_issuer = {};
  /// The https URL of this client's metadata document, which is its id where the authorization
  /// server takes such ids.
  std::string client_metadata_url = {};
  std::string client_name = "Sluice";  // for dynamic registration

  /// What to ask for in any case, besides what the server says it needs.
  std::vector<std::string> scopes = {};
  /// Ask for a refresh token where that takes a scope (SEP-2207).
  bool offline_access = true;
  /// Send the parameter `resource` (RFC 8707). Some authorization servers refuse it.
  bool send_resource = true;
  /// An issuer that is accepted although it is not the one that was expected, character by
  /// character: where RFC 8414, section 3.3, or RFC 9207, section 2.4, would refuse it.
  std::string accept_issuer = {};
  /// Let discovery lead to private addresses although the MCP server is not at such an address.
  bool allow_private_addresses = false;
  DpopPolicy dpop = DpopPolicy::when_asked;

  /// Where tokens are kept: a file of mode 0600. Empty: in memory.
  std::string token_file = {};

  /// Shows the user what to do. Called on the
  /// client's loop, so it must not wait; at most once for each login. Empty: there is no
  /// user, and what needs one fails.
  std::function<void(const LoginPrompt&)> on_prompt = {};
  /// The redirect URI is http://HOST:PORT/callback. Some authorization servers take only
  /// "localhost" as the host. Port 0: any free one.
  std::string redirect_host = "127.0.0.1";
  std::uint16_t redirect_port = 0;
  std::chrono::nanoseconds login_timeout = std::chrono::minutes(5);

  /// The token endpoint of the identity provider, and this client's registration with it
  /// (identity_assertion).
  std::string idp_token_endpoint = {};
  std::string idp_client_id = {};
  std::string idp_client_secret = {};  // empty: a public client
  /// The user's ID token (identity_assertion), or the workload's JWT (workload_identity). Called on
  /// the client's loop each time one is needed, so it must not wait.
  std::function<std::expected<std::string, Error>()> assertion = {};
};

}  // namespace sluice
