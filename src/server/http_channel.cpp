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

void HttpChannel::reply(int http_status, std::string_view message) {
  if (cors_origin_.empty()) {
    exchange_->reply(http_status, "application/json", message);
  } else {
    exchange_->reply(http_status, "application/json", message,
                     {{"Access-Control-Allow-Origin", cors_origin_}, {"Vary", "Origin"}});
  }
}

bool HttpChannel::write(std::string_view block) {
  if (!std::exchange(started_, true)) {
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
  const bool room = exchange_->write(block);
  exchange_->flush();
  return room;
}

void HttpChannel::finish() {
  exchange_->finish();
}

void HttpChannel::drop(const Error& /*error*/) {
  exchange_->abort();
}

void HttpChannel::on_close(Executor::Task task) {
  exchange_->on_close(std::move(task));
}

void HttpChannel::on_drain(Executor::Task task) {
  exchange_->on_drain(std::move(task));
}

}  // namespace sluice
