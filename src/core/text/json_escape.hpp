#pragma once

#include <charconv>
#include <concepts>
#include <string>
#include <string_view>

// Text and numbers as they stand in JSON.

namespace sluice {

/// Appends `text` as the inside of a JSON string (no quotes): `"`, `\` and control characters
/// escaped, U+FFFD for what is no UTF-8, everything else as it is.
void append_json_escaped(std::string& out, std::string_view text);

/// Appends `text` as a JSON string with its quotes.
inline void append_json_string(std::string& out, std::string_view text) {
  out.push_back('"');
  append_json_escaped(out, text);
  out.push_back('"');
}

inline std::string to_json_string(std::string_view text) {
  std::string out;
  append_json_string(out, text);
  return out;
}

/// Appends an integer in decimal.
template <std::integral T>
void append_number(std::string& out, T value) {
  char digits[24];
  const auto [end, error] = std::to_chars(digits, digits + sizeof digits, value);
  out.append(digits, end);
}

}  // namespace sluice
