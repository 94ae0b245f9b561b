#include "stream/push_cursor.hpp"

#include <utility>

#include "stream/stream_error.hpp"

namespace sluice {

PushCursor::PushCursor(std::shared_ptr<ChunkStream> stream, const ChunkEncoder& encoder,
                       std::unique_ptr<BlockSink> sink, Options options)
    : Cursor(std::move(stream), options.from),
      encoder_(&encoder),
      sink_(std::move(sink)),
      window_(options.window),
      shareable_(options.shareable) {
  if (window_ > 0) hold_until_acknowledged();
}

PushCursor::~PushCursor() {
  if (!finished_) expect_return();
  if (writing_ != nullptr) writing_->destroyed = true;
}

void PushCursor::resume() {
  open_ = true;
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
  if (open_ && stream() != nullptr) on_chunks();
  return {};
}

void PushCursor::on_chunks() {
  // A sink that resumes from within write() is served by the loop that called it.
  if (writing_ != nullptr) return;
  while (open_ && !finished_ && stream() != nullptr) {
    ChunkStream& source = *stream();
    const Seq limit = window_ == 0 ? source.next() : acknowledged() + window_;
    if (position() >= source.next()) {
      // A reader that resumes behind the last chunk has everything.
      if (source.ended()) finish();
      return;
    }
    if (position() >= limit) return;
    Seq reached = position();
    Writing writing;
    writing_ = &writing;
    bool more = false;
    if (shareable_ && window_ == 0 && source.has_several_readers()) {
      const Bytes block = source.encoded(*encoder_, position(), kBlockBytes, reached);
      more = sink_->write(block);
    } else {
      std::string& block = source.block_scratch();
      reached = source.encode(block, *encoder_, position(), limit, kBlockBytes);
      more = sink_->write(std::string_view(block));
    }
    if (writing.destroyed) return;
    writing_ = nullptr;
    open_ = more || writing.resumed;
    if (stream() == nullptr) return;
    pass(reached);
  }
}

void PushCursor::finish() {
  finished_ = true;
  pass(position());
  sink_->finish();
}

void PushCursor::on_dropped(const Error& error) {
  if (std::exchange(finished_, true)) return;
  sink_->drop(error);
}

}  // namespace sluice
