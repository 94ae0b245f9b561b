#include "server/transport/http/sse_connection.hpp"

#include <utility>

#include "server/transport/http/event_sink.hpp"
#include "server/transport/http/http_fields.hpp"

namespace sluice {
namespace {

const PushedChunkEncoder& event_encoder() {
  static const PushedChunkEncoder encoder(sse_framing());
  return encoder;
}

}  // namespace

SseConnection::SseConnection(Service& service, const HttpRequest& request, HttpExchangePtr exchange,
                             Principal principal)
    : exchange_(std::move(exchange)),
      memory_(service.memory_of(principal.id)),
      connection_(std::make_shared<MessageConnection>(
          service, std::move(principal), event_encoder(),
          single_fields(request, service.first->definition().request_headers))) {
  connection_->attach(*this);
}

void SseConnection::open(std::unique_ptr<SseSessions::Entry> entry) {
  entry_ = std::move(entry);
  exchange_->on_close([self = shared_from_this()] { self->over(); });
  exchange_->on_drain([weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->on_drain();
  });
  start_events(*exchange_);
  exchange_->write("event: endpoint\ndata: messages?sessionId=" + entry_->id() + "\n\n");
}

void SseConnection::deliver(std::string_view message, Executor::Task handled) {
  const std::shared_ptr<SseConnection> keep = shared_from_this();
  if (connection_->has_capacity() && waiting_.empty()) {
    if (connection_->on_message(message, handled)) handled();
    return;
  }
  MemoryHold memory(memory_);
  if (memory.add(message.size())) {
    waiting_.push_back({std::string(message), std::move(handled), std::move(memory)});
  } else {
    end();
  }
}

void SseConnection::on_drain() {
  const std::shared_ptr<SseConnection> keep = shared_from_this();
  connection_->on_drain();
  while (is_open() && connection_->has_capacity() && !waiting_.empty()) {
    Waiting next = std::move(waiting_.front());
    waiting_.pop_front();
    if (connection_->on_kept_message(std::move(next.message), next.handled)) next.handled();
  }
}

bool SseConnection::send(std::string message) {
  std::string event;
  const std::size_t mark = sse_framing().begin(event);
  event.append(message);
  sse_framing().end(event, mark);
  return send_framed(event);
}

bool SseConnection::send_framed(std::string_view messages) {
  // Keeps this alive should the write lose the connection.
  const std::shared_ptr<SseConnection> keep = shared_from_this();
  return exchange_->write(messages);
}

void SseConnection::flush() {
  const std::shared_ptr<SseConnection> keep = shared_from_this();
  exchange_->flush();
}

bool SseConnection::push_framed(std::string_view messages) {
  const std::shared_ptr<SseConnection> keep = shared_from_this();
  const bool writable = exchange_->write(messages);
  exchange_->flush();
  return writable;
}

void SseConnection::close() {
  if (entry_ == nullptr) return;
  connection_->when_idle([weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->end();
  });
}

void SseConnection::end() {
  if (entry_ == nullptr) return;
  const std::shared_ptr<SseConnection> keep = shared_from_this();
  over();
  exchange_->finish();
}

void SseConnection::over() {
  entry_ = nullptr;
  const std::list<Waiting> dropped = std::exchange(waiting_, {});
  connection_->on_close();
}

}  // namespace sluice
