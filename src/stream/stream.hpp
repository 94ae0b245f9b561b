#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/bytes.hpp"
#include "core/clock.hpp"
#include "core/error.hpp"
#include "stream/chunk_log.hpp"
#include "stream/client_quota.hpp"
#include "stream/ended_streams.hpp"
#include "stream/stream_id.hpp"
#include "stream/stream_list.hpp"

namespace sluice {

class Cursor;
class Executor;
class ChunkStream;
class StreamManager;

/// The limits of one stream. Reaching `max_chunks` or `max_bytes` pauses its producer.
struct StreamLimits {
  std::size_t max_chunks = 16384;
  std::size_t max_bytes = std::size_t{1} << 20U;
  /// Bytes of chunks that are kept for a reader that resumes, after every reader has passed them
  /// but nobody has acknowledged them.
  std::size_t retained_bytes = std::size_t{64} << 10U;
  Duration expiry = std::chrono::minutes(5);
  Duration tombstone = std::chrono::minutes(5);
  /// A reader that holds up a full stream and does not move for this long is dropped.
  Duration stall = std::chrono::seconds(30);
};

enum class StreamState : std::uint8_t { initializing, active, finished, failed };

/// "initializing", "active", "finished", "failed".
std::string_view to_string(StreamState state);

/// Makes a stream's chunks, and is told when to continue and when to stop. Called on the stream's
/// loop. on_writable() is called only at the end of the loop's turn, never from within a call to
/// the stream.
class StreamProducer {
 public:
  virtual ~StreamProducer() = default;
  /// There is room again after append() returned false.
  virtual void on_writable() = 0;
  /// The producer must stop, because nobody wants more chunks. Called at most once; finish() or
  /// fail() may still follow.
  virtual void on_cancel() = 0;
  /// The last reader has left. Others may come. Must not change the stream.
  virtual void on_unread() noexcept {}
};

/// Encodes chunks in the form of one kind of delivery. Readers that share blocks must use the same
/// encoder object: its address identifies the form.
class ChunkEncoder {
 public:
  virtual ~ChunkEncoder() = default;
  virtual void encode(std::string& out, const ChunkStream& stream, const Chunk& chunk) const = 0;
  /// Completes a block that several readers will share. The block is immutable afterwards.
  virtual void seal(std::string& /*block*/) const {}
};

/// An ordered sequence of chunks with one producer and any number of readers.
///
/// Chunks that every reader has passed are kept, within `retained_bytes` and half of `max_chunks`,
/// until a reader acknowledges them. The last chunk of an ended stream is kept too. When the kept
/// chunks reach the limits, append() returns false and the producer waits for on_writable(), which
/// is called when a quarter is free. A stream that its manager has removed has ended, has no
/// readers and accepts none. Belongs to the loop of its manager.
class ChunkStream : public std::enable_shared_from_this<ChunkStream> {
 public:
  struct Options {
    StreamId id;
    std::string principal;  // who started it; only they can find it
    const char* method =
        "";  // the method that was called, repeated in pushed chunks; must outlive the stream
    int priority = 0;
    bool expects_poller = true;               // keep everything until the first reader comes
    bool is_private = false;                  // see StreamManager::start_private()
    std::shared_ptr<MemoryShare> share = {};  // the memory share of who started it; not null
    ClientQuota::Unit unit = {};              // held until the stream has ended
  };

  ChunkStream(Options options, StreamManager& manager);
  ~ChunkStream();
  ChunkStream(const ChunkStream&) = delete;
  ChunkStream& operator=(const ChunkStream&) = delete;

  // --- the producer's side -------------------------------------------------------------------

  /// Sets the producer, which is not owned. It must outlive the stream or be reset to null before
  /// it is destroyed.
  void set_producer(StreamProducer* producer) { producer_ = producer; }
  [[nodiscard]] const StreamProducer* producer() const { return producer_; }
  /// The loop this stream belongs to.
  [[nodiscard]] Executor& executor() const;

