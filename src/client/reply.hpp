#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "core/error.hpp"
#include "json/json.hpp"

namespace sluice {

/// The JSON-RPC error in `message`, or nothing if it has none.
std::optional<Error> error_of(const json::object& message);

/// The `result` object of the JSON-RPC response in `body`. Errors: the response's own error. If
/// `body` is not a JSON-RPC response, the status if is_passing_trouble(), otherwise -32603; the
/// message names the HTTP status.
Result<json::object> parse_reply(int status, std::string_view body);

/// What to say if the server takes no request of this size.
inline constexpr std::string_view kRequestTooLarge =
    "The question is larger than the server, or a proxy in front of it, takes; ask for less, or "
    "start the server with a larger --max-body (nginx: client_max_body_size)";

/// Whether an HTTP status means a temporary condition of the server, so that trying again may help:
/// 429, 502, 503, 504.
bool is_passing_trouble(int status);

/// Collects the body of a reply, up to a limit.
class ReplyBody {
 public:
  static constexpr std::size_t kMaxBytes = std::size_t{64} << 20U;

  void begin(int status);
  /// Returns false if the body would exceed kMaxBytes.
  bool append(std::string_view bytes);
  [[nodiscard]] int status() const { return status_; }
  [[nodiscard]] Result<json::object> parse() const { return parse_reply(status_, text_); }
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  int status_ = 0;
  std::string text_;
};

}  // namespace sluice
