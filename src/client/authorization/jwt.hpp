#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "core/crypto/signing_key.hpp"
#include "json/json.hpp"

namespace sluice {

using WallTime = std::chrono::system_clock::time_point;

/// A signed JSON Web Token (RFC 7515, compact form). `header` gets the member `alg`.
std::string make_jwt(const SigningKey& key, json::object header, const json::object& claims);

/// Authenticates a client at a token endpoint (RFC 7523, section 3). `audience` is the issuer of
/// the authorization server. Valid for a minute. `key_id` may be empty.
std::string make_client_assertion(const SigningKey& key, std::string_view key_id,
                                  std::string_view client_id, std::string_view audience,
                                  WallTime now);

/// What a DPoP proof is for (RFC 9449, section 4.2).
struct DpopUse {
  std::string_view method;
  std::string_view url;           // its query and fragment are left out
  std::string_view nonce;         // of the server; empty: none was given
  std::string_view access_token;  // that is sent with it; empty: none
};
/// A proof that this client holds the key. Each has its own identifier, so it must be used once.
std::string make_dpop_proof(const SigningKey& key, const DpopUse& use, WallTime now);

/// What binds a token to the key: its thumbprint (RFC 7638).
std::string key_thumbprint(const SigningKey& key);

}  // namespace sluice
