#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice {

/// Names of callers and the keys that prove them. Keys are kept as SHA-256 digests and compared in
/// constant time, every one of them on every look-up. Immutable, so thread-safe.
class ApiKeys {
 public:
  ApiKeys() = default;
  /// Pairs of name and key.
  explicit ApiKeys(const std::vector<std::pair<std::string, std::string>>& keys);

  /// No keys: everybody may call.
  [[nodiscard]] bool empty() const { return entries_.empty(); }
  /// The name behind `key`, or null.
  [[nodiscard]] const std::string* name_of(std::string_view key) const;
  /// The name behind an Authorization header's value ("Bearer KEY"), or null.
  [[nodiscard]] const std::string* name_of_authorization(std::string_view value) const;

 private:
  struct Entry {
    std::string name;
    std::string digest;
  };
  std::vector<Entry> entries_;
};

}  // namespace sluice
