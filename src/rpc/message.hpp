#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <boost/json/monotonic_resource.hpp>

#include "core/error.hpp"
#include "core/json.hpp"
#include "core/json_parser.hpp"

namespace sluice {

/// A request's id as the JSON text it came as, so that it goes back exactly: integers of any size,
/// strings with their quotes. Empty: no id.
using RequestId = std::string;
/// Bytes of that text. A request that waits is kept by its id, beyond every other limit.
inline constexpr std::size_t kMaxRequestId = 4096;

enum class MessageKind : std::uint8_t { request, notification, response };

/// One JSON-RPC 2.0 message. The views point into the parser that made it and live until its next
/// parse().
struct Message {
  MessageKind kind = MessageKind::request;
  RequestId id;
  std::string_view method;               // of requests and notifications
  const json::object* params = nullptr;  // null if absent
  const json::object* body = nullptr;    // the whole message
  std::string_view text;                 // the JSON text it was parsed from
};

/// The members of its params; none where they are absent.
const json::object& params_of(const Message& message);

/// Why a text is no message, with the id to answer if there was a usable one.
struct MessageError {
  Error error;
  RequestId id;
};

/// Whether `text` can only be a batch.
bool is_batch(std::string_view text);

/// Parses messages into memory it uses again. One per loop; not thread-safe.
class MessageParser {
 public:
  /// Parses one message. Errors: -32700 for what is not JSON (RFC 8259, UTF-8, at most
  /// kMaxJsonDepth deep, at most 2^18 values and names or one for each 16 bytes), -32600 for JSON
  /// that is not a JSON-RPC 2.0 message: a batch, no "jsonrpc":"2.0", an id that is neither string
  /// nor integer, params that are not an object.
  std::expected<Message, MessageError> parse(std::string_view text);

  /// The texts of the messages in a batch (JSON-RPC 2.0, section 6), each to be parsed by itself;
  /// they point into `text`. Errors: -32700 as parse(), -32600 for an array that is empty or has
  /// more than `max` elements.
  std::expected<std::vector<std::string_view>, MessageError> parse_batch(std::string_view text,
                                                                         std::size_t max);

  /// Gives back what a long message took. What the last one returned is gone then.
  void forget_long();

 private:
  /// Makes `root_` of `text`.
  std::expected<void, MessageError> read(std::string_view text);

  std::array<unsigned char, 8192> storage_;
  std::optional<json::monotonic_resource> memory_;
  JsonParser parser_;
  json::value root_;
  bool is_long_ = false;  // the message that is held
};

/// `value` (a string or a number that stands in `text` under the member names of `path`) as JSON
/// text. Numbers that no integer type holds are taken from `text` as they stand there. Nothing if
/// it is neither a string nor an integer.
std::optional<std::string> exact_text(const json::value& value, std::string_view text,
                                      std::initializer_list<std::string_view> path);

/// {"jsonrpc":"2.0","id":<id>,"result":<result>}; `result` is JSON text.
void append_result(std::string& out, const RequestId& id, std::string_view result);

/// The same around a result that is appended in between.
void begin_result(std::string& out, const RequestId& id);
void end_result(std::string& out);

/// {"jsonrpc":"2.0","id":<id>,"error":{...}}; without "id" when there is none.
void append_error(std::string& out, const RequestId& id, const Error& error);

/// The code of the error that `response` to request `id`, one of these, is; nothing for a result.
std::optional<int> error_code_of(std::string_view response, const RequestId& id);

}  // namespace sluice
