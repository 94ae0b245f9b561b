#include "core/text/field_value.hpp"

#include <cstdint>

#include "core/text/eight_bytes.hpp"

namespace sluice {
namespace {

bool is_control(char c) {
  return static_cast<unsigned char>(c) < 0x20 || c == 0x7F;
}

/// How many of eight bytes stand before the first control character.
std::size_t count_others(const char* bytes) {
  const std::uint64_t word = eight_bytes(bytes);
  // Sets the high bit of each byte that is below 0x20, or DEL. A borrow may also set that of a
  // higher byte, but never that of a lower one, so the lowest bit that is set is right.
  const std::uint64_t below = (word - kEachByte * 0x20) & ~word;
  const std::uint64_t other = word ^ (kEachByte * 0x7F);
  const std::uint64_t del = (other - kEachByte) & ~other;
  return count_unmarked(below | del);
}

}  // namespace

std::size_t find_control(std::string_view text, std::size_t at) {
  const std::size_t from = at;
  for (; at + 8 <= text.size(); at += 8) {
    const std::size_t others = count_others(text.data() + at);
    if (others < 8) return at + others;
  }
  // The rest together with bytes before it, which are looked at twice.
  if (at < text.size() && text.size() - from >= 8) {
    return text.size() - 8 + count_others(text.data() + text.size() - 8);
  }
  while (at < text.size() && !is_control(text[at])) ++at;
  return at;
}

bool is_field_value(std::string_view text) {
  std::size_t at = find_control(text, 0);
  while (at < text.size() && text[at] == '\t') at = find_control(text, at + 1);
  return at >= text.size();
}

}  // namespace sluice
