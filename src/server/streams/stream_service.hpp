#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "core/executor.hpp"
#include "protocol/stream_params.hpp"
#include "rpc/message.hpp"
#include "server/catalog/definition.hpp"
#include "server/channel/reply_channel.hpp"
#include "stream/push_cursor.hpp"
#include "stream/stream_manager.hpp"

namespace sluice {

/// As a position to read from: the oldest chunk that some reader has not passed
/// (ChunkStream::undelivered()).
inline constexpr Seq kUndelivered = std::numeric_limits<Seq>::max();
/// The position at which a reader that asks for `from` starts; absent: the oldest kept chunk. If
/// `from` is no longer kept, a reader of a private stream starts at the oldest kept chunk. Such a
/// stream holds MCP messages: a server replays those it has, and an error would cost the reader the
/// response too.
Seq start_position(const ChunkStream& stream, std::optional<Seq> from);
/// The position at which a new reader that asks for `from` starts. Each message of a private stream
/// goes to one reader only (2025-11-25, Multiple Connections), so the reader that it has is
/// dismissed. Errors as for ChunkStream::check_position().
Result<Seq> begin_reading(ChunkStream& stream, std::optional<Seq> from);
/// Whether the stream has ended and a reader at `from` has nothing left to read.
bool is_over_at(const ChunkStream& stream, Seq from);

/// One loop and the streams that live on it.
struct StreamShard {
  Executor* executor;
  StreamManager* streams;
};

/// A reader that chunks are pushed to, whichever loop its stream is on. Belongs to the reader's
/// loop; destroying it detaches the reader.
class Subscription {
 public:
  explicit Subscription(bool is_over) : is_over_(is_over) {}
  Subscription(const Subscription&) = delete;
  Subscription& operator=(const Subscription&) = delete;
  virtual ~Subscription() = default;
  /// Whether the stream had ended with nothing left to push when the reader subscribed.
  [[nodiscard]] bool is_over() const { return is_over_; }
  /// Starts the push. Continues it when the sink takes blocks again.
  virtual void resume() = 0;
  /// Acknowledges everything below `seq`. `answer` runs once, on the reader's loop, even if the
  /// subscription is gone by then.
  using Answer = std::move_only_function<void(Result<void>)>;
  virtual void acknowledge(Seq seq, Answer answer) = 0;

 private:
  bool is_over_;
};

/// The stream methods of one loop (docs/streaming.md): starts streams here, and reads, stops and
/// lists them on whichever loop they live. Belongs to its loop.
class StreamService {
 public:
  StreamService(const ServerDefinition& definition, std::vector<StreamShard> shards,
                std::size_t loop);

  /// Whether `method` is one of a stream's methods, `run` and its relatives, or a function.
  [[nodiscard]] bool serves(std::string_view method) const;

  /// Starts a stream for `method`. Errors as StreamManager::start and the method's handler.
  Result<std::shared_ptr<ChunkStream>> start(const StreamMethod& method, const json::object& params,
                                             const MethodCaller& caller, const RunStart& options,
                                             bool expects_poller);

  /// Answers a request that does not push: a poll, a whole `run`, abort, is_running, streams, ack,
  /// or a function.
  /// Appends the response to `out` and returns true, or answers later through a channel of
  /// `caller` and returns false.
  bool handle(const Message& message, Caller& caller, std::string& out);

  /// Handles a notification of abort, cancel or ack. Other notifications are ignored: those methods
  /// serve only to get an answer.
  void notify(const Message& message, Caller& caller);

