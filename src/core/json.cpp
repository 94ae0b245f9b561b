#include "core/json.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include <boost/json/array.hpp>
#include <boost/json/string.hpp>

#include "core/json_parser.hpp"
#include "core/utf8.hpp"

namespace sluice {
namespace {

constexpr int kParseError = -32700;

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

/// JSON has no word for infinity or NaN; like JavaScript, null stands for them.
void append_double(std::string& out, double value) {
  if (!std::isfinite(value)) {
    out.append("null");
    return;
  }
  std::array<char, 32> digits;
  const auto [end, error] = std::to_chars(digits.data(), digits.data() + digits.size(), value);
  out.append(digits.data(), end);
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

void append_json(std::string& out, const json::value& value) {
  switch (value.kind()) {
    case json::kind::null:
      out.append("null");
      return;
    case json::kind::bool_:
      out.append(value.get_bool() ? "true" : "false");
      return;
    case json::kind::int64:
      append_number(out, value.get_int64());
      return;
    case json::kind::uint64:
      append_number(out, value.get_uint64());
      return;
    case json::kind::double_:
      append_double(out, value.get_double());
      return;
    case json::kind::string:
      append_json_string(out, value.get_string());
      return;
    case json::kind::array: {
      char before = '[';
      for (const json::value& element : value.get_array()) {
        out.push_back(std::exchange(before, ','));
        append_json(out, element);
      }
      out.append(before == '[' ? "[]" : "]");
      return;
    }
    case json::kind::object: {
      char before = '{';
      for (const auto& [key, member] : value.get_object()) {
        out.push_back(std::exchange(before, ','));
        append_json_string(out, key);
        out.push_back(':');
        append_json(out, member);
      }
      out.append(before == '{' ? "{}" : "}");
      return;
    }
  }
}

std::string to_json(const json::value& value) {
  std::string out;
  append_json(out, value);
  return out;
}

Result<std::string> one_line_json(std::string_view text) {
  if (Result<json::value> value = parse_json(text); !value) {
    return std::unexpected(std::move(value.error()));
  }
  std::string line(text);
  // In JSON text, a line break is white space between tokens.
  std::ranges::replace_if(line, [](char c) { return c == '\n' || c == '\r'; }, ' ');
  return line;
}

std::optional<std::int64_t> exact_integer(double number) {
  static constexpr double kBound = 0x1p53;
  if (!(std::abs(number) < kBound) || number != std::trunc(number)) return std::nullopt;
  return static_cast<std::int64_t>(number);
}

void append_json_error(std::string& out, const Error& error) {
  out.append(R"({"code":)");
  append_number(out, error.code);
  out.append(R"(,"message":)");
  append_json_string(out, error.message);
  if (!error.data.empty()) {
    out.append(R"(,"data":)");
    const Result<std::string> data = one_line_json(error.data);
    out.append(data ? *data : to_json_string(error.data));
  }
  out.push_back('}');
}

bool is_longer_than(const json::value& value, std::size_t bytes) {
  // A value takes a byte at least; a container two, a comma between any two of its values, and for
  // each of its names two quotes and a colon.
  std::size_t least = 0;
  std::vector<const json::value*> left = {&value};
  while (!left.empty()) {
    const json::value& next = *left.back();
    left.pop_back();
    least += 1;
    if (const json::string* text = next.if_string()) {
      least += 1 + text->size();
    } else if (const json::array* array = next.if_array()) {
      least += array->empty() ? 1 : array->size();
      if (least > bytes) return true;
      for (const json::value& each : *array) left.push_back(&each);
    } else if (const json::object* object = next.if_object()) {
      least += object->empty() ? 1 : 4 * object->size();
      if (least > bytes) return true;
      for (const auto& [key, member] : *object) {
        least += key.size();
        left.push_back(&member);
      }
    }
    if (least > bytes) return true;
  }
  return false;
}

Result<json::value> parse_json(std::string_view text, json::storage_ptr storage) {
  std::expected<json::value, JsonSyntaxError> value = JsonParser().parse(text, std::move(storage));
  if (value) return *std::move(value);
  return fail(kParseError, "Parse error: " + value.error().reason + " at byte " +
                               std::to_string(value.error().at) + " of the JSON text");
}

}  // namespace sluice
