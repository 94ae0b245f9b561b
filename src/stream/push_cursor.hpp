#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>

#include "core/bytes.hpp"
#include "core/error.hpp"
#include "stream/stream.hpp"

namespace sluice {

/// Where a PushCursor's blocks go. Belongs to the stream's loop, like the cursor that owns it. Each
/// call may destroy that cursor, and so this sink, as the last thing it does.
class BlockSink {
 public:
  virtual ~BlockSink() = default;
  /// Takes encoded chunks. False: taken, but no more until PushCursor::resume().
  virtual bool write(std::string_view block) = 0;
  /// The same, for a block that several readers share.
  virtual bool write(const Bytes& block) = 0;
  /// The last chunk has been written, now or before this reader resumed; nothing follows.
  virtual void finish() = 0;
  /// The stream let go of this reader before its end; nothing follows.
  virtual void drop(const Error& error) = 0;
  /// The cursor goes. One that somebody else owns does nothing.
  virtual void release() { delete this; }
};
struct ReleaseSink {
  void operator()(BlockSink* sink) const { sink->release(); }
};
using BlockSinkPtr = std::unique_ptr<BlockSink, ReleaseSink>;

/// A cursor that encodes what arrives and writes it to a sink as long as the sink takes it: every
/// push delivery (SSE, WebSocket, progress notifications) is one of these with its own encoder and
/// sink. Belongs to the stream's loop.
class PushCursor final : public Cursor {
 public:
  struct Options {
    Seq from = 0;
    /// Chunks that may be delivered beyond the acknowledged ones; 0: the reader does not
    /// acknowledge, delivery is enough. What is more than 32 bits hold is taken for the most.
    std::size_t window = 0;
    /// Whether other readers may share what `encoder` writes.
    bool shareable = true;
  };

  /// `encoder` must outlive the cursor. Nothing is written before the first resume().
  PushCursor(std::shared_ptr<ChunkStream> stream, const ChunkEncoder& encoder, BlockSinkPtr sink,
             Options options);
  PushCursor(std::shared_ptr<ChunkStream> stream, const ChunkEncoder& encoder,
             std::unique_ptr<BlockSink> sink, Options options)
      : PushCursor(std::move(stream), encoder, BlockSinkPtr(sink.release()), options) {}
  ~PushCursor() override;

  /// The sink takes blocks again, or for the first time.
  void resume();
  /// The reader has everything below `seq`; -32006 if that is ahead of what it was given.
  Result<void> acknowledge(Seq seq);

  /// About this many bytes go into one block, so that one long backlog does not hold up a loop.
  static constexpr std::size_t kBlockBytes = std::size_t{32} << 10U;

 private:
  /// A call to the sink that is on the stack, and what it did to this cursor.
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

  /// Nothing follows. May destroy the cursor.
  void finish();
  void on_chunks() override;
  void on_dropped(const Error& error) override;

  enum class State : std::uint8_t { waiting, open, finished };  // for resume()

  // First what fits behind what the base has.
  bool shareable_;
  State state_ = State::waiting;
  std::uint32_t window_;
  const ChunkEncoder* encoder_;
  BlockSinkPtr sink_;
  Writing* writing_ = nullptr;
};

}  // namespace sluice
