#include "core/text/utf8.hpp"

#include <algorithm>
#include <cstdint>

#include "core/text/eight_bytes.hpp"

namespace sluice {
namespace {

/// How many bytes a character has that starts with `lead`, or 0 if no character starts with it.
std::size_t sequence_length(unsigned char lead) {
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead <= 0xDF) return 2;
  if (lead >= 0xE0 && lead <= 0xEF) return 3;
  if (lead >= 0xF0 && lead <= 0xF4) return 4;
  return 0;
}

/// Whether `second` may follow `lead` (Unicode 15, table 3-7).
bool is_valid_second(unsigned char lead, unsigned char second) {
  switch (lead) {
    case 0xE0:
      return second >= 0xA0 && second <= 0xBF;
    case 0xED:
      return second >= 0x80 && second <= 0x9F;
    case 0xF0:
      return second >= 0x90 && second <= 0xBF;
    case 0xF4:
      return second >= 0x80 && second <= 0x8F;
    default:
      return second >= 0x80 && second <= 0xBF;
  }
}

bool is_continuation(unsigned char byte) {
  return (byte & 0xC0) == 0x80;
}

}  // namespace

std::size_t count_characters(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(
      text, [](char c) { return !is_continuation(static_cast<unsigned char>(c)); }));
}

Utf8Part first_utf8_part(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  const std::size_t length = sequence_length(lead);
  if (length <= 1) return {1, length == 1};
  if (text.size() < 2 || !is_valid_second(lead, static_cast<unsigned char>(text[1]))) {
    return {1, false};
  }
  for (std::size_t i = 2; i < length; ++i) {
    if (i == text.size() || !is_continuation(static_cast<unsigned char>(text[i]))) {
      return {i, false};
    }
  }
  return {length, true};
}

char32_t code_point_of(std::string_view character) {
  const auto lead = static_cast<unsigned char>(character[0]);
  if (lead < 0x80) return lead;
  char32_t value = lead & (0x7FU >> character.size());
  for (const char byte : character.substr(1)) {
    value = (value << 6U) | (static_cast<unsigned char>(byte) & 0x3FU);
  }
  return value;
}

bool is_control(char32_t character) {
  const auto within = [character](char32_t first, char32_t last) {
    return character >= first && character <= last;
  };
  return within(0, 0x1F) || within(0x7F, 0x9F) || character == 0x061C || within(0x200E, 0x200F) ||
         within(0x2028, 0x202E) || within(0x2066, 0x2069);
}

bool is_valid_utf8(std::string_view text) {
  while (!text.empty()) {
    while (text.size() >= 8 && count_unmarked(eight_bytes(text.data())) == 8) {
      text.remove_prefix(8);
    }
    if (text.empty()) break;
    const Utf8Part part = first_utf8_part(text);
    if (!part.valid) return false;
    text.remove_prefix(part.length);
  }
  return true;
}

std::string valid_utf8(std::string_view text) {
  std::string out;
  append_utf8(out, text);
  return out;
}

void append_utf8(std::string& out, std::string_view text) {
  while (!text.empty()) {
    const Utf8Part part = first_utf8_part(text);
    out.append(part.valid ? text.substr(0, part.length) : kReplacementCharacter);
    text.remove_prefix(part.length);
  }
}

std::size_t complete_utf8_prefix(std::string_view text) {
  const std::size_t tail = text.size() < 3 ? text.size() : 3;
  for (std::size_t back = 1; back <= tail; ++back) {
    const std::size_t start = text.size() - back;
    const auto lead = static_cast<unsigned char>(text[start]);
    if (is_continuation(lead)) continue;
    if (sequence_length(lead) <= back) return text.size();
    if (back > 1 && !is_valid_second(lead, static_cast<unsigned char>(text[start + 1]))) {
      return text.size();
    }
    return start;
  }
  return text.size();
}

}  // namespace sluice
