#include "stream/push_cursor.hpp"

#include <utility>

#include "stream/stream_error.hpp"

namespace sluice {

PushCursor::PushCursor(std::shared_ptr<Stream> stream, const ChunkEncoder& encoder,
                       std::unique_ptr<BlockSink> sink, Options options)
    : Cursor(std::move(stream), options.from),
      encoder_(&encoder),
      sink_(std::move(sink)),
      window_(options.window),
      shareable_(options.shareable) {
  if (window_ > 0) hold_until_acknowledged();
}

void PushCursor::resume() {
  open_ = true;
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
  if (open_ && stream() != nullptr) on_chunks();
  return {};
}

void PushCursor::on_chunks() {
  while (open_ && !finished_ && stream() != nullptr) {
    Stream& source = *stream();
    const Seq limit = window_ == 0 ? source.next() : acknowledged() + window_;
    if (position() >= source.next() || position() >= limit) return;
    Seq reached = position();
    if (shareable_ && window_ == 0 && source.has_several_readers()) {
      const Bytes block = source.encoded(*encoder_, position(), kBlockBytes, reached);
      open_ = sink_->write(block);
    } else {
      std::string& block = source.block_scratch();
      block.clear();
      reached = source.encode(block, *encoder_, position(), limit, kBlockBytes);
      open_ = sink_->write(std::string_view(block));
    }
    if (source.ended() && reached >= source.next()) {
      finished_ = true;
      sink_->finish();
    }
    // Last, for it may wake the producer, which may append and come back here.
    pass(reached);
  }
}

void PushCursor::on_dropped(const Error& error) {
  finished_ = true;
  sink_->drop(error);
}

}  // namespace sluice
