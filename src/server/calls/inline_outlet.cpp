#include "server/calls/inline_outlet.hpp"

#include <utility>

#include "json/json.hpp"
#include "server/notifications/message_events.hpp"

namespace sluice {

void InlineOutlet::open() {
  channel_->on_close([weak = weak_from_this()](DisconnectReason reason) {
    if (const auto self = weak.lock()) self->close_outlet(reason);
  });
  if (channel_ != nullptr) channel_->may_take_long();
}

void InlineOutlet::append_progress(std::string& out, const Chunk& chunk) const {
  const RequestContext& context = request_->context;
  out.append(R"({"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":)")
      .append(context.progress_token)
      .append(R"(,"progress":)");
  append_number(out, chunk.seq + 1);
  if (context.revision->progress_message) {
    out.append(R"(,"message":")").append(chunk.escaped).append("\"");
  }
  out.append("}}");
}

void InlineOutlet::append_response(std::string& out, const ChunkStream& stream) const {
  if (stream.state() == StreamState::failed) {
    append_error(out, request_->id, without_stream_code(stream.error()));
  } else {
    out.append(stream.trailer());
  }
}

void InlineOutlet::encode(std::string& out, const ChunkStream& stream, const Chunk& chunk) const {
  if (chunk.kind == ChunkKind::end && channel_->is_shared()) return;
  const Framing& framing = channel_->framing();
  const std::size_t mark = framing.begin(out);
  switch (chunk.kind) {
    case ChunkKind::message:
      out.append(chunk.escaped);
      break;
    case ChunkKind::end:
      append_response(out, stream);
      break;
    default:
      append_progress(out, chunk);
  }
  framing.end(out, mark);
}

void InlineOutlet::start_stream() {
  if (const auto call = call_.lock()) stream_ = call->begin_stream({});
  if (stream_ == nullptr) return;
  stream_->set_producer(this);
  PushCursor::Options options;
  options.shareable = false;
  cursor_ = std::make_unique<PushCursor>(stream_, static_cast<const ChunkEncoder&>(*this),
                                         BlockSinkPtr(this), options);
  channel_->on_drain([weak = weak_from_this()] {
    const auto self = weak.lock();
    if (self != nullptr && self->cursor_ != nullptr) self->cursor_->resume();
  });
  cursor_->resume();
}

bool InlineOutlet::write(std::string_view block) {
  return channel_ == nullptr || channel_->write(block);
}

void InlineOutlet::finish() {
  const std::shared_ptr<ReplyChannel> channel = channel_;
  if (channel == nullptr) return;
  if (channel->is_shared()) {
    std::string response;
    append_response(response, *stream_);
    channel->reply(200, std::move(response));
  } else {
    channel->finish();
  }
}

void InlineOutlet::drop(const Error& error) {
  const std::shared_ptr<InlineOutlet> keep = shared_from_this();
  const std::shared_ptr<ReplyChannel> channel = channel_;
  if (channel != nullptr) channel->drop(without_stream_code(error));
  close_outlet(DisconnectReason::gone);
}

bool InlineOutlet::send(std::string_view message) {
  if (!carries() || !has_stream()) return true;
  // This may end the call and destroy the outlet.
  return stream_->append(ChunkKind::message, message);
}

std::optional<bool> InlineOutlet::text(std::string_view text) {
  if (!carries() || !has_stream()) return true;
  counted_ = stream_->next() + 1;
  return stream_->append(ChunkKind::text, text);
}

void InlineOutlet::flush() {
  if (stream_ != nullptr) stream_->flush();
}

void InlineOutlet::on_writable() {
  if (const auto call = call_.lock()) call->on_outlet_writable();
}

/// The stream has failed. Its last chunk is the error that answers the caller.
void InlineOutlet::on_cancel() {
  const std::shared_ptr<InlineOutlet> keep = shared_from_this();
  const auto call = call_.lock();
  call_.reset();
  if (channel_ != nullptr) channel_->on_close([keep](DisconnectReason) { keep->close(); });
  if (call != nullptr) call->on_outlet_closed(DisconnectReason::gone);
}

void InlineOutlet::answer(CallAnswer answer) {
  const std::shared_ptr<InlineOutlet> keep = shared_from_this();
  call_.reset();
  if (stream_ == nullptr) {
    if (const auto channel = std::exchange(channel_, nullptr)) {
      channel->on_close({});
      channel->reply(answer.http_status, std::move(answer.response));
    }
    return;
  }
  stream_->set_producer(nullptr);
  // The response follows all earlier messages. The channel keeps this alive until it is sent.
  stream_->finish(std::move(answer.response));
  if (channel_ != nullptr) channel_->on_close([keep](DisconnectReason) { keep->close(); });
}

void InlineOutlet::leave() {
  call_.reset();
  close();
}

void InlineOutlet::close_outlet(DisconnectReason reason) {
  const std::shared_ptr<InlineOutlet> keep = shared_from_this();
  if (const auto call = call_.lock()) call->on_outlet_closed(reason);
  leave();
}

void InlineOutlet::close() {
  channel_ = nullptr;
  cursor_ = nullptr;
  if (const std::shared_ptr<ChunkStream> stream = std::exchange(stream_, nullptr)) {
    stream->set_producer(nullptr);
    stream->discard();
  }
}

}  // namespace sluice
