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
#include "stream/ended_streams.hpp"
#include "stream/stream_id.hpp"
#include "stream/stream_list.hpp"

namespace sluice {

class Cursor;
class Executor;
class ChunkStream;
class StreamManager;

/// What one stream may use. Reaching `max_chunks` or `max_bytes` pauses its producer.
struct StreamLimits {
  std::size_t max_chunks = 16384;
  std::size_t max_bytes = std::size_t{1} << 20U;
  /// Chunks already passed by every reader but not acknowledged stay, up to this many bytes, for a
  /// reader that resumes.
  std::size_t retained_bytes = std::size_t{64} << 10U;
  Duration expiry = std::chrono::minutes(5);
  Duration tombstone = std::chrono::minutes(5);
  /// A reader that holds up a full stream and does not move for this long loses it.
  Duration stall = std::chrono::seconds(30);
};

enum class StreamState : std::uint8_t { initializing, active, finished, failed };

/// "initializing", "active", "finished", "failed".
std::string_view to_string(StreamState state);

/// Whoever makes a stream's chunks, told when to go on and when to stop. Called on the stream's
/// loop, on_writable() only at the end of its turn: never from within a call to the stream.
class StreamProducer {
 public:
  virtual ~StreamProducer() = default;
  /// There is room again after an append() that returned false.
  virtual void on_writable() = 0;
  /// Nobody wants more: stop. Called at most once; finish() or fail() may still follow.
  virtual void on_cancel() = 0;
};

/// Writes one or more chunks in a delivery's own form. An encoder whose blocks can be shared by
/// several readers is one object for all of them: its address names the form.
class ChunkEncoder {
 public:
  virtual ~ChunkEncoder() = default;
  virtual void encode(std::string& out, const ChunkStream& stream, const Chunk& chunk) const = 0;
  /// Completes a block that several readers will share, before it can no longer change.
  virtual void seal(std::string& /*block*/) const {}
};

/// An ordered sequence of chunks with one producer and any number of readers.
///
/// Chunks that every reader has passed stay within `retained_bytes` and half of `max_chunks` until
/// someone acknowledges them; of a stream that has ended the last one stays too. When what is kept
/// reaches the limits, append() says so and the producer waits for on_writable(), which comes when
/// a quarter is free. A stream that its manager has removed is ended, has no readers and takes
/// none. Belongs to the loop of its manager.
class ChunkStream : public std::enable_shared_from_this<ChunkStream> {
 public:
  struct Options {
    StreamId id;
    std::string principal;    // who started it; nobody else finds it
    const char* method = "";  // the caller's, repeated in pushed chunks; outlives the stream
    int priority = 0;
    bool expects_poller = true;               // hold everything until the first reader comes
    bool is_private = false;                  // StreamManager::start_private()
    std::shared_ptr<MemoryShare> share = {};  // of whoever started it; not null
  };

  ChunkStream(Options options, StreamManager& manager);
  ~ChunkStream();
  ChunkStream(const ChunkStream&) = delete;
  ChunkStream& operator=(const ChunkStream&) = delete;

  // --- the producer's side -------------------------------------------------------------------

  /// The producer is not owned and must outlive the stream or be reset to null before it goes.
  void set_producer(StreamProducer* producer) { producer_ = producer; }
  [[nodiscard]] const StreamProducer* producer() const { return producer_; }
  /// The loop this stream belongs to.
  [[nodiscard]] Executor& executor() const;

  /// Appends a chunk of UTF-8 text, or a message in JSON text without line breaks. True: there is
  /// room for another. False: this one is kept, but the producer must wait for on_writable(); it
  /// stays false until then. Ignored, and false, once the stream has ended. If there is no memory
  /// for it at all, the stream fails. It lives until append() and flush() return, whoever lets go
  /// of it meanwhile.
  bool append(ChunkKind kind, std::string_view text);
  /// Hands everything appended so far to the readers now; otherwise that happens at the end of
  /// the loop's turn.
  void flush();
  /// Ends the stream. `trailer` is JSON members to stand beside the last chunk's own (no braces),
  /// or empty.
  void finish(std::string trailer = {});
  /// Ends the stream with an error that its readers see after everything before it.
  void fail(const Error& error, std::string trailer = {});
  /// As StreamManager::discard(), also when there is no manager any more.
  void discard();