  /// Appends a chunk of UTF-8 text, or a message as JSON text without line breaks. Returns true if
  /// there is room for another chunk. Returns false if the producer must wait for on_writable():
  /// this chunk is kept, and append() returns false until then. On an ended stream it does nothing
  /// and returns false. If there is no memory for the chunk at all, the stream fails. The stream
  /// stays alive until append() and flush() return, even if its last other reference is dropped
  /// meanwhile.
  bool append(ChunkKind kind, std::string_view text);
  /// The same for a chunk that may be left out: it is, and false is returned, if the stream has
  /// ended or waits for on_writable(), or if there is no memory for the chunk. Without memory, the
  /// stream waits, and on_writable() asks the producer to try again.
  bool offer(ChunkKind kind, std::string_view text);
  /// Passes everything appended so far to the readers now. Otherwise this happens at the end of the
  /// loop's turn. If readers are so many that some must wait for a later turn, those hear of it
  /// then.
  void flush();
  /// Ends the stream. `trailer` is empty or holds JSON members (without braces) that are added to
  /// those of the last chunk.
  void finish(std::string trailer = {});
  /// Ends the stream with an error, which readers receive after all chunks before it.
  void fail(const Error& error, std::string trailer = {});
  /// Does the same as StreamManager::discard(). Safe to call when the manager no longer exists.
  void discard();

  /// The share of who started it. Not null.
  [[nodiscard]] const std::shared_ptr<MemoryShare>& memory_share() const {
    return log_.share_handle();
  }

  // --- the readers' side ---------------------------------------------------------------------

  /// A polling reader confirms that it has every chunk below `seq`. Frees those chunks unless
  /// another reader holds them, and holds the following ones until the next call. `seq` must have
  /// passed check_position().
  void poll_from(Seq seq);
  /// A reader confirms the same, but will not poll: frees those chunks unless a reader holds them,
  /// and holds nothing. `seq` must have passed check_position().
  void acknowledge(Seq seq);
  /// Checks whether a reader may start at `from`. Errors: -32006 if `from` is below the oldest kept
  /// chunk (`data.oldest_seq` names that chunk) or ahead of the next one, -32005 if the stream has
  /// been removed.
  [[nodiscard]] Result<void> check_position(Seq from) const;
  /// The oldest chunk that some reader, present or absent, has not passed.
  [[nodiscard]] Seq undelivered() const { return hold(); }
  /// Detaches all readers at their positions, so that another reader can continue there.
  void dismiss_readers();
  /// Stops the producer on a reader's behalf. The producer then decides how the stream ends.
  /// Returns false if the stream had already ended or been cancelled.
  bool cancel();
  /// Encodes about `max_bytes` of the chunks from `from` on with `encoder`. Readers at the same
  /// place share the block within one turn. Sets `next` to the first chunk that is not in the
  /// block. The block counts as memory of the stream's client until the last reader lets go of it.
  /// Returns an empty block if there is no memory for it.
  Bytes encoded(const ChunkEncoder& encoder, Seq from, std::size_t max_bytes, Seq& next);
  /// Appends the chunks in [from, limit) to `out` and stops after about `max_bytes`. Returns the
  /// first chunk that was not appended.
  Seq encode(std::string& out, const ChunkEncoder& encoder, Seq from, Seq limit,
             std::size_t max_bytes) const;
  [[nodiscard]] bool has_readers() const { return cursors_ != nullptr; }
  [[nodiscard]] bool has_several_readers() const;
  /// An empty string to encode into, owned by the loop. Valid until another cursor uses it.
  std::string& block_scratch();

  template <class Visit>
  Seq read(Seq from, Visit&& visit) const {
    return log_.read(from, static_cast<Visit&&>(visit));
  }

  [[nodiscard]] const StreamId& id() const { return id_; }
  [[nodiscard]] const std::string& principal() const { return principal_; }
  /// Whether StreamManager::start_private() started it.
  [[nodiscard]] bool is_private() const { return is_private_; }
  [[nodiscard]] std::string_view method() const { return method_; }
  [[nodiscard]] int priority() const { return priority_; }
  [[nodiscard]] StreamState state() const { return state_; }
  [[nodiscard]] bool ended() const { return state_ >= StreamState::finished; }
  [[nodiscard]] Seq first() const { return log_.first(); }
  [[nodiscard]] Seq next() const { return log_.next(); }
  [[nodiscard]] std::size_t bytes() const { return log_.bytes(); }
  [[nodiscard]] std::size_t memory() const { return log_.memory(); }
  /// The JSON members that the last chunk has besides seq, delta and end, without a comma after
  /// them. Empty until the stream ends.
  [[nodiscard]] const std::string& trailer() const;
  /// Why the stream failed; set in state `failed`.
  [[nodiscard]] const Error& error() const { return ending_->error; }
  /// Whether at least one reader has been given the last chunk.
  [[nodiscard]] bool delivered() const { return delivered_; }
  /// Records that a reader without a cursor has been given the last chunk.
  void note_delivered();
  [[nodiscard]] bool paused() const { return paused_; }
  [[nodiscard]] TimePoint last_access() const { return last_access_; }

