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

const std::string* ApiKeys::name_of(std::string_view key) const {
  const auto found = names_.find(sha256(key));
  return found == names_.end() ? nullptr : &found->second;
}

std::size_t ApiKeys::Hash::operator()(const std::string& digest) const {
  return siphash(key, digest);
}

bool ApiKeys::Equal::operator()(const std::string& a, const std::string& b) const {
  return constant_time_equal(a, b);
}

const std::string* ApiKeys::name_of_authorization(std::string_view value) const {
  // The scheme is case-insensitive (RFC 9110, section 11.1).
  static constexpr std::string_view kScheme = "bearer ";
  if (value.size() <= kScheme.size()) return nullptr;
  for (std::size_t i = 0; i < kScheme.size(); ++i) {
    if (to_lower(value[i]) != kScheme[i]) return nullptr;
  }
  value.remove_prefix(kScheme.size());
  while (value.starts_with(' ')) value.remove_prefix(1);
  return name_of(value);
}

std::expected<Principal, Refusal> ApiKeys::authenticate(const RequestHead& head) {
  static constexpr std::string_view kKey = "X-API-Key";
  static constexpr std::string_view kAuthorization = "Authorization";
  // If a header is repeated, it is not clear which key counts, so the request is refused.
  if (!head.is_repeated(kKey) && !head.is_repeated(kAuthorization)) {
    const auto key = head.field(kKey);
    const std::string* const name =
        key ? name_of(*key) : name_of_authorization(head.field(kAuthorization).value_or(""));
    if (name != nullptr) return Principal{.id = "key:" + *name};
  }
  return std::unexpected(
      Refusal::unauthorized("A valid API key is required: Authorization: Bearer KEY"));
}

}  // namespace sluice
