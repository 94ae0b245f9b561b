#include "core/text/json_escape.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "core/text/utf8.hpp"

namespace sluice {
namespace {

/// What stands behind a backslash for a byte that JSON escapes with one letter, or one of these.
constexpr char kItself = 0;  // it is not escaped
constexpr char kLong = 1;    // it takes more than a letter, or belongs to a longer character
constexpr std::array<char, 256> make_letters() {
  std::array<char, 256> letters{};
  for (std::size_t c = 0; c < letters.size(); ++c) {
    letters[c] = c < 0x20 || c >= 0x80 ? kLong : kItself;
  }
  for (const char c : {'"', '\\'}) letters[static_cast<std::size_t>(c)] = c;
  letters['\n'] = 'n';
  letters['\r'] = 'r';
  letters['\t'] = 't';
  return letters;
}
constexpr std::array<char, 256> kLetters = make_letters();

char letter_of(char c) {
  return kLetters[static_cast<unsigned char>(c)];
}

/// How many of the eight bytes at `bytes` are plain, up to the first that is not.
std::size_t plain_bytes_of_eight(const char* bytes) {
  static_assert(std::endian::native == std::endian::little);
  static constexpr std::uint64_t kEach = 0x0101010101010101U;
  std::uint64_t word = 0;
  std::memcpy(&word, bytes, sizeof word);
  const std::uint64_t quote = word ^ (kEach * '"');
  const std::uint64_t backslash = word ^ (kEach * '\\');
  // The high bit of the first special byte is set here, and of none below it.
  const std::uint64_t special =
      ((word - kEach * 0x20) | (quote - kEach) | (backslash - kEach) | word) & (kEach * 0x80);
  return static_cast<std::size_t>(std::countr_zero(special)) / 8;
}

/// The plain bytes at the start of `text`.
std::string_view plain_prefix(std::string_view text) {
  std::size_t at = 0;
  for (; at + 8 <= text.size(); at += 8) {
    const std::size_t plain = plain_bytes_of_eight(text.data() + at);
    if (plain < 8) return text.substr(0, at + plain);
  }
  while (at < text.size() && letter_of(text[at]) == kItself) ++at;
  return text.substr(0, at);
}

/// Writes the special character at the start of `text` to `to` as it stands in a JSON string: at
/// most six bytes, behind which `to` is then. Returns how many bytes of the text it was.
std::size_t write_special(std::string_view text, char*& to) {
  const auto c = static_cast<unsigned char>(text[0]);
  if (c < 0x80) {
    static constexpr std::string_view kHex = "0123456789abcdef";
    for (const char each : {'\\', 'u', '0', '0', kHex[c >> 4U], kHex[c & 0xFU]}) *to++ = each;
    return 1;
  }
  const Utf8Part part = first_utf8_part(text);
  const std::string_view valid = part.valid ? text.substr(0, part.length) : kReplacementCharacter;
  to = std::copy(valid.begin(), valid.end(), to);
  return part.length;
}

}  // namespace

void append_json_escaped(std::string& out, std::string_view text) {
  const std::string_view plain = plain_prefix(text);
  out.append(plain);
  // From here on short pieces are gathered, so that `out` grows once for many.
  std::array<char, 256> gathered;
  char* const full = gathered.data() + gathered.size() - 8;
  const char* at = plain.data() + plain.size();
  const char* const end = text.data() + text.size();
  while (at != end) {
    char* to = gathered.data();
    while (at != end && to <= full) {
      if (end - at >= 8) {
        const std::size_t count = plain_bytes_of_eight(at);
        std::memcpy(to, at, 8);
        at += count;
        to += count;
        if (count == 8) continue;
        if (to > full) break;
      }
      const char letter = letter_of(*at);
      if (letter == kItself) {
        *to++ = *at++;
      } else if (letter == kLong) {
        at += write_special({at, end}, to);
      } else {
        *to++ = '\\';
        *to++ = letter;
        ++at;
      }
    }
    out.append(gathered.data(), to);
  }
}

}  // namespace sluice
