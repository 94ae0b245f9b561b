#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace sluice {

/// Whether `text` is well-formed UTF-8 (RFC 3629: no overlong forms, no surrogates, nothing above
/// U+10FFFF).
bool is_valid_utf8(std::string_view text);

/// U+FFFD, which replaces malformed bytes.
inline constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";

/// The first part of a text: a character, or malformed bytes.
struct Utf8Part {
  std::size_t length;  // bytes
  bool valid;
};

/// The first character of `text`, or the malformed bytes that one replacement character stands for
/// (Unicode 15, section 3.9: maximal subparts). `text` must not be empty.
Utf8Part first_utf8_part(std::string_view text);

/// The number of characters in valid UTF-8.
std::size_t count_characters(std::string_view text);

/// The code point of a character, given its bytes.
char32_t code_point_of(std::string_view character);

/// Whether a terminal or another program that shows text may interpret the character instead of
/// showing it. These are the C0 and C1 controls, U+007F, the separators U+2028 and U+2029, and the
/// characters that change the direction of the text around them (UAX #9, section 2).
bool is_control(char32_t character);

/// Appends `text`, with a replacement character for each malformed part.
void append_utf8(std::string& out, std::string_view text);
/// The same as a new text.
std::string valid_utf8(std::string_view text);

/// The length of the longest prefix of `text` that does not end inside a character. The rest, at
/// most 3 bytes, may become a character when more bytes arrive. Bytes that can never become a
/// character count as complete; the caller replaces or rejects them.
std::size_t complete_utf8_prefix(std::string_view text);

}  // namespace sluice
