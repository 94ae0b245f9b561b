#include "server/calls/resumable_outlet.hpp"

#include <algorithm>

#include "server/notifications/message_events.hpp"

namespace sluice {
namespace {

constexpr Duration kLookEvery = std::chrono::seconds(1);

}  // namespace

/// The channel as the cursor sees it.
class ResumableOutlet::Sink final : public BlockSink {
 public:
  explicit Sink(ResumableOutlet& outlet) : outlet_(&outlet) {}
  bool write(std::string_view block) override {
    return outlet_->channel_ == nullptr || outlet_->channel_->write(block);
  }
  bool write(const Bytes& block) override { return write(block.view()); }
  void finish() override {
    if (outlet_->stream_ != nullptr && !outlet_->stream_->ended()) {
      // Another reader goes on.
      outlet_->disconnect({});
    } else if (const std::shared_ptr<ReplyChannel> channel = outlet_->channel_) {
      channel->finish();
    }
  }
  void drop(const Error& error) override {
    const std::shared_ptr<ResumableOutlet> keep = outlet_->shared_from_this();
    if (const std::shared_ptr<ReplyChannel> channel = keep->channel_) channel->drop(error);
    keep->detach();
  }

 private:
  ResumableOutlet* outlet_;
};

void ResumableOutlet::open() {
  channel_->on_close([weak = weak_from_this()](DisconnectReason reason) {
    if (const auto self = weak.lock()) self->on_disconnect(reason);
  });
  // The first event is one from which the client can resume.
  if (channel_ == nullptr) return;
  channel_->may_take_long();
  if (!request_->context.revision->priming_event) return;
  start_stream();
  if (stream_ != nullptr) channel_->write(priming_event(stream_->id()));
}

void ResumableOutlet::start_stream() {
  if (stream_ != nullptr) return;
  if (const auto call = call_.lock()) stream_ = call->begin_stream(session_->stream_principal());
  if (stream_ == nullptr) return;
  stream_->set_producer(this);
  if (channel_ == nullptr) return;
  PushCursor::Options options;
  options.shareable = false;
  cursor_ = std::make_unique<PushCursor>(stream_, message_events(), std::make_unique<Sink>(*this),
                                         options);
  reader_ = Session::add_reader(session_, *executor_, [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->disconnect({});
  });
  channel_->on_drain([weak = weak_from_this()] {
    const auto self = weak.lock();
    if (self != nullptr && self->cursor_ != nullptr) self->cursor_->resume();
  });
  cursor_->resume();
}

bool ResumableOutlet::send(std::string_view message) {
  start_stream();
  // This may end the call and destroy the outlet.
  return stream_ == nullptr || stream_->append(ChunkKind::message, message);
}

void ResumableOutlet::flush() {
  if (stream_ != nullptr) stream_->flush();
}

void ResumableOutlet::disconnect(std::chrono::milliseconds retry) {
  if (channel_ == nullptr || stream_ == nullptr) return;
  const std::shared_ptr<ResumableOutlet> keep = shared_from_this();
  stream_->flush();
  if (channel_ == nullptr) return;  // the flush has closed it
  const std::shared_ptr<ReplyChannel> channel = channel_;
  channel->on_close({});
  if (retry.count() > 0) channel->write(retry_event(retry));
  cursor_ = nullptr;
  take_entry();
  channel->finish();
  detach();
}

void ResumableOutlet::on_writable() {
  if (const auto call = call_.lock()) call->on_outlet_writable();
}

/// The stream has failed. It tells its readers.
void ResumableOutlet::on_cancel() {
  const std::shared_ptr<ResumableOutlet> keep = shared_from_this();
  const auto call = call_.lock();
  call_.reset();
  leave_session();
  if (channel_ != nullptr) {
    channel_->on_close([keep](DisconnectReason) { keep->detach(); });
  }
  if (call != nullptr) call->on_outlet_closed(DisconnectReason::gone);
}

void ResumableOutlet::on_unread() noexcept {
  left_at_ = executor_->clock().now();
}

void ResumableOutlet::answer(CallAnswer answer) {
  const std::shared_ptr<ResumableOutlet> keep = shared_from_this();
  call_.reset();
  leave_session();
  if (stream_ == nullptr) {
    if (const auto channel = std::exchange(channel_, nullptr)) {
      channel->on_close({});
      channel->reply(answer.http_status, std::move(answer.response));
    }
    return;
  }
  stream_->set_producer(nullptr);
  stream_->append(ChunkKind::message, answer.response);
  stream_->finish();
  // The channel keeps this alive until the response is sent.
  if (channel_ != nullptr) channel_->on_close([keep](DisconnectReason) { keep->detach(); });
}

void ResumableOutlet::leave() {
  call_.reset();
  close();
}

void ResumableOutlet::on_disconnect(DisconnectReason reason) {
  if (reason == DisconnectReason::gone) {
    detach();
  } else {
    close_outlet(reason);
  }
}

void ResumableOutlet::detach() {
  const bool goes_on = channel_ != nullptr && !call_.expired();
  take_entry();
  channel_ = nullptr;
  cursor_ = nullptr;
  reader_ = nullptr;
  if (!goes_on) return;
  left_at_ = executor_->clock().now();
  await_reader(left_at_ + session_->resume_window());
}

void ResumableOutlet::take_entry() {
  if (entry_ != nullptr || channel_ == nullptr || call_.expired()) return;
  // The entry never leaves the session: the client may cancel at any moment, on any loop.
  entry_ = channel_->give_entry();
  if (entry_ == nullptr) return;
  entry_->hand_over(*executor_, [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->close_outlet(DisconnectReason::cancelled);
  });
}

void ResumableOutlet::await_reader(TimePoint until) {
  reader_timer_ = executor_->schedule_at(until, [weak = weak_from_this()] {
    const auto self = weak.lock();
    if (self == nullptr) return;
    const TimePoint now = self->executor_->clock().now();
    const bool is_read = self->stream_ != nullptr && self->stream_->has_readers();
    const Duration window = self->session_->resume_window();
    // A window of 0 must not make this run in every turn.
    const TimePoint end =
        is_read ? now + std::max<Duration>(window, kLookEvery) : self->left_at_ + window;
    if (now < end) {
      self->await_reader(end);
    } else {
      self->close_outlet(DisconnectReason::gone);
    }
  });
}

void ResumableOutlet::close_outlet(DisconnectReason reason) {
  const std::shared_ptr<ResumableOutlet> keep = shared_from_this();
  if (const auto call = call_.lock()) call->on_outlet_closed(reason);
  leave();
}

void ResumableOutlet::leave_session() {
  entry_ = nullptr;
  executor_->cancel(std::exchange(reader_timer_, 0));
}

void ResumableOutlet::close() {
  leave_session();
  channel_ = nullptr;
  cursor_ = nullptr;
  reader_ = nullptr;
  const std::shared_ptr<ChunkStream> stream = std::exchange(stream_, nullptr);
  if (stream == nullptr) return;
  stream->set_producer(nullptr);
  if (stream->ended()) {
    // A response that nobody has read yet waits for its reader to come back.
    session_->keep(stream, *executor_);
  } else {
    stream->discard();
  }
}

}  // namespace sluice
