#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "core/executor.hpp"
#include "core/sharing/client_memory.hpp"
#include "core/sharing/memory_budget.hpp"
#include "core/turns/turn_work.hpp"
#include "stream/client_quota.hpp"
#include "stream/ended_streams.hpp"
#include "stream/stream.hpp"
#include "stream/stream_list.hpp"
#include "stream/stream_store.hpp"

namespace sluice {

/// The limits and budgets that all loops share.
struct StreamPolicy {
  StreamLimits limits;
  MemoryBudget budget;
  ClientMemory memory{budget};
  ClientQuota quota;
  std::size_t
      max_streams;  // per loop; counts ended streams, and private ones only once they have ended

  StreamPolicy(StreamLimits stream_limits, std::size_t memory, std::size_t per_client,
               std::size_t streams)
      : limits(stream_limits), budget(memory), quota(per_client), max_streams(streams) {}
};

/// Counters since the start of the server, unless marked as current values. Readable from any
/// thread.
struct StreamCounters {
  std::atomic<std::uint64_t> started = 0;
  std::atomic<std::uint64_t> ended = 0;
  std::atomic<std::uint64_t> expired = 0;
  std::atomic<std::uint64_t> chunks = 0;
  std::atomic<std::uint64_t> reads = 0;  // times that a reader moved
  std::atomic<std::uint64_t> pauses = 0;
  std::atomic<std::uint64_t> stalled_readers = 0;
  std::atomic<std::uint64_t> open = 0;    // current value
  std::atomic<std::uint64_t> active = 0;  // current value: streams that have not ended
  std::atomic<std::uint64_t> unread =
      0;  // current value: ended, but the last chunk is not yet delivered
  std::atomic<std::uint64_t> tombstones = 0;  // current value
};

/// Creates and finds the streams of one loop, lets them expire and keeps them within their memory.
/// The hash of a stream's id determines which of the `loops` loops it belongs to, so that the loops
/// share no table. Belongs to its executor's thread.
class StreamManager {
 public:
  StreamManager(Executor& executor, StreamPolicy& policy, std::size_t loop, std::size_t loops);
  ~StreamManager();
  StreamManager(const StreamManager&) = delete;
  StreamManager& operator=(const StreamManager&) = delete;

  struct StartOptions {
    std::string principal = {};
    const char* method = "";  // must outlive the stream
    int priority = 0;         // kMinPriority..kMaxPriority; higher is served first
    bool expects_poller = true;
  };
  /// Starts a stream. If the loop is full, an ended stream is evicted (EndedStreams). Errors:
  /// kLimitReached if `principal` has its maximum of streams in progress, or if the loop is full
  /// and no stream has ended.
  Result<std::shared_ptr<ChunkStream>> start(StartOptions options);

  /// Starts a stream that does not count as a client's. Only `finder`, which must not be a client's
  /// principal, can find it by its id; if `finder` is empty, nobody can. Its memory is charged to
  /// `client`. The caller has checked the limits, and must discard the stream.
  std::shared_ptr<ChunkStream> start_private(std::string finder, const char* method,
                                             const std::string& client);

  /// The memory share of `principal`. Everything that a client leaves with the server is charged to
  /// it.
  [[nodiscard]] std::shared_ptr<MemoryShare> memory_of(const std::string& principal) const {
    return policy_->memory.of(principal);
  }

  /// Counts as access to the stream. Errors: -32001 if no stream of `principal` has this id, -32005
  /// if it has expired.
  Result<std::shared_ptr<ChunkStream>> find(std::string_view id, std::string_view principal);

  /// Removes a stream that nobody will ask for again, without a tombstone. If it has not ended, its
  /// producer is told to stop. Does nothing if the stream has already been removed.
  void discard(ChunkStream& stream);

  /// The streams that `principal` started most recently, newest first, at most `most` of them.
  [[nodiscard]] std::vector<std::shared_ptr<ChunkStream>> streams_of(const std::string& principal,
                                                                     std::size_t most) const;

  /// Ends every active stream with `error` and stops its producer.
  void end_all(const Error& error);

  /// The loop that the stream with this id belongs to.
  static std::size_t loop_of(std::string_view id, std::size_t loops);

  Executor& executor() { return *executor_; }
  /// The limit on how much answering requests may do in a turn of this loop. Most of that work is
  /// reading streams.
  TurnWork& work() { return work_; }
  [[nodiscard]] const StreamLimits& limits() const { return policy_->limits; }
  StreamCounters& counters() { return counters_; }
  [[nodiscard]] const StreamCounters& counters() const { return counters_; }

