#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "client/answer.hpp"
#include "client/reply.hpp"

namespace sluice {

/// What the ways over the stream methods have in common: the stream's id, the next chunk to come,
/// cancellation, and trying again when a connection is lost. A way says how to start, how to read
/// on from `next_seq()`, and how to abort.
class StreamAnswer : public AnswerMachine {
 public:
  StreamAnswer(AnswerRequest request, AnswerPort& port, AnswerSink& sink);

  void start() final;
  void cancel() final;
  void on_lost(const Error& why) override;
  void on_timer() final;

 protected:
  /// Asks the server to start the stream.
  virtual void begin() = 0;
  /// Asks for the chunks from next_seq() on, anew or after a lost connection.
  virtual void read_on() = 0;
  /// Asks the server to stop the stream; over HTTP unless the way has a better one.
  virtual void abort();

  /// The reply to `run`: takes the id, and aborts at once if that was asked for meanwhile. False if
  /// there is none; then the answer has ended.
  bool take_started(const Result<json::object>& result);
  /// Hands one chunk (an object with seq, delta, end and more) to the sink. Chunks received before
  /// are skipped. False once the answer has ended, with this chunk or before it.
  bool take_chunk(const json::object& chunk);
  /// Ends the answer because of what the server said.
  void fail(const Error& error);
  /// The connection is of no use: waits, then reads on.
  void retry(const Error& why);

  /// {"jsonrpc":"2.0","id":n,"method":method,"params":params}
  std::string request_text(std::string_view method, json::object params);
  HttpCall post(std::string body) const;
  /// The parameters of `run` with `stream`; what the caller gave moves out.
  json::object run_params();

  AnswerPort& port() { return *port_; }
  [[nodiscard]] const std::string& stream_id() const { return stream_id_; }
  [[nodiscard]] std::uint64_t next_seq() const { return next_seq_; }
  [[nodiscard]] bool started() const { return !stream_id_.empty(); }
  [[nodiscard]] bool ended() const { return ended_; }
  [[nodiscard]] std::int64_t last_request_id() const { return last_request_id_; }
  Backoff& backoff() { return backoff_; }

 private:
  void finish(const AnswerEnd& end);

  AnswerRequest request_;
  AnswerPort* port_;
  AnswerSink* sink_;
  Backoff backoff_;
  std::string stream_id_;
  std::uint64_t next_seq_ = 0;
  std::int64_t last_request_id_ = 0;
  bool cancelled_ = false;
  bool ended_ = false;
};

/// The numbers of an answer's end from `members`: finish_reason, usage and timings.
AnswerEnd decode_end(const json::object& members);

}  // namespace sluice
