#pragma once

#include <charconv>
#include <concepts>
#include <cstddef>
#include <string>
#include <string_view>

#include <boost/json/fwd.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>

#include "core/error.hpp"

namespace sluice {

namespace json = boost::json;

/// parse_json() refuses deeper nesting. No message of the protocol comes near this depth, and it
/// bounds the stack of functions that walk a value recursively.
inline constexpr std::size_t kMaxJsonDepth = 128;

/// Appends `text` as the contents of a JSON string, without the quotes. Escapes `"`, `\` and
/// control characters, and replaces malformed UTF-8 with U+FFFD. Everything else is unchanged.
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

/// Appends `value` as compact JSON text; a number that is not finite becomes null.
void append_json(std::string& out, const json::value& value);
std::string to_json(const json::value& value);

/// Validates JSON text from user code and puts it on one line, as line-based transports and SSE
/// events need it. Errors are those of parse_json().
Result<std::string> one_line_json(std::string_view text);

/// Appends {"code":...,"message":...,"data":...}. Leaves "data" out if there is none. Data that is
/// not JSON becomes a JSON string.
void append_json_error(std::string& out, const Error& error);

/// Whether the JSON text of `value` is certainly longer than `bytes`, so that an oversized value
/// can be refused without writing it. Stops looking as soon as that is known.
bool is_longer_than(const json::value& value, std::size_t bytes);

/// Parses one JSON text as JsonParser does; the value is allocated from `storage`. Errors carry
/// JSON-RPC's -32700 and say where and why.
Result<json::value> parse_json(std::string_view text, json::storage_ptr storage = {});

}  // namespace sluice
