#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "core/error.hpp"
#include "protocol/negotiation.hpp"
#include "rpc/message.hpp"
#include "server/definition.hpp"
#include "server/reply_channel.hpp"
#include "stream/stream_manager.hpp"

namespace sluice {

class ResultWriter;
class StreamService;

/// A tool call that is answered later. What it emits goes to the caller as progress notifications,
/// through a stream of its own with a stream's order, back-pressure and limits, and the result
/// follows the last of them. The caller's going away or cancelling cancels it. Belongs to the
/// loop of the request.
class Call final : public std::enable_shared_from_this<Call>, private ChunkEncoder {
 public:
  Call(RequestId id, RequestContext context, std::string principal,
       std::shared_ptr<ReplyChannel> channel, StreamService& service, const ResultWriter& results);
  ~Call();
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  /// Connects the call to its channel. Once, right after construction.
  void open();

  /// Told when to go on and when to stop. Not owned; reset to null before it goes.
  void set_producer(StreamProducer* producer);

  /// Text for the caller to see before the result. False: wait for the producer's on_room().
  /// Dropped when the caller did not ask for progress.
  bool emit(std::string_view text);
  /// Sends what was emitted now instead of at the end of the loop's turn.
  void flush();

  /// The answer; exactly one of these, once. After cancellation they do nothing.
  void complete(const ToolResult& result);
  void fail(const Error& error);

  /// Answers with an existing stream of the caller instead: its deltas are emitted, its text is
  /// the result.
  void follow(const std::string& stream_id);

  [[nodiscard]] bool cancelled() const { return channel_ == nullptr; }
  [[nodiscard]] const std::string& principal() const { return principal_; }
  /// The loop this call belongs to.
  [[nodiscard]] Executor& executor() const;

 private:
  class Sink;

  /// Chunks as notifications/progress, the last one as the response.
  void encode(std::string& out, const Stream& stream, const Chunk& chunk) const override;
  void answer(int http_status, std::string message);
  void cancel();
  void close();

  RequestId id_;
  RequestContext context_;
  std::string principal_;
  std::shared_ptr<ReplyChannel> channel_;  // null once answered or cancelled
  StreamService* service_;
  const ResultWriter* results_;
  StreamProducer* producer_ = nullptr;
  std::shared_ptr<Stream> stream_;
  std::unique_ptr<PushCursor> cursor_;
};

}  // namespace sluice