 private:
  friend class Cursor;
  friend class EndedStreams;
  friend class StreamManager;

  /// Whether there is a polling reader, which is absent between its requests.
  enum class Poller : std::uint8_t { none, expected, active };

  void end(StreamState state, std::string trailer, Error error = {});
  /// Calls fail() and tells the producer to stop.
  void abandon(const Error& error);
  /// append() without the end of the stream: returns false if there is no memory for the chunk.
  bool keep(ChunkKind kind, std::string_view text);
  void mark_dirty();
  /// Whether some readers have not been told of every chunk.
  [[nodiscard]] bool has_news() const {
    return dirty_ || (crowd_ != nullptr && crowd_->untold != nullptr);
  }
  /// Tells the readers that there are chunks, each of which takes `cost` of `budget`. If there are
  /// more readers than that, the next call goes on with the others. Returns what it took.
  std::size_t notify_cursors(std::size_t budget, std::size_t cost);
  /// The lowest chunk that some reader still needs.
  [[nodiscard]] Seq hold() const;
  /// The same of the attached readers; there must be one.
  [[nodiscard]] Seq held_by_readers() const;
  /// A reader begins to hold the chunks from `seq` on, or ends to.
  void on_hold(Seq seq);
  void on_release(Seq seq);
  /// Frees chunks that every reader has passed, except those that are retained for a reader that
  /// resumes.
  void make_room();
  [[nodiscard]] std::size_t retained_bytes() const;
  [[nodiscard]] bool full() const;
  [[nodiscard]] bool roomy() const;
  void pause();
  /// Whether there is a reader that has come, rather than one that is expected.
  [[nodiscard]] bool is_read() const { return cursors_ != nullptr || poller_ == Poller::active; }
  /// Without memory for the timer, the manager arms it later.
  void arm_stall_timer() noexcept;
  void on_stall();
  /// Drops the readers that hold up the stream. Returns true if it has ended because of that.
  bool drop_all_stalled();
  /// Drops the readers that are at `lowest` and have not moved. Returns their number.
  std::size_t drop_stalled(Seq lowest, const Error& error);
  /// Arranges for settle() to be called at the end of the turn, or without memory for that, later.
  void queue() noexcept;
  /// Does again what may have failed for lack of memory.
  void catch_up() noexcept;
  /// A reader has every chunk below `below`: frees those that no reader holds.
  void release_confirmed(Seq below);
  /// Makes room, and wakes the producer if there is enough.
  void settle();
  void touch();
  void mark_delivered();
  /// Whether the stream can be evicted without loss: a reader has had all of it and no reader is
  /// attached.
  [[nodiscard]] bool evictable() const;

  /// Exists while readers are being told of chunks or dropped.
  class Telling;

  /// What is known only after the stream has ended.
  struct Ending {
    std::string trailer;
    Error error;
    EndedStreams::Position place = {};
  };

  struct SharedBlock {
    const ChunkEncoder* encoder = nullptr;
    Seq from = 0;
    Seq next = 0;
    Bytes bytes;
  };

  /// What several readers share, and how far a walk through them has come. A reader that leaves
  /// moves the walks on.
  struct Crowd {
    void add(Seq held) {
      if (held < lowest) at_lowest = 0;
      if (at_lowest == 0) lowest = held;
      if (held == lowest) ++at_lowest;
    }

    SharedBlock block;
    Seq lowest = 0;               // held by a reader
    std::size_t at_lowest = 0;    // how many readers hold it; 0: they must be looked at again
    Cursor* untold = nullptr;     // the next to be told of chunks
    Cursor* unchecked = nullptr;  // the next to be dropped, should it have stalled
  };