  // --- the readers' side ---------------------------------------------------------------------

  /// A polling reader has everything below `seq`: frees it as far as no other reader holds it,
  /// and holds what follows until the next call. `seq` must have passed check_position().
  void poll_from(Seq seq);
  /// Whether a reader may start at `from`: -32006 below the oldest kept chunk (`data.oldest_seq`
  /// names it) or ahead of the next one, -32005 if the stream has been removed.
  [[nodiscard]] Result<void> check_position(Seq from) const;
  /// The oldest chunk that a reader, at it or gone, has not passed.
  [[nodiscard]] Seq undelivered() const { return hold(); }
  /// Stops the producer on a reader's behalf; the stream then ends as the producer says. False if
  /// it had already ended.
  bool cancel();
  /// The chunks from `from` on in `encoder`'s form, about `max_bytes` of them, shared by readers
  /// at the same place within one turn. Sets `next` to the first chunk not in it. They count as
  /// memory of the stream's client until the last reader lets go of them; empty if there is none.
  Bytes encoded(const ChunkEncoder& encoder, Seq from, std::size_t max_bytes, Seq& next);
  /// Appends the chunks in [from, limit) to `out`, stopping after about `max_bytes`. Returns the
  /// first chunk not appended.
  Seq encode(std::string& out, const ChunkEncoder& encoder, Seq from, Seq limit,
             std::size_t max_bytes) const;
  [[nodiscard]] bool has_readers() const { return cursors_ != nullptr; }
  [[nodiscard]] bool has_several_readers() const;
  /// A string of the loop to encode into; valid until the next cursor uses it.
  std::string& block_scratch();

  template <class Visit>
  Seq read(Seq from, Visit&& visit) const {
    return log_.read(from, static_cast<Visit&&>(visit));
  }

  [[nodiscard]] const StreamId& id() const { return id_; }
  [[nodiscard]] const std::string& principal() const { return principal_; }
  /// Begun by StreamManager::start_private().
  [[nodiscard]] bool is_private() const { return is_private_; }
  [[nodiscard]] std::string_view method() const { return method_; }
  [[nodiscard]] int priority() const { return priority_; }
  [[nodiscard]] StreamState state() const { return state_; }
  [[nodiscard]] bool ended() const { return state_ >= StreamState::finished; }
  [[nodiscard]] Seq first() const { return log_.first(); }
  [[nodiscard]] Seq next() const { return log_.next(); }
  [[nodiscard]] std::size_t bytes() const { return log_.bytes(); }
  [[nodiscard]] std::size_t memory() const { return log_.memory(); }
  /// JSON members of the last chunk beside seq, delta and end, each followed by nothing; empty
  /// until the end.
  [[nodiscard]] const std::string& trailer() const;
  /// Why the stream failed; set in state `failed`.
  [[nodiscard]] const Error& error() const { return ending_->error; }
  /// Whether some reader has been given the last chunk.
  [[nodiscard]] bool delivered() const { return delivered_; }
  /// A reader without a cursor has been given the last chunk.
  void note_delivered();
  [[nodiscard]] bool paused() const { return paused_; }
  [[nodiscard]] TimePoint last_access() const { return last_access_; }

 private:
  friend class Cursor;
  friend class EndedStreams;
  friend class StreamManager;

  /// Where a reader that comes by requests, and is not there between them, stands.
  enum class Poller : std::uint8_t { none, expected, active };

  void end(StreamState state, std::string trailer, Error error = {});
  /// fail(), and the producer is told to stop.
  void abandon(const Error& error);
  void mark_dirty();
  void notify_cursors();
  /// The lowest chunk a reader still needs.
  [[nodiscard]] Seq hold() const;
  /// Frees what every reader has passed beyond what is retained for one that resumes.
  void make_room();
  [[nodiscard]] std::size_t retained_bytes() const;
  [[nodiscard]] bool full() const;
  [[nodiscard]] bool roomy() const;
  void pause();
  void arm_stall_timer();
  void on_stall();
  /// Lets go of the readers that stand at `lowest` and have not moved. Returns how many they were.
  std::size_t drop_stalled(Seq lowest, const Error& error);
  /// Has settle() called at the end of the turn.
  void queue();
  /// Makes room and, if there is enough of it, wakes the producer.
  void settle();
  void touch();
  void mark_delivered();
  /// Whether nobody would miss the stream: a reader has had all of it and none is at it.
  [[nodiscard]] bool evictable() const;

