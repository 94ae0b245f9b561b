#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace sluice {

/// Whether `text` is well-formed UTF-8 (RFC 3629: no overlong forms, no surrogates, nothing above
/// U+10FFFF).
bool is_valid_utf8(std::string_view text);

/// What stands for malformed bytes: U+FFFD.
inline constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";

/// What a text starts with: a character, or bytes that are none.
struct Utf8Part {
  std::size_t length;  // bytes
  bool valid;
};

/// The first character of `text`, which is not empty, or the bytes that one replacement character
/// stands for (Unicode 15, section 3.9: maximal subparts).
Utf8Part first_utf8_part(std::string_view text);

/// The code point of a character, given its bytes.
char32_t code_point_of(std::string_view character);

/// Whether what shows text, such as a terminal, may take the character for more: the C0 and C1
/// controls, U+007F, the separators U+2028 and U+2029, and what changes the direction in which the
/// text around it is shown (UAX #9, section 2).
bool is_control(char32_t character);

/// Appends `text` with a replacement character for each part that is malformed.
void append_utf8(std::string& out, std::string_view text);

/// The length of the longest prefix of `text` that does not end inside a character. What follows
/// it (at most 3 bytes) may become a character when more bytes arrive. Bytes that can never become
/// one count as complete: the caller replaces or rejects them.
std::size_t complete_utf8_prefix(std::string_view text);

}  // namespace sluice
