#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "core/bytes.hpp"
#include "core/error.hpp"
#include "stream/stream.hpp"

namespace sluice {

/// Receives the blocks of a PushCursor. Belongs to the stream's loop, like the cursor that owns it.
/// As its last action, each call may destroy that cursor and with it this sink.
class BlockSink {
 public:
  virtual ~BlockSink() = default;
  /// Takes a block of encoded chunks. Returns false if it accepts no more blocks until
  /// PushCursor::resume(), which never comes if its connection is over; this block has been taken
  /// either way.
  virtual bool write(std::string_view block) = 0;
  /// Does the same with a block that several readers share.
  virtual bool write(const Bytes& block) = 0;
  /// Does the same as the first write(), and may leave other memory and content in `block`, so that
  /// a long one need not be copied.
  virtual bool take(std::string& block) { return write(std::string_view(block)); }
  /// Called when the delivery is over: this cursor has written the last chunk, or the reader had
  /// that one already, or another reader has taken over after what was written. No call follows.
  virtual void finish() = 0;
  /// Called when the stream drops this reader before its end. No call follows, but finish() if this
  /// throws std::bad_alloc.
  virtual void drop(const Error& error) = 0;
  /// Called when the cursor is destroyed. A sink that has another owner overrides this to do
  /// nothing.
  virtual void release() { delete this; }
};
struct ReleaseSink {
  void operator()(BlockSink* sink) const { sink->release(); }
};
using BlockSinkPtr = std::unique_ptr<BlockSink, ReleaseSink>;

/// A cursor that encodes new chunks and writes them to a sink for as long as the sink accepts them.
/// Every push delivery (SSE, WebSocket, progress notifications) is a PushCursor with its own
/// encoder and sink. Belongs to the stream's loop.
class PushCursor final : public Cursor {
 public:
  struct Options {
    Seq from = 0;
    /// How many chunks may be delivered beyond the acknowledged ones. 0 means that the reader does
    /// not acknowledge, and delivery counts as acknowledgement. Larger values than 32 bits can hold
    /// are clamped.
    std::size_t window = 0;
    /// Whether other readers may share the blocks that `encoder` writes.
    bool shareable = true;
  };

  /// `encoder` must outlive the cursor. Nothing is written before the first resume().
  PushCursor(std::shared_ptr<ChunkStream> stream, const ChunkEncoder& encoder, BlockSinkPtr sink,
             Options options);
  PushCursor(std::shared_ptr<ChunkStream> stream, const ChunkEncoder& encoder,
             std::unique_ptr<BlockSink> sink, Options options)
      : PushCursor(std::move(stream), encoder, BlockSinkPtr(sink.release()), options) {}
  ~PushCursor() override;

  /// Tells the cursor that the sink accepts blocks, again or for the first time.
  void resume();
  /// The reader confirms that it has every chunk below `seq`. Error: -32006 if `seq` is ahead of
  /// what has been delivered.
  Result<void> acknowledge(Seq seq);

  /// Approximate maximum size of a block, in bytes, so that a long backlog does not hold up the
  /// loop.
  static constexpr std::size_t kBlockBytes = std::size_t{32} << 10U;

 private:
  /// Marks that a call to the sink is on the stack, and records what the call did to this cursor.
  struct Writing {
    explicit Writing(PushCursor& of) : cursor(&of) { of.writing_ = this; }
    ~Writing() {
      if (!destroyed) cursor->writing_ = nullptr;
    }
    Writing(const Writing&) = delete;
    Writing& operator=(const Writing&) = delete;

    PushCursor* cursor;
    bool destroyed = false;
    bool resumed = false;
  };

  /// Ends the delivery. May destroy the cursor.
  void finish();
  void on_chunks() override;
  void on_dropped(const Error& error) override;
  void on_dismissed() override;

  enum class State : std::uint8_t { waiting, open, finished };  // waiting for resume()

  // The small members come first: they fit into the padding of the base class.
  bool shareable_;
  State state_ = State::waiting;
  std::uint32_t window_;
  const ChunkEncoder* encoder_;
  BlockSinkPtr sink_;
  Writing* writing_ = nullptr;
};

}  // namespace sluice
