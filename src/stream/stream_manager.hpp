#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/client_memory.hpp"
#include "core/error.hpp"
#include "core/executor.hpp"
#include "core/memory_budget.hpp"
#include "core/turn_work.hpp"
#include "stream/ended_streams.hpp"
#include "stream/stream.hpp"
#include "stream/stream_list.hpp"
#include "stream/stream_store.hpp"

namespace sluice {

/// How many of a kind each client (client_of() the principal) has under way, over all loops.
/// Thread-safe; touched when one begins and ends, never for a chunk.
class ClientQuota {
 public:
  explicit ClientQuota(std::size_t per_client) : per_client_(per_client) {}
  bool try_acquire(const std::string& principal);
  void release(const std::string& principal);
  [[nodiscard]] std::size_t limit() const { return per_client_; }
  /// How many all clients have.
  [[nodiscard]] std::size_t in_use() const { return all_.load(std::memory_order_relaxed); }

 private:
  const std::size_t per_client_;
  std::mutex mutex_;
  std::map<std::string, std::size_t, std::less<>> in_use_;
  std::atomic<std::size_t> all_ = 0;
};

/// What all loops share.
struct StreamPolicy {
  StreamLimits limits;
  MemoryBudget budget;
  ClientMemory memory{budget};
  ClientQuota quota;
  std::size_t max_streams;  // of one loop, ended ones included, private ones once they have ended

  StreamPolicy(StreamLimits stream_limits, std::size_t memory, std::size_t per_client,
               std::size_t streams)
      : limits(stream_limits), budget(memory), quota(per_client), max_streams(streams) {}
};

/// Counted since the start, readable from any thread.
struct StreamCounters {
  std::atomic<std::uint64_t> started = 0;
  std::atomic<std::uint64_t> ended = 0;
  std::atomic<std::uint64_t> expired = 0;
  std::atomic<std::uint64_t> chunks = 0;
  std::atomic<std::uint64_t> pauses = 0;
  std::atomic<std::uint64_t> stalled_readers = 0;
  std::atomic<std::uint64_t> open = 0;        // now
  std::atomic<std::uint64_t> active = 0;      // now: not ended
  std::atomic<std::uint64_t> unread = 0;      // now: ended, the last chunk not yet delivered
  std::atomic<std::uint64_t> tombstones = 0;  // now
};

/// The streams of one loop: makes them, finds them, lets them expire and keeps them within their
/// memory. A stream's id says by its hash which of `loops` loops it belongs to, so that no table
/// is shared. Belongs to its executor's thread.
class StreamManager {
 public:
  StreamManager(Executor& executor, StreamPolicy& policy, std::size_t loop, std::size_t loops);
  ~StreamManager();
  StreamManager(const StreamManager&) = delete;
  StreamManager& operator=(const StreamManager&) = delete;

  struct StartOptions {
    std::string principal = {};
    const char* method = "";  // outlives the stream
    int priority = 0;         // kMinPriority..kMaxPriority; higher goes first
    bool expects_poller = true;
  };
  /// When the loop is full, an ended stream makes room (EndedStreams). Errors: kLimitReached when
  /// `principal` has as many streams under way as it may, or no stream has ended.
  Result<std::shared_ptr<ChunkStream>> start(StartOptions options);

  /// A stream that is no client's: it is not counted as one, and only `finder` finds it by its id,
  /// which is no client's principal; if that is empty, nobody. Its memory is `client`'s. Whoever
  /// starts it has been admitted, and discards it.
  std::shared_ptr<ChunkStream> start_private(std::string finder, const char* method,
                                             const std::string& client);

  /// The share of `principal` in the memory of all streams, on which all else draws that a client
  /// leaves with the server.
  [[nodiscard]] std::shared_ptr<MemoryShare> memory_of(const std::string& principal) const {
    return policy_->memory.of(principal);
  }

  /// Errors: -32001 for an id nobody knows or of another principal, -32005 for one that expired.
  Result<std::shared_ptr<ChunkStream>> find(std::string_view id, std::string_view principal);

