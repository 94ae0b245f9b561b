#pragma once

#include <algorithm>
#include <vector>

namespace sluice {

struct CharacterRange {
  char32_t low = 0;
  char32_t high = 0;  // inclusive
};
using CharacterSet = std::vector<CharacterRange>;

inline constexpr char32_t kLastCharacter = 0x10FFFF;
/// The halves of UTF-16's surrogate pairs, which are no characters (RFC 3629, section 3).
inline constexpr CharacterRange kSurrogates = {.low = 0xD800, .high = 0xDFFF};

/// The code points that are not in `set`, sorted and without overlaps. A range of `set` whose end
/// is before its beginning counts as empty.
inline CharacterSet complement(CharacterSet set) {
  std::erase_if(set, [](const CharacterRange& range) { return range.low > range.high; });
  std::ranges::sort(set, {}, &CharacterRange::low);
  CharacterSet rest;
  char32_t next = 0;
  for (const auto& [low, high] : set) {
    if (low > next) rest.push_back({.low = next, .high = low - 1});
    next = std::max(next, static_cast<char32_t>(high + 1));
  }
  if (next <= kLastCharacter) rest.push_back({.low = next, .high = kLastCharacter});
  return rest;
}

}  // namespace sluice
