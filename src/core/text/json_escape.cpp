#include "core/text/json_escape.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "core/text/eight_bytes.hpp"
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

/// How many of these eight bytes are plain, up to the first that is not.
std::size_t count_plain(std::uint64_t word) {
  const std::uint64_t quote = word ^ (kEachByte * '"');
  const std::uint64_t backslash = word ^ (kEachByte * '\\');
  // The high bit of the first special byte is set here, and of none below it.
  return count_unmarked((word - kEachByte * 0x20) | (quote - kEachByte) | (backslash - kEachByte) |
                        word);
}

std::uint64_t four_bytes(const char* bytes) {
  std::uint32_t word = 0;
  std::memcpy(&word, bytes, sizeof word);
  return word;
}

/// The plain bytes at the start of `text`.
std::string_view plain_prefix(std::string_view text) {
  const std::size_t size = text.size();
  std::size_t at = 0;
  for (; at + 8 <= size; at += 8) {
    const std::size_t plain = count_plain(eight_bytes(text.data() + at));
    if (plain < 8) return text.substr(0, at + plain);
  }
  if (at == size) return text;
  // The rest together with bytes before it, which are known or looked at twice.
  if (size >= 8) {
    return text.substr(0, size - 8 + count_plain(eight_bytes(text.data() + size - 8)));
  }
  if (size >= 4) {
    const std::uint64_t ends = four_bytes(text.data()) | four_bytes(text.data() + size - 4) << 32U;
    if (count_plain(ends) == 8) return text;
  }
  while (at < size && letter_of(text[at]) == kItself) ++at;
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
        const std::size_t count = count_plain(eight_bytes(at));
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
