#pragma once

#include <concepts>
#include <cstddef>
#include <exception>
#include <stdexcept>
#include <string>
#include <utility>

#include <boost/json/fwd.hpp>

namespace sluice {
namespace detail {

/// Exactly these types, without conversions: a string argument is JSON text, not a JSON string.
template <class T>
concept JsonData = std::same_as<T, boost::json::value> || std::same_as<T, boost::json::object> ||
                   std::same_as<T, boost::json::array>;

std::string json_text(const boost::json::value& value);

}  // namespace detail

/// An error that the caller must handle. A handler throws it, and never returns it, to answer with
/// a JSON-RPC error.
struct Error : std::exception {
  Error() = default;
  Error(int error_code, std::string text, std::string json = {})
      : code(error_code), message(std::move(text)), data(std::move(json)) {}
  /// With `data` from JSON values (sluice/json.hpp):
  /// `throw Error{429, "Wait", json::object{{"seconds", 5}}}`.
  template <detail::JsonData Json>
  Error(int error_code, std::string text, const Json& json)
      : Error(error_code, std::move(text), detail::json_text(json)) {}

  /// Returns `message`.
  const char* what() const noexcept override { return message.c_str(); }

  /// The most bytes that are sent of each text of an error that a handler throws.
  static constexpr std::size_t kMaxText = std::size_t{64} << 10U;

  /// A JSON-RPC error code. (Inside the library, an HTTP status code in the layers below JSON-RPC.)
  /// Codes of your own must not be between -32768 and -32000: JSON-RPC and MCP reserve these
  /// (2026-07-28, Base Protocol, Error Codes).
  int code = 0;
  /// A sentence that says what is wrong and how to fix it. It may be sent to a peer, so it must not
  /// reveal internals. Cut after kMaxText bytes.
  std::string message = {};
  /// JSON text for the error's `data`, or empty. Text that is not JSON, or is nested in more than
  /// 120 levels, is sent as a JSON string.
  /// Data of more than kMaxText bytes is not sent, which is logged.
  std::string data = {};
};

// Sluice's own error codes, for cases that have no code in JSON-RPC or MCP. They are the same in
// every revision, and outside the reserved range.

/// The server cannot do this now: it is shutting down, a queue is full, or a model is not ready.
inline constexpr int kBusy = -31000;
/// A call or a task took longer than it may.
inline constexpr int kTimedOut = -31001;
/// The task was cancelled. Clients that ask for its result get this code.
inline constexpr int kCancelled = -31002;
/// The caller has reached a limit, or all callers together have.
inline constexpr int kLimitReached = -31010;

/// A tool throws this for a failure that the model should read. The call's result then has
/// `isError` and this text.
class ToolError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace sluice
