#include "net/lines/line_server.hpp"

#include <atomic>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>

#include "core/log/log.hpp"
#include "core/log/log_limit.hpp"
#include "net/connection/connection_server.hpp"
#include "net/connection/descriptor_connection.hpp"
#include "net/connection/socket_connection.hpp"
#include "net/loop/acceptor.hpp"
#include "net/loop/unix_socket.hpp"

namespace sluice {

class LineServer::Impl {
 public:
  Impl(const std::vector<EventLoop*>& loops, std::vector<LineService*> line_services,
       LineServerOptions server_options)
      : options(std::move(server_options)),
        own(options.lines),
        over_tcp(options.lines),
        services(std::move(line_services)),
        server(*loops.front()) {
    own.line_timeout = {};
    own.output.stall_timeout = {};
    over_tcp.begins_with_json = true;
    for (EventLoop* loop : loops) {
      server.add_worker(
          std::make_unique<ConnectionWorker>(*loop, loop,
                                             ConnectionWorker::Options{.memory = options.memory,
                                                                       .tick = options.tick,
                                                                       .clock = options.clock,
                                                                       .work = options.work}));
    }
  }

  /// On the home loop.
  void accept_from(UnixListener listener) {
    if (server.is_stopping()) return;
    server.accept_from(listener.take_socket(),
                       [this](Descriptor socket, const PeerAddress& /*peer*/) {
                         const Result<uid_t> user = peer_user(socket);
                         if (user) take(std::move(socket), *user, server.count());
                       });
    listeners.push_back(std::move(listener));
  }
  void accept_from(std::vector<Descriptor> sockets) {
    for (Descriptor& socket : sockets) {
      server.accept_from(std::move(socket), [this](Descriptor accepted, const PeerAddress& peer) {
        // Nothing else tells that a silent peer has gone.
        const int on = 1;
        ::setsockopt(accepted.get(), SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
        take(std::move(accepted), peer, shares.of(peer, server.connections()));
      });
    }
  }

  /// Passes the connection to the next worker, or refuses it.
  void take(Descriptor socket, const LinePeer& peer, const ConnectionTicket::Count& of_client) {
    if (!shares.has_room(of_client, server.connections())) {
      static LogLimit limit;
      rejected.fetch_add(1, std::memory_order_relaxed);
      if (const auto left_out = limit.take()) {
        log_warning("a connection is refused: there are as many as there may be",
                    {{"limit", shares.is_of_one(of_client) ? "http.max_connections_per_client"
                                                           : "http.max_connections"},
                     {"left_out", *left_out}});
      }
      ::send(socket.get(), options.too_many.data(), options.too_many.size(),
             MSG_DONTWAIT | MSG_NOSIGNAL);
      return;
    }
    ConnectionWorker& worker = server.next_worker();
    worker.loop.post([this, &worker, peer, ticket = ConnectionTicket(of_client),
                      socket = std::move(socket)]() mutable {
      if (const auto* const address = std::get_if<PeerAddress>(&peer)) {
        begin(worker, over_tcp, peer,
              RefPtr<Connection>(new SocketConnection(worker, over_tcp.output, std::move(socket),
                                                      *address, nullptr, std::move(ticket))));
      } else {
        serve(worker, std::move(socket), {}, peer, options.lines, std::move(ticket), {});
      }
    });
  }

  /// On the worker's loop.
  void serve(ConnectionWorker& worker, Descriptor input, Descriptor output, const LinePeer& peer,
             const LineOptions& lines, ConnectionTicket ticket, Executor::Task ended) {
    begin(worker, lines, peer,
          RefPtr<Connection>(new DescriptorConnection(worker, lines.output, std::move(input),
                                                      std::move(output), std::move(ticket),
                                                      std::move(ended))));
  }
  void begin(ConnectionWorker& worker, const LineOptions& lines, const LinePeer& peer,
             const RefPtr<Connection>& connection) {
    LineProtocol::begin(*connection, *services[worker.number()], peer, lines);
  }

  LineServerOptions options;
  LineOptions own;       // of adopted connections
  LineOptions over_tcp;  // of connections to a port
  std::vector<LineService*> services;
  ConnectionServer server;
  ConnectionShares shares{server.count(), options.connections};  // for the home loop
  std::atomic<std::uint64_t> rejected = 0;
  std::vector<UnixListener> listeners;
};

LineServer::LineServer(const std::vector<EventLoop*>& loops, std::vector<LineService*> services,
                       LineServerOptions options)
    : impl_(std::make_unique<Impl>(loops, std::move(services), std::move(options))) {}

LineServer::~LineServer() = default;

Result<void> LineServer::listen(const std::string& path, mode_t mode) {
  Result<UnixListener> listener = UnixListener::listen(path, mode);
  if (!listener) return std::unexpected(std::move(listener.error()));
  impl_->server.home().post([impl = impl_.get(), listener = std::move(*listener)]() mutable {
    impl->accept_from(std::move(listener));
  });
  return {};
}

Result<std::uint16_t> LineServer::listen(HostPort place) {
  Result<std::vector<Descriptor>> sockets = listen_on(place);
  if (!sockets) return std::unexpected(std::move(sockets.error()));
  impl_->server.home().post([impl = impl_.get(), sockets = std::move(*sockets)]() mutable {
    impl->accept_from(std::move(sockets));
  });
  return place.port;
}

void LineServer::adopt(Descriptor input, Descriptor output, Executor::Task ended) {
  impl_->server.home().post(
      [impl = impl_.get(), input = std::move(input), output = std::move(output),
       ticket = ConnectionTicket(impl_->server.count()), ended = std::move(ended)]() mutable {
        impl->serve(impl->server.worker(0), std::move(input), std::move(output), ::getuid(),
                    impl->own, std::move(ticket), std::move(ended));
      });
}

void LineServer::shutdown(DrainLimits limits, Executor::Task done) {
  impl_->server.shutdown(
      limits, [impl = impl_.get()] { impl->listeners.clear(); }, std::move(done));
}

LineServerStats LineServer::stats() const {
  LineServerStats stats;
  for (std::size_t i = 0; i < impl_->server.workers(); ++i) {
    const ServerCounters& c = impl_->server.worker(i).counters;
    const auto get = [](const std::atomic<std::uint64_t>& counter) {
      return counter.load(std::memory_order_relaxed);
    };
    stats.connections += get(c.connections);
    stats.queued_bytes += get(c.queued_bytes);
    stats.unblocked += get(c.unblocked);
    stats.connections_total += get(c.connections_total);
    stats.lines_total += get(c.requests_total);
    stats.timeouts += get(c.timeouts);
    stats.stalled += get(c.stalled);
  }
  stats.connections_rejected = impl_->rejected.load(std::memory_order_relaxed);
  return stats;
}

}  // namespace sluice
