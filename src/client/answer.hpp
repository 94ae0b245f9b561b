#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "client/backoff.hpp"
#include "core/clock.hpp"
#include "core/error.hpp"
#include "json/json.hpp"

namespace sluice {

// A model's answer can be received in four ways (docs/streaming.md). Each way is a state machine
// without I/O: it acts through an AnswerPort, is told what happened, and passes what it receives to
// an AnswerSink. The machine, its port and its sink belong to one loop.

/// How an answer is received.
enum class AnswerVia : std::uint8_t {
  poll,  // long polls of `run {stream_id, from_seq, wait_ms}`
  sse,   // GET /streams/{stream_id}, resumed with Last-Event-ID
  ws,    // pushed over /ws, resumed with `subscribe {stream_id, from_seq}`
  mcp,   // tools/call `generate` of MCP 2026-07-28, deltas as progress; cannot be resumed
};

struct AnswerDelta {
  enum class Kind : std::uint8_t { text, reasoning, tool_call };
  Kind kind = Kind::text;
  std::string_view text;  // UTF-8, complete characters; valid during the call
};

/// How an answer ended. Values that the server did not send are absent.
struct AnswerEnd {
  enum class Outcome : std::uint8_t {
    complete,     // `finish_reason` says why
    cancelled,    // by cancel()
    failed,       // the server or the model refused or stopped; `error` says why
    unreachable,  // no connection, or it was lost and could not be restored
  };
  Outcome outcome = Outcome::complete;
  Error error;                // set if failed or unreachable
  std::string finish_reason;  // "stop", "length", ...
  std::optional<std::int64_t> prompt_tokens;
  std::optional<std::int64_t> cached_tokens;
  std::optional<std::int64_t> completion_tokens;
  std::optional<double> queue_ms;
  std::optional<double> prefill_ms;
  std::optional<double> decode_ms;
};

/// Receives an answer: any number of deltas, then one end. It must not destroy the machine during a
/// call.
class AnswerSink {
 public:
  virtual ~AnswerSink() = default;
  virtual void on_delta(const AnswerDelta& delta) = 0;
  /// The connection was lost. The machine will try again after `wait`.
  virtual void on_retry(const Error& /*why*/, Duration /*wait*/) {}
  virtual void on_end(const AnswerEnd& end) = 0;
};

/// One HTTP request. `target` is a path and query below the server's base URL, beginning with '/'.
struct HttpCall {
  std::string method;
  std::string target;
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
};

/// Performs the I/O of a machine. At most one request or WebSocket is in progress at a time,
/// besides those of send_aside(). Its outcome is reported through the machine's on_ functions,
/// later and never during these calls.
class AnswerPort {
 public:
  virtual ~AnswerPort() = default;
  virtual void send(HttpCall call) = 0;
  /// Sends a request and ignores its reply.
  virtual void send_aside(HttpCall call) = 0;
  virtual void open_websocket(std::string target) = 0;
  virtual void send_text(std::string text) = 0;
  /// Drops the request or WebSocket in progress, if there is one. Nothing more is reported about
  /// it.
  virtual void close() = 0;
  /// Calls on_timer() once after `wait`, unless this is called again before.
  virtual void set_timer(Duration wait) = 0;
};

/// Receives one answer. After its sink's on_end() it does nothing more.
class AnswerMachine {
 public:
  virtual ~AnswerMachine() = default;
  virtual void start() = 0;
  /// Stops the answer, on the server too. If the connection still exists, the sink's on_end()
  /// follows with what the server says about the end.
  virtual void cancel() = 0;

  /// The reply to send(): its head, any number of pieces of its body, its end.
  virtual void on_head(int status, std::string_view content_type) = 0;
  virtual void on_body(std::string_view bytes) = 0;
  virtual void on_complete() = 0;
  /// The WebSocket of open_websocket() is open, and receives text messages.
  virtual void on_open() = 0;
  virtual void on_message(std::string_view text) = 0;
  /// The request or WebSocket in progress failed or was closed by the peer.
  virtual void on_lost(const Error& why) = 0;
  virtual void on_timer() = 0;
};

/// What to ask for. `params` are the parameters of `run` without `stream` (messages or a prompt,
/// sampling, limits), or the arguments of the tool.
struct AnswerRequest {
  json::object params;
  std::string tool = "generate";  // used by AnswerVia::mcp
  std::int64_t first_id =
      1;  // the id of its first request; answers that share a WebSocket need separate ids
  Backoff::Policy backoff{};
};

/// Makes the machine for one way. `port` and `sink` must outlive it.
std::unique_ptr<AnswerMachine> make_answer(AnswerVia via, AnswerRequest request, AnswerPort& port,
                                           AnswerSink& sink);

/// "poll", "sse", "ws", "mcp".
std::string_view to_string(AnswerVia via);
std::optional<AnswerVia> parse_answer_via(std::string_view text);

}  // namespace sluice