  /// Readers are being told something.
  class Round;

  /// What is known once the stream has ended.
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

  StreamManager* manager_;
  StreamProducer* producer_ = nullptr;
  Cursor* cursors_ = nullptr;  // intrusive list
  StreamId id_;
  StreamState state_ = StreamState::initializing;
  Poller poller_;
  bool poller_moved_ = false;  // since the stall timer was armed
  bool poller_done_ = false;   // it has been given the last chunk
  bool dirty_ = false;         // the readers have not been told of everything
  bool queued_ = false;        // in the manager's list of streams to flush
  bool interrupted_ = false;   // a reader was cut off before the end and may come back
  bool telling_ = false;       // there is a Round, which nests no further
  bool paused_ = false;
  bool awaits_memory_ = false;  // in the manager's list of streams to wake when there is some
  bool cancelled_ = false;
  bool delivered_ = false;
  bool listed_ = false;  // by the manager, until it removes the stream
  bool yields_ = false;  // among those that may have memory to give
  const bool is_private_;
  std::int8_t priority_;
  /// What the poller has acknowledged; without one, where the last reader stood when it left.
  Seq absent_at_ = 0;
  ChunkLog log_;
  std::string principal_;
  const char* method_;
  std::unique_ptr<Ending> ending_;
  std::unique_ptr<SharedBlock> shared_;
  TimePoint last_access_;
  std::uint64_t stall_timer_ = 0;
  // Its places in the manager's lists.
  StreamLink by_access_;
  StreamLink by_start_;
  StreamLink by_yield_;
};

/// A reader's place in a stream. It holds the chunks from its position on until it has passed
/// them. Attached from construction to destruction, or until the stream drops it. Belongs to the
/// stream's loop.
class Cursor {
 public:
  /// `from` must have passed check_position(). On a removed stream the cursor is not attached.
  Cursor(std::shared_ptr<ChunkStream> stream, Seq from);
  virtual ~Cursor();
  Cursor(const Cursor&) = delete;
  Cursor& operator=(const Cursor&) = delete;

  /// Null once the stream has dropped this cursor.
  [[nodiscard]] ChunkStream* stream() const { return stream_.get(); }
  /// The next chunk to read.
  [[nodiscard]] Seq position() const { return position_; }

 protected:
  /// There are chunks at position(), or the stream has ended. May destroy the cursor.
  virtual void on_chunks() = 0;
  /// The stream has let go of this cursor, because it stalled or the stream expired; stream() is
  /// null. May destroy the cursor.
  virtual void on_dropped(const Error& error) = 0;

  /// Everything below `position` has been delivered.
  void pass(Seq position);
  /// Everything below `seq` may be freed. Without a call to it, passing is acknowledging enough
  /// to let the buffer move on.
  void acknowledge(Seq seq);
  /// Chunks are held from the acknowledged position on, not from the passed one.
  void hold_until_acknowledged() { holds_acknowledged_ = true; }
  /// The reader was cut off and may come back: what was passed is kept for it within the retained
  /// bytes, also when others acknowledge it.
  void expect_return();
  [[nodiscard]] Seq acknowledged() const { return acknowledged_; }

 private:
  friend class ChunkStream;
  friend class StreamManager;
  void detach();
  [[nodiscard]] Seq held() const { return holds_acknowledged_ ? acknowledged_ : position_; }

  std::shared_ptr<ChunkStream> stream_;
  Cursor* next_ = nullptr;
  Cursor** link_ = nullptr;  // what points to this one in the stream's list
  Seq position_;
  Seq acknowledged_;
  bool holds_acknowledged_ = false;
  bool moved_ = true;  // since the stream's stall timer was armed
};

}  // namespace sluice
