#include "net/server_worker.hpp"

#include <utility>
#include <vector>

#include "net/connection.hpp"

namespace sluice {
ServerWorker::ServerWorker(EventLoop& event_loop, HttpHandler& http_handler,
                           const HttpServerOptions& server_options, std::atomic<std::size_t>& total,
                           const Workers& workers)
    : loop(event_loop),
      handler(http_handler),
      options(server_options),
      parser({.header_bytes = server_options.max_header_bytes,
              .headers = server_options.max_headers,
              .uri = server_options.max_uri,
              .body = server_options.max_body}),
      buffers(server_options.memory),
      workers_(workers),
      number_(static_cast<std::uint16_t>(workers.size())),
      clock_(server_options.clock != nullptr ? server_options.clock : &event_loop.clock()),
      total_(total),
      coarse_now_(clock_->now()) {}

ServerWorker::~ServerWorker() {
  loop.cancel(tick_timer_);
  drop_all();
  loop.forget(*this);
}

void ServerWorker::adopt(Descriptor socket, const PeerAddress& peer, TlsContext* tls) {
  coarse_now_ = clock_->now();
  ServerCounters::add(counters.connections_total);
  const RefPtr<Connection> connection(new Connection(*this, std::move(socket), peer, tls));
  connection->start();
}

void ServerWorker::turn_away(Descriptor socket, const PeerAddress& peer, TlsContext* tls,
                             std::string_view reply) {
  const RefPtr<Connection> connection(new Connection(*this, std::move(socket), peer, tls));
  connection->turn_away(reply);
}

void ServerWorker::add(Connection& connection) {
  connection.next_ = connections_;
  if (connections_ != nullptr) connections_->previous_ = &connection;
  connections_ = &connection;
  // The list's reference; remove() gives it back.
  connection.add_reference();
  ServerCounters::add(counters.connections);
  if (tick_timer_ == 0) schedule_tick();
}

void ServerWorker::remove(Connection& connection) {
  unlist(connection);
  total_.fetch_sub(1, std::memory_order_relaxed);
  connection.release_reference();
}

void ServerWorker::unlist(Connection& connection) {
  if (connection.previous_ != nullptr) connection.previous_->next_ = connection.next_;
  if (connection.next_ != nullptr) connection.next_->previous_ = connection.previous_;
  if (connections_ == &connection) connections_ = connection.next_;
  connection.previous_ = nullptr;
  connection.next_ = nullptr;
  ServerCounters::subtract(counters.connections);
}

void ServerWorker::give(Connection& connection, std::uint16_t worker) {
  ServerWorker& taker = *workers_[worker];
  unlist(connection);
  RefPtr<Connection> given(&connection);
  connection.release_reference();
  taker.loop.post([&taker, given = std::move(given)] {
    taker.coarse_now_ = taker.clock_->now();
    given->arrive(taker);
  });
}

std::uint16_t ServerWorker::number_of(const Executor& its_loop) const {
  for (const auto& worker : workers_) {
    if (&worker->loop == &its_loop) return worker->number_;
  }
  return kNone;
}

void ServerWorker::schedule_tick() {
  tick_timer_ = loop.schedule_at(loop.clock().now() + options.tick, [this] { tick(); });
}

void ServerWorker::tick() {
  tick_timer_ = 0;
  coarse_now_ = clock_->now();
  std::uint64_t queued = 0;
  for (Connection* c = connections_; c != nullptr; c = c->next_) {
    queued += c->queued_bytes();
    c->tick(coarse_now_);
  }
  counters.queued_bytes.store(queued, std::memory_order_relaxed);
  if (connections_ != nullptr) schedule_tick();
}

void ServerWorker::drain() {
  draining_ = true;
  for (Connection* c = connections_; c != nullptr; c = c->next_) c->drain();
}

void ServerWorker::drop_all() {
  while (connections_ != nullptr) connections_->tear_down();
}

void ServerWorker::release_later(Executor::Task task) {
  released_.push_back(std::move(task));
  loop.at_turn_end(*this);
}

void ServerWorker::on_turn_end() {
  // What goes may release more.
  const std::vector<Executor::Task> gone = std::exchange(released_, {});
}

}  // namespace sluice
