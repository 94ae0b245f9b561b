#include "client/authorization/jwt.hpp"

#include <cstddef>
#include <cstdint>

#include "core/crypto/digest.hpp"
#include "core/crypto/random.hpp"
#include "core/text/base64.hpp"

namespace sluice {
namespace {

constexpr std::size_t kJwtIdLength = 24;
constexpr std::int64_t kAssertionSeconds = 60;

std::int64_t to_unix_seconds(WallTime time) {
  return std::chrono::duration_cast<std::chrono::seconds>(time.time_since_epoch()).count();
}

}  // namespace

std::string make_jwt(const SigningKey& key, json::object header, const json::object& claims) {
  header["alg"] = key.algorithm();
  std::string out = to_base64url(to_json(header));
  out.push_back('.');
  append_base64url(out, to_json(claims));
  const std::string signature = key.sign(out);
  out.push_back('.');
  append_base64url(out, signature);
  return out;
}

std::string make_client_assertion(const SigningKey& key, std::string_view key_id,
                                  std::string_view client_id, std::string_view audience,
                                  WallTime now) {
  json::object header = {{"typ", "JWT"}};
  if (!key_id.empty()) header["kid"] = key_id;
  const std::int64_t seconds = to_unix_seconds(now);
  return make_jwt(key, std::move(header),
                  {{"iss", client_id},
                   {"sub", client_id},
                   {"aud", audience},
                   {"jti", random_id(kJwtIdLength)},
                   {"iat", seconds},
                   {"exp", seconds + kAssertionSeconds}});
}

std::string make_dpop_proof(const SigningKey& key, const DpopUse& use, WallTime now) {
  json::object claims = {{"jti", random_id(kJwtIdLength)},
                         {"htm", use.method},
                         {"htu", use.url.substr(0, use.url.find_first_of("?#"))},
                         {"iat", to_unix_seconds(now)}};
  if (!use.nonce.empty()) claims["nonce"] = use.nonce;
  if (!use.access_token.empty()) claims["ath"] = to_base64url(sha256(use.access_token));
  return make_jwt(key, {{"typ", "dpop+jwt"}, {"jwk", parse_json(key.public_jwk()).value()}},
                  claims);
}

std::string key_thumbprint(const SigningKey& key) {
  return to_base64url(sha256(key.public_jwk()));
}

}  // namespace sluice
