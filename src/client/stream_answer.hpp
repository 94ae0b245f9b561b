#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "client/answer.hpp"
#include "client/reply.hpp"

namespace sluice {

/// The common part of the ways that use the stream methods: it keeps the stream's id and the next
/// chunk to receive, cancels, and tries again when a connection is lost. A subclass defines how to
/// start, how to continue from `next_seq()`, and how to abort.
class StreamAnswer : public AnswerMachine {
 public:
  StreamAnswer(AnswerRequest request, AnswerPort& port, AnswerSink& sink);

  void start() final;
  void cancel() final;
  void on_lost(const Error& why) override;
  void on_timer() override;

 protected:
  /// Asks the server to start the stream.
  virtual void begin() = 0;
  /// Requests the chunks from next_seq() on, at first or after a lost connection.
  virtual void read_on() = 0;
  /// Asks the server to stop the stream. This implementation uses HTTP.
  virtual void abort();

  /// Takes the stream's id from the reply to `run`. Aborts at once if cancel() was called
  /// meanwhile. Returns false if the reply has no id; the answer has then ended.
  bool take_started(const Result<json::object>& result);
  /// Passes one chunk (an object with seq, delta, end and more) to the sink. Skips chunks that were
  /// received before. Returns false if the answer has ended, with this chunk or before it.
  bool take_chunk(const json::object& chunk);
  /// Ends the answer with an error from the server or about its reply.
  void fail(const Error& error);
  /// Drops the connection, waits and continues.
  void retry(const Error& why);

  /// {"jsonrpc":"2.0","id":n,"method":method,"params":params}
  std::string request_text(std::string_view method, json::object params);
  HttpCall post(std::string body) const;
  /// The parameters of `run` with `stream` set. The request's own parameters are moved out.
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

/// Decodes an answer's end from `members`: finish_reason, usage, timings and error.
AnswerEnd decode_end(const json::object& members);

}  // namespace sluice
