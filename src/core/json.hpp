#pragma once

#include <charconv>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <boost/json/fwd.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>

#include "core/error.hpp"

namespace sluice {

namespace json = boost::json;

/// Nesting beyond this is refused by parse_json: no message of the protocol comes near it, and the
/// stack of whoever walks the value stays bounded.
inline constexpr std::size_t kMaxJsonDepth = 128;

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

/// Appends `value` as compact JSON text; a number that is not finite becomes null.
void append_json(std::string& out, const json::value& value);
std::string to_json(const json::value& value);

/// What user code hands over as JSON text, on one line, as lines and events need it. Errors as
/// those of parse_json.
Result<std::string> one_line_json(std::string_view text);

/// Appends {"code":...,"message":...,"data":...}; without "data" where there is none. Data that is
/// no JSON becomes a JSON string.
void append_json_error(std::string& out, const Error& error);

/// Whether the text of `value` is certainly longer than `bytes`. Looks at no more of it than that
/// takes, for what would be refused need not be written.
bool is_longer_than(const json::value& value, std::size_t bytes);

/// The integer that `number` stands for; nothing if it has a fraction, or if the text of another
/// integer gives the same number, as from 2^53 on.
std::optional<std::int64_t> exact_integer(double number);

/// Parses one JSON text with `storage` behind the value, as JsonParser does. Errors carry
/// JSON-RPC's -32700 and say where and why.
Result<json::value> parse_json(std::string_view text, json::storage_ptr storage = {});

}  // namespace sluice
