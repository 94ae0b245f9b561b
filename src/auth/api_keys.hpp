#pragma once

#include <expected>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sluice/authenticator.hpp"

namespace sluice {

/// Names of callers and the keys that prove them. Keys are kept as SHA-256 digests and compared in
/// constant time, every one of them on every look-up. Immutable, so thread-safe.
class ApiKeys final : public Authenticator {
 public:
  /// Pairs of name and key.
  explicit ApiKeys(const std::vector<std::pair<std::string, std::string>>& keys);

  /// The name behind `key`, or null.
  [[nodiscard]] const std::string* name_of(std::string_view key) const;
  /// The name behind an Authorization header's value ("Bearer KEY"), or null.
  [[nodiscard]] const std::string* name_of_authorization(std::string_view value) const;

  /// "key:" and the name behind the key, which is in X-API-Key or in Authorization.
  std::expected<Principal, Refusal> authenticate(const RequestHead& head) override;

 private:
  struct Entry {
    std::string name;
    std::string digest;
  };
  std::vector<Entry> entries_;
};

}  // namespace sluice
