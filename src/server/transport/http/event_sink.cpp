#include "server/transport/http/event_sink.hpp"

#include <string>

#include "rpc/message.hpp"

namespace sluice {

namespace {

void start_unbuffered(HttpExchange& exchange, std::string_view content_type) {
  exchange.start(200, content_type, std::span<const HeaderField>(kUnbufferedFields));
}

}  // namespace

void start_events(HttpExchange& exchange) {
  start_unbuffered(exchange, "text/event-stream");
}

void start_lines(HttpExchange& exchange) {
  start_unbuffered(exchange, "application/x-ndjson");
}

void EventSink::open(std::unique_ptr<Subscription> subscription, std::shared_ptr<void> with) {
  // The reader may have gone while the stream's loop was asked.
  if (!exchange_->is_open()) return;
  struct Kept {
    std::unique_ptr<Subscription> subscription;
    std::shared_ptr<void> with;
  };
  const auto kept = std::make_shared<Kept>(std::move(subscription), std::move(with));
  exchange_->on_close([kept] {
    kept->subscription.reset();
    kept->with.reset();
  });
  exchange_->on_drain([weak = std::weak_ptr(kept)] {
    if (const auto open = weak.lock(); open != nullptr && open->subscription != nullptr) {
      open->subscription->resume();
    }
  });
  start_events(*exchange_);
  // Something must be sent for the client to know that the stream is open.
  exchange_->write(std::string_view(": open\n\n"));
  kept->subscription->resume();
}

bool EventSink::write(std::string_view block) {
  const bool writable = exchange_->write(block);
  exchange_->flush();
  return writable;
}

bool EventSink::write(const Bytes& block) {
  const bool writable = exchange_->write(ChunkBlock::from_framed(block));
  exchange_->flush();
  return writable;
}

bool EventSink::take(std::string& block) {
  const bool writable = exchange_->take(block);
  exchange_->flush();
  return writable;
}

void EventSink::finish() {
  // The exchange's callbacks keep the subscription, and so this sink. They are destroyed with the
  // reply.
  const HttpExchangePtr exchange = exchange_;
  exchange->finish();
}

void EventSink::drop(const Error& error) {
  std::string event = "event: error\ndata: ";
  append_error(event, {}, error);
  event.append("\n\n");
  exchange_->write(std::string_view(event));
  finish();
}

}  // namespace sluice
