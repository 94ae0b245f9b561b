#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "json/json.hpp"

namespace sluice {

/// The code of an error that ends in "log in again": there is no authorization, and why.
inline constexpr int kNotAuthorized = 401;

// The replies of an authorization server. They come from others: every string is bounded, what is
// of the wrong type counts as missing, and unknown members are ignored.

/// A reply of the token endpoint (RFC 6749, section 5.1; RFC 8693, section 2.2.1).
struct TokenReply {
  std::string access_token;
  std::string token_type;                      // lower case
  std::string refresh_token;                   // empty: none
  std::optional<std::string> scope;            // nothing: as it was asked for
  std::optional<std::chrono::seconds> expiry;  // from now; nothing: unknown
  std::string issued_token_type;               // of a token exchange
};

/// Reads what the token endpoint of `server` answers with HTTP `status`. Errors: kNotAuthorized
/// with the reason of the server (section 5.2), which oauth_error() reads; 502 if the server is
/// in trouble; 500 if the reply is none of OAuth's.
Result<TokenReply> parse_token_reply(int status, std::string_view body, std::string_view server);

/// A client that is registered with an authorization server (RFC 7591, section 3.2.1).
struct RegistrationReply {
  std::string client_id;
  std::string client_secret;           // empty: a public client
  std::string auth_method;             // empty: not said
  std::int64_t secret_expires_at = 0;  // seconds since 1970; 0: never
};
/// Errors as of parse_token_reply().
Result<RegistrationReply> parse_registration_reply(int status, std::string_view body,
                                                   std::string_view server);

/// A reply of the device authorization endpoint (RFC 8628, section 3.2).
struct DeviceReply {
  std::string device_code;
  std::string user_code;
  std::string verification_uri;
  std::string verification_uri_complete;  // empty: none
  std::chrono::seconds expiry{};
  std::chrono::seconds interval{};  // between polls
};
/// Errors as of parse_token_reply().
Result<DeviceReply> parse_device_reply(int status, std::string_view body, std::string_view server);

/// The `error` of RFC 6749, section 5.2, that an error above carries, such as "invalid_grant";
/// empty if it carries none.
std::string oauth_error(const Error& error);
/// An error that carries `name`. What `description` says is made safe to show, and cut.
Error make_oauth_error(std::string_view server, std::string_view name,
                       std::string_view description);

/// The strings of the member `name`, at most 1,000; nothing if it is not there or not an array.
std::optional<std::vector<std::string>> texts_at(const json::object& object, std::string_view name);

}  // namespace sluice
