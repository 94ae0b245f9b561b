#include "net/http_server.hpp"

#include <utility>

#include "net/acceptor.hpp"
#include "net/drain_watch.hpp"
#include "net/server_worker.hpp"

namespace sluice {
namespace {

/// Connections beyond the limit that are told so at a time.
constexpr std::size_t kTurnedAway = 64;
constexpr std::string_view kTooMany =
    "HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain; charset=utf-8\r\n"
    "Content-Length: 60\r\nConnection: close\r\nRetry-After: 1\r\n\r\n"
    "The server has as many connections as it may; try it again.\n";

}  // namespace

class HttpServer::Impl {
 public:
  Impl(std::vector<EventLoop*> loops, std::vector<HttpHandler*> handlers,
       HttpServerOptions server_options)
      : memory(HttpServerOptions::kMemory), options(server_options), home(*loops.front()) {
    if (options.memory == nullptr) options.memory = &memory;
    for (std::size_t i = 0; i < loops.size(); ++i) {
      workers.push_back(
          std::make_unique<ServerWorker>(*loops[i], *handlers[i], options, connections, workers));
    }
  }

  /// On the home loop.
  void accept_from(Descriptor socket, const std::shared_ptr<TlsContext>& tls) {
    if (stopping) return;
    acceptors.push_back(std::make_unique<Acceptor>(
        home, std::move(socket),
        [this, tls](Descriptor accepted, const PeerAddress& peer) {
          take(std::move(accepted), peer, tls);
        },
        accept_errors));
  }

  /// Deals the connection out to the next worker.
  void take(Descriptor socket, const PeerAddress& peer, const std::shared_ptr<TlsContext>& tls) {
    ServerWorker& worker = *workers[next_worker];
    next_worker = (next_worker + 1) % workers.size();
    const std::size_t before = connections.fetch_add(1, std::memory_order_relaxed);
    const bool is_served = before < options.max_connections;
    if (!is_served) rejected.fetch_add(1, std::memory_order_relaxed);
    if (before >= options.max_connections + kTurnedAway) {
      // Too many even to be told so.
      connections.fetch_sub(1, std::memory_order_relaxed);
      return;
    }
    auto adopt = [&worker, is_served, peer, tls, socket = std::move(socket)]() mutable {
      if (is_served) {
        worker.adopt(std::move(socket), peer, tls.get());
      } else {
        worker.turn_away(std::move(socket), peer, tls.get(), kTooMany);
      }
    };
    if (worker.loop.on_loop_thread()) {
      adopt();
    } else {
      worker.loop.post(std::move(adopt));
    }
  }

  MemoryBudget memory;  // unless the options bring one
  HttpServerOptions options;
  EventLoop& home;
  std::vector<std::unique_ptr<ServerWorker>> workers;
  std::atomic<std::size_t> connections = 0;
  std::atomic<std::uint64_t> rejected = 0;
  std::atomic<std::uint64_t> accept_errors = 0;
  std::vector<std::unique_ptr<Acceptor>> acceptors;
  std::size_t next_worker = 0;
  bool stopping = false;
};

HttpServer::HttpServer(std::vector<EventLoop*> loops, std::vector<HttpHandler*> handlers,
                       HttpServerOptions options)
    : impl_(std::make_unique<Impl>(std::move(loops), std::move(handlers), options)) {}

HttpServer::~HttpServer() = default;

Result<std::uint16_t> HttpServer::listen(const std::string& host, std::uint16_t port,
                                         std::shared_ptr<TlsContext> tls) {
  Result<std::vector<Descriptor>> sockets = listen_on(host, port);
  if (!sockets) return std::unexpected(std::move(sockets.error()));
  impl_->home.post(
      [impl = impl_.get(), sockets = std::move(*sockets), tls = std::move(tls)]() mutable {
        for (Descriptor& socket : sockets) impl->accept_from(std::move(socket), tls);
      });
  return port;
}

void HttpServer::shutdown(TimePoint deadline, Executor::Task done) {
  impl_->home.post([impl = impl_.get(), deadline, done = std::move(done)]() mutable {
    impl->stopping = true;
    impl->acceptors.clear();
    for (const auto& worker : impl->workers) {
      worker->loop.post([&drained = *worker] { drained.drain(); });
    }
    watch_drain(
        impl->home, impl->connections, deadline,
        [impl] {
          for (const auto& worker : impl->workers) {
            worker->loop.post([&dropped = *worker] { dropped.drop_all(); });
          }
        },
        std::move(done));
  });
}

HttpServerStats HttpServer::stats() const {
  HttpServerStats stats;
  for (const auto& worker : impl_->workers) {
    const ServerCounters& c = worker->counters;
    const auto get = [](const std::atomic<std::uint64_t>& counter) {
      return counter.load(std::memory_order_relaxed);
    };
    stats.connections += get(c.connections);
    stats.parked += get(c.parked);
    stats.websockets += get(c.websockets);
    stats.streaming_replies += get(c.streaming_replies);
    stats.queued_bytes += get(c.queued_bytes);
    stats.connections_total += get(c.connections_total);
    stats.requests_total += get(c.requests_total);
    stats.bytes_in += get(c.bytes_in);
    stats.bytes_out += get(c.bytes_out);
    stats.timeouts += get(c.timeouts);
    stats.stalled += get(c.stalled);
    for (std::size_t i = 0; i < std::size(c.responses); ++i) {
      stats.responses[i] += get(c.responses[i]);
    }
  }
  stats.connections_rejected = impl_->rejected.load(std::memory_order_relaxed);
  stats.accept_errors = impl_->accept_errors.load(std::memory_order_relaxed);
  return stats;
}

}  // namespace sluice