  /// Attaches a reader to a stream of `principal`. `answer` runs on this loop, possibly during the
  /// call, with the subscription or an error. The subscription begins at start_position() of
  /// `from`. Nothing is written to `sink` before Subscription::resume(). On a private stream, the
  /// reader replaces the previous one, whose sink is finished behind what it was given.
  using Subscribed = std::move_only_function<void(Result<std::unique_ptr<Subscription>>)>;
  void subscribe(const std::string& stream_id, const std::string& principal,
                 std::optional<Seq> from, std::size_t window, const ChunkEncoder& encoder,
                 bool shareable, std::unique_ptr<BlockSink> sink, Subscribed answer);
  /// The same for a stream of this loop, at once.
  std::unique_ptr<Subscription> subscribe_local(std::shared_ptr<ChunkStream> stream, Seq from,
                                                std::size_t window, const ChunkEncoder& encoder,
                                                bool shareable, std::unique_ptr<BlockSink> sink);

  /// New work is refused from now on with kBusy.
  void drain() { draining_ = true; }
  [[nodiscard]] bool draining() const { return draining_; }
  /// The error for a request that begins something while the server drains.
  static Error shutting_down();
  /// The number of answers that come later. Most of them wait for their readers. Thread-safe.
  [[nodiscard]] std::size_t waiting_answers() const {
    return static_cast<std::size_t>(answer_mark_.use_count()) - 1;
  }
  /// Counts as one of the waiting answers as long as it is held.
  [[nodiscard]] std::shared_ptr<const void> answer_mark() const { return answer_mark_; }

  [[nodiscard]] const ServerDefinition& definition() const { return *definition_; }
  StreamManager& streams() { return *shards_[loop_].streams; }
  Executor& executor() { return *shards_[loop_].executor; }

 private:
  using Respond = std::move_only_function<void(std::string)>;
  /// Runs `work` with the shard of `stream_id`, on its loop.
  template <class Work>
  void on_shard_of(std::string_view stream_id, Work work);

  bool poll(const Message& message, Caller& caller, std::string& out);
  bool run_whole(const Message& message, const StreamMethod& method, Caller& caller,
                 std::string& out);
  bool abort(const Message& message, Caller& caller, std::string& out);
  bool is_running(const Message& message, Caller& caller, std::string& out);
  bool acknowledge(const Message& message, Caller& caller, std::string& out);
  bool list(const Message& message, Caller& caller, std::string& out);
  bool call(const Message& message, const Function::Handler& function, Caller& caller,
            std::string& out);
  using StreamList = std::vector<std::shared_ptr<ChunkStream>>;
  using PartOf = std::string (*)(const StreamList& streams);
  using WholeOf = std::string (*)(const std::vector<std::string>& parts);
  struct Gathering;
  /// Answers with what `whole` makes of the parts that `part` makes of the caller's streams on each
  /// loop, or of the `most` that were started last.
  bool gather(const Message& message, Caller& caller, std::string& out, std::size_t most,
              PartOf part, WholeOf whole);
  /// Stops the runs of the principal that are under way.
  void abort_all(const std::string& principal);
  void gather_all(const std::shared_ptr<Gathering>& gathering, const std::string& client,
                  const std::string& principal);
  /// Answers with what `work` returns for the stream's manager, on this loop or another. A
  /// notification is not answered.
  template <class Work>
  bool on_stream(const Message& message, Caller& caller, std::string& out,
                 const std::string& stream_id, Work work);

  const ServerDefinition* definition_;
  std::vector<StreamShard> shards_;
  std::size_t loop_;
  std::shared_ptr<const std::size_t> answer_mark_ = std::make_shared<const std::size_t>(loop_);
  bool draining_ = false;
};

/// {"stream_id":...,"status":"streaming_started"}, the result of a `run` that streams.
std::string started_result(const ChunkStream& stream);

/// Whether results of stream methods have a `resultType`. They have if the request is
/// self-contained, because all results of its era must (2026-07-28, Result).
enum class ResultForm : std::uint8_t { bare, typed };
ResultForm result_form(const Message& message);

/// Completes the result, a JSON object that is not empty and ends `out`, and the response.
void end_stream_result(std::string& out, ResultForm form);

/// Appends the response with `result`, the JSON text of an object that is not empty.
void append_stream_result(std::string& out, const RequestId& id, ResultForm form,
                          std::string_view result);

}  // namespace sluice
