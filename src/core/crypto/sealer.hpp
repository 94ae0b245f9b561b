#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sluice {

/// Seals text that somebody else carries: nobody without a key can read or change it (AES-256-GCM,
/// NIST SP 800-38D, with random 96-bit nonces). Immutable and thread-safe.
class Sealer {
 public:
  static constexpr std::size_t kKeyBytes = 32;
  using Key = std::array<unsigned char, kKeyBytes>;

  /// The first key seals, each of them opens: a new one is put first and the old ones stay until
  /// nothing they sealed is under way. Without keys, a random one that ends with this object.
  explicit Sealer(std::vector<Key> keys = {});

  /// `text` as visible ASCII. `purpose` is not in it, but must be the same to open it.
  [[nodiscard]] std::string seal(std::string_view text, std::string_view purpose) const;

  /// What was sealed; nothing if it was not sealed with one of the keys for this purpose.
  [[nodiscard]] std::optional<std::string> open(std::string_view sealed,
                                                std::string_view purpose) const;

 private:
  std::vector<Key> keys_;
};

}  // namespace sluice
