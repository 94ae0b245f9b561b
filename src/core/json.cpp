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

/// Bytes that cannot be taken without a look: what JSON escapes, and all beyond ASCII.
constexpr std::array<bool, 256> make_not_plain_table() {
  std::array<bool, 256> table{};
  for (std::size_t c = 0; c < table.size(); ++c) table[c] = c < 0x20 || c >= 0x80;
  table['"'] = true;
  table['\\'] = true;
  return table;
}
constexpr std::array<bool, 256> kNotPlain = make_not_plain_table();

/// The first special byte of `text` from `at` on, or its size; eight bytes at a time.
std::size_t find_not_plain(std::string_view text, std::size_t at) {
  static constexpr std::uint64_t kEach = 0x0101010101010101U;
  for (; at + 8 <= text.size(); at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, text.data() + at, sizeof word);
    const std::uint64_t quote = word ^ (kEach * '"');
    const std::uint64_t backslash = word ^ (kEach * '\\');
    // The high bit of the first special byte is set here, and of none below it.
    const std::uint64_t special =
        ((word - kEach * 0x20) | (quote - kEach) | (backslash - kEach) | word) & (kEach * 0x80);
    if (special != 0) return at + static_cast<std::size_t>(std::countr_zero(special)) / 8;
  }
  while (at < text.size() && !kNotPlain[static_cast<unsigned char>(text[at])]) ++at;
  return at;
}

/// Appends what stands in a JSON string for `c`, which cannot stand there itself: a byte to escape,
/// or the first of some that are no UTF-8.
void append_stand_in(std::string& out, unsigned char c) {
  switch (c) {
    case '"':
      out.append("\\\"");
      return;
    case '\\':
      out.append("\\\\");
      return;
    case '\n':
      out.append("\\n");
      return;
    case '\r':
      out.append("\\r");
      return;
    case '\t':
      out.append("\\t");
      return;
    default:
      break;
  }
  if (c >= 0x80) {
    out.append(kReplacementCharacter);
    return;
  }
  static constexpr std::string_view kHex = "0123456789abcdef";
  out.append("\\u00");
  out.push_back(kHex[c >> 4U]);
  out.push_back(kHex[c & 0xFU]);
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
  std::size_t clean = 0;
  for (std::size_t at = find_not_plain(text, 0); at < text.size(); at = find_not_plain(text, at)) {
    const auto c = static_cast<unsigned char>(text[at]);
    const Utf8Part part = c < 0x80 ? Utf8Part{1, false} : first_utf8_part(text.substr(at));
    if (!part.valid) {
      out.append(text, clean, at - clean);
      append_stand_in(out, c);
      clean = at + part.length;
    }
    at += part.length;
  }
  out.append(text, clean, text.size() - clean);
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
