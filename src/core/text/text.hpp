#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

// Functions for ASCII text that do not depend on the locale.

namespace sluice {

constexpr bool is_ascii(char c) {
  return static_cast<unsigned char>(c) < 0x80;
}
constexpr bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
constexpr bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

constexpr char to_lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}
inline std::string to_lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = to_lower(c);
  return out;
}

/// Whether a character may stand in a token (RFC 9110, section 5.6.2).
inline constexpr std::array<bool, 256> kTokenChars = [] {
  std::array<bool, 256> table{};
  for (const char c : std::string_view("!#$%&'*+-.^_`|~0123456789"
                                       "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")) {
    table[static_cast<unsigned char>(c)] = true;
  }
  return table;
}();
constexpr bool is_token_char(char c) {
  return kTokenChars[static_cast<unsigned char>(c)];
}

/// `text` without the spaces and tabs at both ends (OWS, RFC 9110 section 5.6.3). The result is a
/// view into `text`, even if it is empty.
constexpr std::string_view trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

/// Removes the characters in `blanks` instead of spaces and tabs.
constexpr std::string_view trim(std::string_view text, std::string_view blanks) {
  while (!text.empty() && blanks.contains(text.front())) text.remove_prefix(1);
  while (!text.empty() && blanks.contains(text.back())) text.remove_suffix(1);
  return text;
}

/// Reserves memory for `text`, which is received in pieces and is to become `size` bytes, so that a
/// late piece does not move everything. `size` is only a peer's announcement: nothing is reserved
/// until a sixteenth of it has arrived.
inline void make_room(std::string& text, std::size_t size) {
  if (text.capacity() < size && text.size() >= size / 16) text.reserve(size);
}

/// Two lower-case hexadecimal digits for each byte.
inline std::string to_hex(std::string_view bytes) {
  static constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out;
  out.reserve(2 * bytes.size());
  for (const char each : bytes) {
    const auto byte = static_cast<unsigned char>(each);
    out += kDigits[byte >> 4U];
    out += kDigits[byte & 0xFU];
  }
  return out;
}

}  // namespace sluice
