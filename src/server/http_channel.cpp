#include "server/http_channel.hpp"

#include <array>
#include <span>
#include <utility>

namespace sluice {
namespace {

constexpr std::array<HeaderField, 2> kEventStreamHeaders = {
    {{"Cache-Control", "no-store"}, {"X-Accel-Buffering", "no"}}};

}  // namespace

HeaderFields event_stream_headers() {
  return HeaderFields(std::span<const HeaderField>(kEventStreamHeaders));
}

HttpChannel::HttpChannel(HttpExchangePtr exchange, bool can_stream, std::string cors_origin)
    : exchange_(std::move(exchange)),
      cors_origin_(std::move(cors_origin)),
      can_stream_(can_stream) {}

void HttpChannel::make_cancellable(PendingCalls& calls, std::string key) {
  cancellable_ = calls.add(std::move(key), exchange_->executor(), [weak = weak_from_this()] {
    if (const auto channel = weak.lock()) channel->cancel();
  });
}

void HttpChannel::cancel() {
  if (Executor::Task task = std::exchange(close_task_, {})) task();
  exchange_->on_close({});
  start();
  exchange_->finish();
}

void HttpChannel::reply(int http_status, std::string_view message) {
  if (cors_origin_.empty()) {
    exchange_->reply(http_status, "application/json", message);
  } else {
    exchange_->reply(http_status, "application/json", message,
                     {{"Access-Control-Allow-Origin", cors_origin_}, {"Vary", "Origin"}});
  }
}

void HttpChannel::start() {
  if (std::exchange(started_, true)) return;
  if (cors_origin_.empty()) {
    exchange_->start(200, "text/event-stream", event_stream_headers());
  } else {
    exchange_->start(200, "text/event-stream",
                     {kEventStreamHeaders[0],
                      kEventStreamHeaders[1],
                      {"Access-Control-Allow-Origin", cors_origin_},
                      {"Vary", "Origin"}});
  }
}

bool HttpChannel::write(std::string_view block) {
  start();
  const bool room = exchange_->write(block);
  exchange_->flush();
  return room;
}

void HttpChannel::finish() {
  // The task may hold the call that holds this channel.
  const Executor::Task released = std::exchange(close_task_, {});
  const HttpExchangePtr exchange = exchange_;
  exchange->finish();
}

void HttpChannel::drop(const Error& /*error*/) {
  const Executor::Task released = std::exchange(close_task_, {});
  const HttpExchangePtr exchange = exchange_;
  exchange->abort();
}

void HttpChannel::on_close(Executor::Task task) {
  // What the old task holds may hold this channel.
  const Executor::Task old = std::exchange(close_task_, std::move(task));
  if (!close_task_) {
    exchange_->on_close({});
    return;
  }
  // The exchange keeps the channel, and with it what waits for the caller.
  exchange_->on_close([self = shared_from_this()] {
    if (Executor::Task closed = std::exchange(self->close_task_, {})) closed();
  });
}

void HttpChannel::on_drain(Executor::Task task) {
  exchange_->on_drain(std::move(task));
}

}  // namespace sluice
