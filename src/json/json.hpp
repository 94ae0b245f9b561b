#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <boost/json/fwd.hpp>
#include <boost/json/object.hpp>
#include <boost/json/value.hpp>

#include "core/error.hpp"
#include "core/text/json_escape.hpp"

namespace sluice {

namespace json = boost::json;

/// parse_json() refuses deeper nesting. No message of the protocol comes near this depth, and it
/// bounds the stack of functions that walk a value recursively.
inline constexpr std::size_t kMaxJsonDepth = 128;
/// The limit for a value that becomes a part of a message. It is lower, because the message nests
/// the value a few levels deeper and its receiver must be able to parse the whole.
inline constexpr std::size_t kMaxNestedDepth = kMaxJsonDepth - 8;

/// About the bytes of memory that a value, or the name of a member, takes beside its text.
inline constexpr std::size_t kMemoryOfValue = 32;

/// Appends `value` as compact JSON text; a number that is not finite becomes null.
void append_json(std::string& out, const json::value& value);
/// The same of an object, which as a value would be copied.
void append_json(std::string& out, const json::object& object);
std::string to_json(const json::value& value);
std::string to_json(const json::object& object);

/// Puts JSON text on one line, as line-based transports and SSE events need it.
void put_on_one_line(std::string& text);
/// Validates JSON text from user code and puts it on one line. Errors are those of parse_json(),
/// and the same code for a value that is nested in more than kMaxNestedDepth levels.
Result<std::string> one_line_json(std::string_view text);

/// Appends {"code":...,"message":...,"data":...}. Leaves "data" out if there is none. Data that
/// one_line_json() refuses becomes a JSON string.
void append_json_error(std::string& out, const Error& error);

/// Whether the JSON text of `value` is certainly longer than `bytes`, so that an oversized value
/// can be refused without writing it. Stops looking as soon as that is known.
bool is_longer_than(const json::value& value, std::size_t bytes);

/// How large a value is.
struct JsonSize {
  std::size_t values = 0;  // and names of members, as JsonParser counts them
  std::size_t bytes = 0;   // of strings and names

  /// About what the value takes in memory.
  [[nodiscard]] std::size_t memory() const { return bytes + (values * kMemoryOfValue); }
};
/// Stops looking after more than `max_values` values.
JsonSize size_of(const json::value& value, std::size_t max_values = SIZE_MAX);
/// The same of an object, which as a value would be copied.
JsonSize size_of(const json::object& object, std::size_t max_values = SIZE_MAX);

/// Whether the arrays and objects in `value` are nested more than `levels` deep. Does not recurse.
bool is_deeper_than(const json::value& value, std::size_t levels);

/// The integer that `number` stands for. Nothing if it has a fraction, or if the texts of several
/// integers give the same number, as from 2^53 on.
std::optional<std::int64_t> exact_integer(double number);

/// Parses one JSON text as JsonParser does; the value is allocated from `storage`. Errors carry
/// JSON-RPC's -32700 and say where and why.
Result<json::value> parse_json(std::string_view text, json::storage_ptr storage = {});

/// Whether two values are the same, numbers by what they stand for: 1 is 1.0.
bool is_same_value(const json::value& one, const json::value& other);
/// The same of two objects, which as values would be copied.
bool is_same_value(const json::object& one, const json::object& other);

/// Whether two texts are the same JSON value, however they are written, or the same text.
bool is_same_json(std::string_view one, std::string_view other);

}  // namespace sluice
