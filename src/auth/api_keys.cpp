#include "auth/api_keys.hpp"

#include <algorithm>
#include <array>
#include <openssl/evp.h>
#include <span>
#include <stdexcept>

#include "core/crypto/random.hpp"
#include "core/text/text.hpp"

namespace sluice {
namespace {

std::string sha256(std::string_view text) {
  std::array<unsigned char, 32> digest{};
  unsigned int length = 0;
  if (EVP_Digest(text.data(), text.size(), digest.data(), &length, EVP_sha256(), nullptr) != 1) {
    throw std::runtime_error("SHA-256 is not available");
  }
  return {reinterpret_cast<const char*>(digest.data()), length};
}

/// The key in the value of an Authorization header; empty if there is none.
std::string_view bearer_of(std::string_view value) {
  // The scheme is case-insensitive (RFC 9110, section 11.1).
  static constexpr std::string_view kScheme = "bearer ";
  if (value.size() <= kScheme.size()) return {};
  for (std::size_t i = 0; i < kScheme.size(); ++i) {
    if (to_lower(value[i]) != kScheme[i]) return {};
  }
  value.remove_prefix(kScheme.size());
  while (value.starts_with(' ')) value.remove_prefix(1);
  return value;
}

SipHashKey random_key() {
  SipHashKey key{};
  random_bytes(std::as_writable_bytes(std::span(key)));
  return key;
}

}  // namespace

bool ApiKeys::is_key(std::string_view key) {
  const auto allowed = [](char c) { return c > ' ' && c < '\x7f' && c != ','; };
  return key.size() >= 16 && key.size() <= 256 && std::ranges::all_of(key, allowed);
}

ApiKeys::ApiKeys(const std::vector<std::pair<std::string, std::string>>& keys)
    : names_(keys.size(), Hash{random_key()}) {
  for (const auto& [name, key] : keys) names_.insert_or_assign(sha256(key), name);
}

std::string ApiKeys::digest_of(std::string_view key) {
  return key.empty() ? std::string() : sha256(key);
}

const std::string* ApiKeys::name_of_digest(const std::string& digest) const {
  const auto found = names_.find(digest);
  return found == names_.end() ? nullptr : &found->second;
}

const std::string* ApiKeys::name_of(std::string_view key) const {
  return name_of_digest(digest_of(key));
}

std::size_t ApiKeys::Hash::operator()(const std::string& digest) const {
  return siphash(key, digest);
}

bool ApiKeys::Equal::operator()(const std::string& a, const std::string& b) const {
  return constant_time_equal(a, b);
}

const std::string* ApiKeys::name_of_authorization(std::string_view value) const {
  return name_of(bearer_of(value));
}

std::string_view ApiKeys::key_in(const RequestHead& head) {
  static constexpr std::string_view kKey = "X-API-Key";
  static constexpr std::string_view kAuthorization = "Authorization";
  // If a header is repeated, it is not clear which key counts.
  if (head.is_repeated(kKey) || head.is_repeated(kAuthorization)) return {};
  const auto key = head.field(kKey);
  return key ? *key : bearer_of(head.field(kAuthorization).value_or(""));
}

std::expected<Principal, Refusal> ApiKeys::authenticate(const RequestHead& head) {
  if (const std::string* const name = name_of(key_in(head))) {
    return Principal{.id = principal_of(*name)};
  }
  return std::unexpected(
      Refusal::unauthorized("A valid API key is required: Authorization: Bearer KEY"));
}

}  // namespace sluice