  StreamManager* manager_;
  StreamProducer* producer_ = nullptr;
  Cursor* cursors_ = nullptr;  // intrusive list
  StreamId id_;
  StreamState state_ = StreamState::initializing;
  Poller poller_;
  std::int8_t priority_;
  bool paused_ = false;
  bool cancelled_ = false;
  bool delivered_ = false;
  // Bits, because a server may have many streams.
  const bool is_private_ : 1;
  bool listed_ : 1 = false;         // known to the manager, until it removes the stream
  bool has_dropped_ : 1 = false;    // readers that stalled; what follows from it is not done yet
  bool poller_moved_ : 1 = false;   // since the stall timer was armed
  bool poller_done_ : 1 = false;    // the poller has been given the last chunk
  bool dirty_ : 1 = false;          // readers have not been notified of every chunk
  bool queued_ : 1 = false;         // in the manager's list of streams to flush
  bool interrupted_ : 1 = false;    // a reader was disconnected before the end and may return
  bool telling_ : 1 = false;        // a Telling of this stream exists; there is no second one
  bool awaits_memory_ : 1 = false;  // in the manager's list of streams that wait for memory
  bool yields_ : 1 = false;         // in the manager's list of streams that may have memory to free
  /// What the poller has acknowledged. Without a poller, where the last reader was when it left.
  Seq absent_at_ = 0;
  ChunkLog log_;
  std::string principal_;
  ClientQuota::Unit unit_;
  const char* method_;
  std::unique_ptr<Ending> ending_;
  std::unique_ptr<Crowd> crowd_;  // null before there are several readers
  TimePoint last_access_;
  std::uint64_t stall_timer_ = 0;
  // Links in the manager's lists.
  StreamLink by_access_;
  StreamLink by_start_;
  StreamLink by_yield_;
};

/// A reader's position in a stream. The stream keeps the chunks from that position on until the
/// cursor has passed them. A cursor is attached from construction to destruction, or until the
/// stream drops it. Belongs to the stream's loop.
class Cursor {
 public:
  /// `from` must have passed check_position(). If the stream has been removed, the cursor is not
  /// attached.
  Cursor(std::shared_ptr<ChunkStream> stream, Seq from);
  virtual ~Cursor();
  Cursor(const Cursor&) = delete;
  Cursor& operator=(const Cursor&) = delete;

  /// Null once the stream has dropped this cursor.
  [[nodiscard]] ChunkStream* stream() const { return stream_.get(); }
  /// The next chunk to read.
  [[nodiscard]] Seq position() const { return position_; }

 protected:
  /// Called when there are chunks at position() or the stream has ended. May destroy the cursor.
  virtual void on_chunks() = 0;
  /// Called when the stream has dropped this cursor, because the cursor stalled or the stream was
  /// removed; stream() is null. May destroy the cursor.
  virtual void on_dropped(const Error& error) = 0;
  /// Called when ChunkStream::dismiss_readers() has detached this cursor; stream() is null. May
  /// destroy the cursor.
  virtual void on_dismissed();

  /// Records that everything below `position` has been delivered.
  void pass(Seq position);
  /// Records that everything below `seq` may be freed. Without this call, passing chunks is enough
  /// for the buffer to move on.
  void acknowledge(Seq seq);
  /// From now on the cursor holds chunks from the acknowledged position, not from the passed one.
  void hold_until_acknowledged();
  /// The reader was disconnected and may return. Within the retained bytes, the stream keeps for it
  /// what it has passed, even if others acknowledge it.
  void expect_return();
  [[nodiscard]] Seq acknowledged() const { return acknowledged_; }

 private:
  friend class ChunkStream;
  friend class StreamManager;
  void detach();
  [[nodiscard]] Seq held() const { return holds_acknowledged_ ? acknowledged_ : position_; }

  std::shared_ptr<ChunkStream> stream_;
  Cursor* next_ = nullptr;
  Cursor** link_ = nullptr;  // the pointer to this cursor in the stream's list
  Seq position_;
  Seq acknowledged_;
  bool holds_acknowledged_ = false;
  bool moved_ = true;  // since the stream's stall timer was armed
};

}  // namespace sluice
