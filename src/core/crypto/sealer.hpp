#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sluice {

/// Encrypts and authenticates text that is given to others for keeping: nobody without a key can
/// read or change it (AES-256-GCM, NIST SP 800-38D, with random 96-bit nonces). Immutable and
/// thread-safe.
class Sealer {
 public:
  static constexpr std::size_t kKeyBytes = 32;
  using Key = std::array<unsigned char, kKeyBytes>;

  /// Seals with the first key and opens with any of them. To change keys, put the new one first and
  /// keep the old ones while texts sealed with them are still in use. Without keys, uses a random
  /// one that exists only in this object.
  explicit Sealer(std::vector<Key> keys = {});

  /// Seals `text`; the result is visible ASCII. `purpose` is not part of it, but the same purpose
  /// is needed to open it.
  [[nodiscard]] std::string seal(std::string_view text, std::string_view purpose) const;

  /// The text that was sealed. Nothing if it was not sealed with one of the keys and for this
  /// purpose.
  [[nodiscard]] std::optional<std::string> open(std::string_view sealed,
                                                std::string_view purpose) const;

 private:
  std::vector<Key> keys_;
};

}  // namespace sluice
