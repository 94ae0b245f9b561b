#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace sluice {

/// Multiplied with a byte: eight of it.
inline constexpr std::uint64_t kEachByte = 0x0101010101010101U;

/// Eight bytes of a text as one number, of which the first is the lowest.
inline std::uint64_t eight_bytes(const char* bytes) {
  static_assert(std::endian::native == std::endian::little);
  std::uint64_t word = 0;
  std::memcpy(&word, bytes, sizeof word);
  return word;
}

/// How many of eight bytes stand before the first whose high bit is set; 8: none is.
inline std::size_t count_unmarked(std::uint64_t word) {
  return static_cast<std::size_t>(std::countr_zero(word & (kEachByte * 0x80))) / 8;
}

}  // namespace sluice
