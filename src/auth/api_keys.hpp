#pragma once

#include <cstddef>
#include <expected>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/crypto/siphash.hpp"
#include "sluice/authenticator.hpp"

namespace sluice {

/// The names of callers and the keys that prove them. Keys are stored as SHA-256 digests. A look-up
/// takes as long among many keys as among few. It computes a keyed hash and compares in constant
/// time, so that its duration tells nothing about keys to a caller who guesses them. Immutable,
/// therefore thread-safe.
class ApiKeys final : public Authenticator {
 public:
  /// Keys have 16 to 256 visible ASCII characters and no comma, so that they can be sent in a
  /// header field, and cannot be guessed.
  static constexpr std::string_view kKeyRule =
      "a key has 16 to 256 visible ASCII characters without commas";
  static bool is_key(std::string_view key);

  /// `keys` are pairs of name and key. If several names have the same key, it is the last one's.
  explicit ApiKeys(const std::vector<std::pair<std::string, std::string>>& keys);

  /// The name of the caller with `key`, or null.
  [[nodiscard]] const std::string* name_of(std::string_view key) const;
  /// The digest of `key`, which proves that its sender had the key; empty if `key` is.
  static std::string digest_of(std::string_view key);
  /// The name of the caller whose key has this digest, or null.
  [[nodiscard]] const std::string* name_of_digest(const std::string& digest) const;
  /// The name of the caller with the key in an Authorization header's value ("Bearer KEY"), or
  /// null.
  [[nodiscard]] const std::string* name_of_authorization(std::string_view value) const;

  /// The key in X-API-Key or in Authorization; empty if there is none, or if a field is repeated.
  static std::string_view key_in(const RequestHead& head);
  /// "key:" followed by the name of a key's caller.
  static std::string principal_of(const std::string& name) { return "key:" + name; }
  /// Returns the principal_of() the caller whose key is in `head`.
  std::expected<Principal, Refusal> authenticate(const RequestHead& head) override;

 private:
  struct Hash {
    SipHashKey key;
    std::size_t operator()(const std::string& digest) const;
  };
  struct Equal {
    bool operator()(const std::string& a, const std::string& b) const;
  };
  std::unordered_map<std::string, std::string, Hash, Equal> names_;  // by the keys' digests
};

}  // namespace sluice
