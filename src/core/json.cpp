#include "core/json.hpp"

#include <array>
#include <cmath>
#include <utility>

#include <boost/json/array.hpp>
#include <boost/json/string.hpp>

#include "core/json_parser.hpp"

namespace sluice {
namespace {

constexpr int kParseError = -32700;

constexpr std::array<bool, 256> make_escape_table() {
  std::array<bool, 256> table{};
  for (std::size_t c = 0; c < 0x20; ++c) table[c] = true;
  table['"'] = true;
  table['\\'] = true;
  return table;
}
constexpr std::array<bool, 256> kNeedsEscape = make_escape_table();

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
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    if (!kNeedsEscape[c]) continue;
    out.append(text, clean, i - clean);
    clean = i + 1;
    switch (c) {
      case '"':
        out.append("\\\"");
        break;
      case '\\':
        out.append("\\\\");
        break;
      case '\n':
        out.append("\\n");
        break;
      case '\r':
        out.append("\\r");
        break;
      case '\t':
        out.append("\\t");
        break;
      default: {
        static constexpr std::string_view kHex = "0123456789abcdef";
        out.append("\\u00");
        out.push_back(kHex[c >> 4U]);
        out.push_back(kHex[c & 0xFU]);
      }
    }
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

Result<json::value> parse_json(std::string_view text, json::storage_ptr storage) {
  std::expected<json::value, JsonSyntaxError> value = JsonParser().parse(text, std::move(storage));
  if (value) return *std::move(value);
  return fail(kParseError, "Parse error: " + value.error().reason + " at byte " +
                               std::to_string(value.error().at) + " of the JSON text");
}

}  // namespace sluice
