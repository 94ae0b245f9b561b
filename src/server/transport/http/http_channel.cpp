#include "server/transport/http/http_channel.hpp"

#include <cstddef>
#include <span>
#include <utility>

#include "server/transport/http/event_sink.hpp"

namespace sluice {

Result<void> HttpChannel::make_cancellable(const std::shared_ptr<Session>& session,
                                           const RequestId& id) {
  Result<std::unique_ptr<Session::Call>> entry =
      Session::add_call(session, id, exchange_->executor(), [weak = weak_from_this()] {
        if (const auto channel = weak.lock()) channel->cancel();
      });
  if (!entry) return std::unexpected(std::move(entry.error()));
  in_session().cancellable = std::move(*entry);
  return {};
}

void HttpChannel::cancel() {
  if (CloseTask task = std::exchange(close_task_, {})) task(DisconnectReason::cancelled);
  exchange_->on_close({});
  if (can_stream()) start();
  if (is_stream()) {
    exchange_->finish();
  } else {
    exchange_->reply(202, {}, {});
  }
}

void HttpChannel::may_take_long() {
  // The head of a stream would leave before the session is named.
  if (in_session_ != nullptr && in_session_->begun != nullptr) return;
  // Without a word about events, the client may parse the reply as JSON, as plain `fetch` does.
  if (stream_ == Acceptance::by_name && format_ == Format::events) exchange_->stream_if_silent();
}

void HttpChannel::reply(int http_status, std::string message) {
  if (!exchange_->is_streaming()) {
    const Session* const begun = in_session_ == nullptr ? nullptr : in_session_->begun.get();
    const bool is_named = begun != nullptr && !begun->ended();
    const HeaderField session{"Mcp-Session-Id", is_named ? begun->id() : std::string_view()};
    exchange_->reply_with(http_status, "application/json", std::move(message),
                          std::span(&session, is_named ? 1 : 0));
    return;
  }
  // The reply has been silent for so long that it became a stream.
  std::string event;
  const std::size_t mark = framing().begin(event);
  event.append(message);
  framing().end(event, mark);
  exchange_->write(std::string_view(event));
  exchange_->finish();
}

void HttpChannel::start() {
  if (started_) return;
  if (format_ == Format::events) {
    start_events(*exchange_);
  } else {
    start_lines(*exchange_);
  }
  started_ = true;
}

bool HttpChannel::write(std::string_view block) {
  start();
  const bool writable = exchange_->write(block);
  exchange_->flush();
  return writable;
}

bool HttpChannel::take(std::string& block) {
  start();
  const bool writable = exchange_->take(block);
  exchange_->flush();
  return writable;
}

void HttpChannel::finish() {
  leave_session();
  // The task may own the call that owns this channel, so it is destroyed last.
  const CloseTask released = std::exchange(close_task_, {});
  const HttpExchangePtr exchange = exchange_;
  if (is_stream()) {
    exchange->finish();
  } else {
    exchange->reply(202, {}, {});
  }
}

void HttpChannel::drop(const Error& /*error*/) {
  const CloseTask released = std::exchange(close_task_, {});
  const HttpExchangePtr exchange = exchange_;
  exchange->abort();
}

void HttpChannel::on_close(CloseTask task) {
  // The old task may own what owns this channel, so it is destroyed last.
  const CloseTask old = std::exchange(close_task_, std::move(task));
  if (!close_task_) {
    exchange_->on_close({});
    return;
  }
  // The exchange keeps this channel, and with it whoever waits for the caller to go.
  exchange_->on_close([self = shared_from_this()] {
    // The call may go on without this channel, and then takes the entry.
    if (CloseTask closed = std::exchange(self->close_task_, {})) closed(DisconnectReason::gone);
    self->leave_session();
  });
}

void HttpChannel::on_drain(Executor::Task task) {
  exchange_->on_drain(std::move(task));
}

}  // namespace sluice