  static constexpr int kMinPriority = -10;
  static constexpr int kMaxPriority = 10;

 private:
  friend class ChunkStream;
  friend class Cursor;

  // Called by streams and cursors.
  void schedule_flush(std::shared_ptr<ChunkStream> stream);
  void on_access(ChunkStream& stream);
  void on_ended(ChunkStream& stream);
  /// Called when a paused stream has no room. If the reason is a lack of memory, the stream is
  /// retried soon.
  void on_paused(ChunkStream& stream) noexcept;
  /// Retries a paused stream soon.
  void await_memory(ChunkStream& stream) noexcept;
  /// Called when there is no memory to note that a stream must be looked at again: the next sweep
  /// looks at all.
  void catch_up_later() noexcept { must_catch_up_ = true; }
  /// Called when a reader of the stream has come, gone or moved. The stream may now be easier or
  /// harder to evict, and may have memory to free. Without memory to note that, the stream keeps
  /// what it has until it expires.
  void place(ChunkStream& stream) noexcept;
  // Only this thread writes the counters, so no atomic increment is needed.
  void count_chunk() { add_one(counters_.chunks); }
  void count_read() { add_one(counters_.reads); }
  static void add_one(std::atomic<std::uint64_t>& counter) {
    counter.store(counter.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  /// Frees at least `bytes` of the budget, if chunks that have been passed and streams that have
  /// been read hold that much. Takes them from the streams of `share`, or from all streams of this
  /// loop while the budget itself is short. Looks only at streams whose readers have moved since
  /// the last time.
  void reclaim(std::size_t bytes, const MemoryShare& share);
  void yields_no_more(ChunkStream& stream);
  [[nodiscard]] bool short_of_memory() const;
  /// Empty strings to escape and to encode into, owned by the loop.
  std::string& scratch() { return emptied(scratch_); }
  std::string& block_scratch() { return emptied(block_scratch_); }
  static std::string& emptied(std::string& text);

  /// If there is no memory for the stream, throws std::bad_alloc and changes nothing.
  std::shared_ptr<ChunkStream> add(StartOptions options, std::shared_ptr<MemoryShare> share,
                                   ClientQuota::Unit unit, bool is_private);
  /// Tells the readers of the streams that have changed. If streams or readers are many, some hear
  /// of it in a later turn, and clients take turns.
  void flush();
  void flush(ChunkStream& stream);
  /// Tells as many readers of the stream as there is work left for.
  void tell(ChunkStream& stream);
  void sweep();
  void schedule_sweep();
  void retry_paused();
  /// The number of streams that count towards max_streams.
  [[nodiscard]] std::size_t limited() const { return store_.size() - private_under_way_; }
  /// Removes the next ended stream in eviction order. Returns false if there is none.
  bool evict_one();
  void leave_tombstone(ChunkStream& stream, const Error& reason);
  void entomb(const ChunkStream& stream);
  void remove(ChunkStream& stream, const Error& reason);
  // The two halves of remove(): the first updates the manager and returns false if the stream had
  // already been removed, the second notifies the readers.
  bool unlist(ChunkStream& stream, const Error& reason);
  static void let_go(ChunkStream& stream, const Error& reason);

  static StreamLink& by_access(ChunkStream& stream) { return stream.by_access_; }
  static StreamLink& by_start(ChunkStream& stream) { return stream.by_start_; }
  static StreamLink& by_yield(ChunkStream& stream) { return stream.by_yield_; }

  Executor* executor_;
  TurnWork work_;
  StreamPolicy* policy_;
  std::size_t loop_;
  std::size_t loops_;
  StreamStore store_;
  std::size_t private_under_way_ = 0;  // streams in the store that are private and have not ended
  EndedStreams ended_;
  StreamCounters counters_;
  StreamList<&by_access> accessed_;    // all streams of the store
  ClientStreams<&by_start> started_;   // all except private ones
  ClientStreams<&by_yield> yielding_;  // used by reclaim()
  std::vector<std::shared_ptr<ChunkStream>> to_flush_;
  std::vector<std::weak_ptr<ChunkStream>> await_memory_;
  std::string scratch_;
  std::string block_scratch_;
  Executor::TimerId sweep_timer_ = 0;
  Executor::TimerId retry_timer_ = 0;
  bool flush_posted_ = false;
  bool must_catch_up_ = false;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace sluice