  /// Forgets a stream that nobody will ask for again, without a tombstone. Its producer is told to
  /// stop if it had not ended. Nothing happens if it has been removed already.
  void discard(ChunkStream& stream);

  /// The streams that `principal` started last, the newest first, at most so many.
  [[nodiscard]] std::vector<std::shared_ptr<ChunkStream>> streams_of(const std::string& principal,
                                                                     std::size_t most) const;

  /// Ends every stream that has not ended with `error`, and stops its producer.
  void end_all(const Error& error);

  /// Which loop has the stream of this id.
  static std::size_t loop_of(std::string_view id, std::size_t loops);

  Executor& executor() { return *executor_; }
  /// What answering may do on this loop: to read streams is most of it.
  TurnWork& work() { return work_; }
  [[nodiscard]] const StreamLimits& limits() const { return policy_->limits; }
  StreamCounters& counters() { return counters_; }
  [[nodiscard]] const StreamCounters& counters() const { return counters_; }

  static constexpr int kMinPriority = -10;
  static constexpr int kMaxPriority = 10;

 private:
  friend class ChunkStream;
  friend class Cursor;

  // What streams ask of their manager.
  void schedule_flush(std::shared_ptr<ChunkStream> stream);
  void on_access(ChunkStream& stream);
  void on_ended(ChunkStream& stream);
  /// A paused stream found no room; if that is for want of memory, it is asked again soon.
  void on_paused(ChunkStream& stream);
  /// A reader of the stream came, went or moved: the stream may be of more or of less use than
  /// before, and have memory to give.
  void place(ChunkStream& stream) {
    if (!stream.listed_) return;
    if (stream.ended()) ended_.put(stream);
    if (!std::exchange(stream.yields_, true)) yielding_.push(stream.log_.share(), stream);
  }
  void count_chunk();
  /// Frees at least `bytes` of the budget, if passed chunks and read streams of this loop have it:
  /// those of `share`, or while the budget itself is short everybody's. Looks only at streams whose
  /// readers have moved since it last looked at them.
  void reclaim(std::size_t bytes, const MemoryShare& share);
  void yields_no_more(ChunkStream& stream);
  [[nodiscard]] bool short_of_memory() const;
  /// Empty strings of the loop to escape and to encode into.
  std::string& scratch() { return emptied(scratch_); }
  std::string& block_scratch() { return emptied(block_scratch_); }
  static std::string& emptied(std::string& text);
  std::vector<Cursor*>& cursor_walk() { return cursor_walk_; }

  std::shared_ptr<ChunkStream> add(StartOptions options, std::shared_ptr<MemoryShare> share,
                                   bool is_private);
  void flush();
  void sweep();
  void schedule_sweep();
  void retry_paused();
  /// How many there are of those that are limited.
  [[nodiscard]] std::size_t limited() const { return store_.size() - private_under_way_; }
  /// Removes the ended stream that goes first. False if there is none.
  bool evict_one();
  void leave_tombstone(ChunkStream& stream, const Error& reason);
  void entomb(const ChunkStream& stream);
  void remove(ChunkStream& stream, const Error& reason);
  // Its two halves: what the manager does, and what readers hear. False: it has been done.
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
  std::size_t private_under_way_ = 0;  // of those in the store
  EndedStreams ended_;
  StreamCounters counters_;
  StreamList<&by_access> accessed_;    // all of the store
  ClientStreams<&by_start> started_;   // but for private ones
  ClientStreams<&by_yield> yielding_;  // for reclaim()
  std::vector<std::shared_ptr<ChunkStream>> to_flush_;
  std::vector<std::weak_ptr<ChunkStream>> await_memory_;
  std::vector<Cursor*> cursor_walk_;
  ChunkStream::Round* rounds_ = nullptr;  // those on the stack, the innermost first
  std::string scratch_;
  std::string block_scratch_;
  Executor::TimerId sweep_timer_ = 0;
  Executor::TimerId retry_timer_ = 0;
  bool flush_posted_ = false;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace sluice
