#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "json/arena.hpp"
#include "json/json.hpp"
#include "json/parser.hpp"

namespace sluice {

/// A request's id as the JSON text in which it came, so that it is returned exactly: integers of
/// any size, strings with their quotes. Empty means no id.
using RequestId = std::string;
/// The most bytes that text may have. A pending request is stored by its id, and no other limit
/// counts that memory.
inline constexpr std::size_t kMaxRequestId = 4096;

enum class MessageKind : std::uint8_t { request, notification, response };

/// One JSON-RPC 2.0 message. The views point into the parser that made it and are valid until its
/// next parse().
struct Message {
  MessageKind kind = MessageKind::request;
  RequestId id;
  std::string_view method;               // of requests and notifications
  const json::object* params = nullptr;  // null if absent
  const json::object* body = nullptr;    // the whole message
  std::string_view text;                 // the JSON text it was parsed from
  std::size_t values = 0;                // in it, and names of members
  std::string digest = {};               // of what it asks for; only workers compute it here
};

/// The message's params; an empty object if they are absent.
const json::object& params_of(const Message& message);

/// Why a text is not a valid message, with the id to answer if it had a usable one.
struct MessageError {
  Error error;
  RequestId id;
};

/// Whether `text` starts like a batch, so that it can be nothing else.
bool is_batch(std::string_view text);

/// Parses messages into memory that it reuses. One per loop; not thread-safe.
class MessageParser {
 public:
  /// Parses one message. Errors: -32700 for what is not JSON (RFC 8259, UTF-8, at most
  /// kMaxJsonDepth deep, at most 2^18 values and names or one for each 16 bytes), -32600 for JSON
  /// that is not a JSON-RPC 2.0 message: a batch, no "jsonrpc":"2.0", an id that is neither string
  /// nor integer, params that are not an object.
  std::expected<Message, MessageError> parse(std::string_view text);

  /// Splits a batch (JSON-RPC 2.0, section 6) into the texts of its messages, each to be parsed on
  /// its own. They point into `text`. Errors: -32700 as for parse(); -32600 if `text` is not an
  /// array, is empty or has more than `max` elements.
  std::expected<std::vector<std::string_view>, MessageError> parse_batch(std::string_view text,
                                                                         std::size_t max);

  /// Frees the memory of a long message. What the last call returned is invalid afterwards.
  void forget_long();

 private:
  /// Parses `text` into `root_`.
  std::expected<void, MessageError> read(std::string_view text);

#ifdef SLUICE_SANITIZED
  /// All else comes from the heap, so that sanitizers find what outlives its message.
  alignas(std::max_align_t) std::array<unsigned char, 1> storage_;
#else
  alignas(std::max_align_t) std::array<unsigned char, 8192> storage_;
#endif
  JsonArena memory_{storage_};
  JsonParser parser_;
  json::value root_;
  bool is_long_ = false;  // whether the current message is long
};

/// `value` as JSON text. It is the member of `text` that the names of `path` lead to. Numbers that
/// no integer type can hold are copied from `text` unchanged. Returns nothing if `value` is neither
/// a string nor an integer.
std::optional<std::string> exact_text(const json::value& value, std::string_view text,
                                      std::initializer_list<std::string_view> path);

/// Finds the id of the request in `text` without parsing it, so that a request that cannot be
/// parsed can be answered. Returns an empty id if there is no "method" (so it is a response) or no
/// valid id. Allocates nothing but the id. The text need not be well-formed.
RequestId request_id_of(std::string_view text);

/// The same for a response, of which `text` may be the beginning only.
RequestId response_id_of(std::string_view text);

/// {"jsonrpc":"2.0","id":<id>,"result":<result>}; `result` is JSON text.
void append_result(std::string& out, const RequestId& id, std::string_view result);

/// Write the parts before and after a result that the caller appends in between.
void begin_result(std::string& out, const RequestId& id);
void end_result(std::string& out);

/// {"jsonrpc":"2.0","id":<id>,"error":{...}}, without "id" if there is none.
void append_error(std::string& out, const RequestId& id, const Error& error);

/// The error code in `response`, which the functions above made for request `id`; nothing if it is
/// a result.
std::optional<int> error_code_of(std::string_view response, const RequestId& id);

}  // namespace sluice
