#include "net/server/http_server.hpp"

#include <algorithm>
#include <utility>

#include "core/log/log.hpp"
#include "core/log/log_limit.hpp"
#include "net/connection/connection_server.hpp"
#include "net/connection/connection_shares.hpp"
#include "net/connection/socket_connection.hpp"
#include "net/loop/acceptor.hpp"
#include "net/server/http_worker.hpp"
#include "net/server/server_http.hpp"

namespace sluice {
namespace {

/// How many refused connections may be answered with 503 at the same time, and how many of them may
/// be of one client.
constexpr std::size_t kRefused = 64;
constexpr std::size_t kRefusedOfOne = 16;
constexpr std::string_view kTooMany =
    "HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain; charset=utf-8\r\n"
    "Content-Length: 60\r\nConnection: close\r\nRetry-After: 1\r\n\r\n"
    "The server is at its limit of connections; try again later.\n";

}  // namespace

class HttpServer::Impl {
 public:
  Impl(const std::vector<EventLoop*>& loops, const std::vector<HttpHandler*>& handlers,
       HttpServerOptions server_options)
      : memory(HttpServerOptions::kMemory), options(server_options), server(*loops.front()) {
    if (options.memory == nullptr) options.memory = &memory;
    for (std::size_t i = 0; i < loops.size(); ++i) {
      server.add_worker(std::make_unique<HttpWorker>(*loops[i], loops[i], *handlers[i], options));
    }
  }

  /// On the home loop.
  void accept_from(std::vector<Descriptor> sockets, std::shared_ptr<TlsContext> tls) {
    const auto own = std::make_shared<std::shared_ptr<TlsContext>>(std::move(tls));
    contexts.push_back(own);
    for (Descriptor& socket : sockets) {
      server.accept_from(std::move(socket),
                         [this, own](Descriptor accepted, const PeerAddress& peer) {
                           take(std::move(accepted), peer, *own);
                         });
    }
  }

  /// Passes the connection to the next worker, or refuses it.
  void take(Descriptor socket, const PeerAddress& peer, const std::shared_ptr<TlsContext>& tls) {
    const std::size_t before = server.connections();
    const ConnectionTicket::Count of_client = shares.of(peer, before);
    const bool is_refused = !shares.has_room(of_client, before);
    if (is_refused) {
      static LogLimit limit;
      rejected.fetch_add(1, std::memory_order_relaxed);
      if (const auto left_out = limit.take()) {
        log_warning(
            "a connection is refused: there are as many as there may be",
            {{"limit", before >= options.max_connections ? "http.max_connections"
                                                         : "http.max_connections_per_client"},
             {"peer", peer.to_string()},
             {"left_out", *left_out}});
      }
      // Too many even to be answered with 503.
      if (server.count()->refused.load() >= kRefused) return;
      if (shares.is_of_one(of_client) && of_client->refused.load() >= kRefusedOfOne) return;
    }
    auto& worker = static_cast<HttpWorker&>(server.next_worker());
    ConnectionTicket ticket(of_client, is_refused);
    auto serve = [this, &worker, is_refused, peer, tls, ticket = std::move(ticket),
                  socket = std::move(socket)]() mutable {
      worker.note_time();
      const RefPtr<Connection> connection(new SocketConnection(
          worker, options.output, std::move(socket), peer, tls.get(), std::move(ticket)));
      if (is_refused) {
        ServerHttp::reject(*connection, worker, kTooMany);
      } else {
        ServerHttp::begin(*connection, worker);
      }
    };
    if (worker.loop.on_loop_thread()) {
      serve();
    } else {
      worker.loop.post(std::move(serve));
    }
  }

  MemoryBudget memory;  // unless the options have one
  HttpServerOptions options;
  ConnectionServer server;
  std::atomic<std::uint64_t> rejected = 0;
  // For the home loop.
  ConnectionShares shares{server.count(),
                          {.all = options.max_connections,
                           .per_client = options.max_connections_per_client,
                           .stands_for_many = options.stands_for_many,
                           .counts_loopback = options.counts_loopback}};
  std::vector<std::shared_ptr<std::shared_ptr<TlsContext>>> contexts;  // of each place; null: none
};

HttpServer::HttpServer(const std::vector<EventLoop*>& loops,
                       const std::vector<HttpHandler*>& handlers, HttpServerOptions options)
    : impl_(std::make_unique<Impl>(loops, handlers, options)) {}

HttpServer::~HttpServer() = default;

Result<std::uint16_t> HttpServer::listen(HostPort place, std::shared_ptr<TlsContext> tls) {
  Result<std::vector<Descriptor>> sockets = listen_on(place);
  if (!sockets) return std::unexpected(std::move(sockets.error()));
  impl_->server.home().post(
      [impl = impl_.get(), sockets = std::move(*sockets), tls = std::move(tls)]() mutable {
        impl->accept_from(std::move(sockets), std::move(tls));
      });
  return place.port;
}

void HttpServer::replace_tls(std::shared_ptr<TlsContext> tls) {
  impl_->server.home().post([impl = impl_.get(), tls = std::move(tls)] {
    for (const auto& own : impl->contexts) {
      if (*own != nullptr) *own = tls;
    }
  });
}

void HttpServer::end_connections_with_replies() {
  for (std::size_t i = 0; i < impl_->server.workers(); ++i) {
    auto& worker = static_cast<HttpWorker&>(impl_->server.worker(i));
    worker.loop.post([&worker] { worker.keeps_connections = false; });
  }
}

void HttpServer::shutdown(DrainLimits limits, Executor::Task done) {
  impl_->server.shutdown(limits, {}, std::move(done));
}

HttpServerStats HttpServer::stats() const {
  HttpServerStats stats;
  for (std::size_t i = 0; i < impl_->server.workers(); ++i) {
    const ServerCounters& c = impl_->server.worker(i).counters;
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
    stats.unblocked += get(c.unblocked);
    stats.timeouts += get(c.timeouts);
    stats.stalled += get(c.stalled);
    for (std::size_t k = 0; k < std::size(c.responses); ++k) {
      stats.responses[k] += get(c.responses[k]);
    }
  }
  stats.connections_rejected = impl_->rejected.load(std::memory_order_relaxed);
  stats.accept_errors = impl_->server.accept_errors();
  return stats;
}

}  // namespace sluice
