#include "stream/push_cursor.hpp"

#include <algorithm>
#include <limits>
#include <new>
#include <utility>

#include "stream/stream_error.hpp"

namespace sluice {

PushCursor::PushCursor(std::shared_ptr<ChunkStream> stream, const ChunkEncoder& encoder,
                       BlockSinkPtr sink, Options options)
    : Cursor(std::move(stream), options.from),
      shareable_(options.shareable),
      window_(static_cast<std::uint32_t>(
          std::min<std::size_t>(options.window, std::numeric_limits<std::uint32_t>::max()))),
      encoder_(&encoder),
      sink_(std::move(sink)) {
  if (window_ > 0) hold_until_acknowledged();
}

PushCursor::~PushCursor() {
  if (state_ != State::finished) expect_return();
  if (writing_ != nullptr) writing_->destroyed = true;
}

void PushCursor::resume() {
  if (state_ == State::waiting) state_ = State::open;
  if (writing_ != nullptr) writing_->resumed = true;
  if (stream() != nullptr) on_chunks();
}

Result<void> PushCursor::acknowledge(Seq seq) {
  if (seq > position()) {
    return fail(kStreamInvalidState, "ack " + std::to_string(seq) +
                                         " is ahead of what was delivered; the next seq is " +
                                         std::to_string(position()));
  }
  if (stream() == nullptr) return {};
  Cursor::acknowledge(seq);
  if (state_ == State::open && stream() != nullptr) on_chunks();
  return {};
}

void PushCursor::on_chunks() {
  // If the sink calls resume() from within write(), the loop below that called write() carries on.
  if (writing_ != nullptr) return;
  while (state_ == State::open && stream() != nullptr) {
    ChunkStream& source = *stream();
    const Seq limit = window_ == 0 ? source.next() : acknowledged() + window_;
    if (position() >= source.next()) {
      // A reader that resumes after the last chunk already has everything.
      if (source.ended()) finish();
      return;
    }
    if (position() >= limit) return;
    Seq reached = position();
    {
      Writing writing(*this);
      bool more = false;
      Bytes shared;
      if (shareable_ && window_ == 0 && source.has_several_readers()) {
        shared = source.encoded(*encoder_, position(), kBlockBytes, reached);
      }
      if (!shared.empty()) {
        // Never writes the same chunks for ever, whatever the block holds.
        if (reached <= position()) return;
        more = sink_->write(shared);
      } else {
        std::string& block = source.block_scratch();
        reached = source.encode(block, *encoder_, position(), limit, kBlockBytes);
        if (reached <= position()) return;
        more = sink_->take(block);
      }
      if (writing.destroyed) return;
      if (state_ == State::open && !more && !writing.resumed) state_ = State::waiting;
    }
    if (stream() == nullptr) return;
    pass(reached);
  }
}

void PushCursor::finish() {
  state_ = State::finished;
  pass(position());
  sink_->finish();
}

void PushCursor::on_dropped(const Error& error) {
  if (std::exchange(state_, State::finished) == State::finished) return;
  try {
    sink_->drop(error);
  } catch (const std::bad_alloc&) {
    // Without memory to say why, the delivery just ends.
    sink_->finish();
  }
}

void PushCursor::on_dismissed() {
  if (std::exchange(state_, State::finished) != State::finished) sink_->finish();
}

}  // namespace sluice
