#include "net/line_server.hpp"

#include <atomic>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>

#include "net/acceptor.hpp"
#include "net/drain_watch.hpp"
#include "net/line_connection.hpp"
#include "net/unix_socket.hpp"

namespace sluice {

class LineServer::Impl {
 public:
  Impl(std::vector<EventLoop*> loops, std::vector<LineService*> line_services,
       LineServerOptions server_options)
      : options(std::move(server_options)),
        own(options.lines),
        home(*loops.front()),
        services(std::move(line_services)) {
    own.line_timeout = {};
    own.stall_timeout = {};
    for (EventLoop* loop : loops) {
      workers.push_back(
          std::make_unique<LineWorker>(*loop, options.tick, options.clock, options.memory));
    }
  }

  /// On the home loop.
  void accept_from(UnixListener listener) {
    if (stopping) return;
    acceptors.push_back(std::make_unique<Acceptor>(
        home, listener.take_socket(),
        [this](Descriptor socket, const PeerAddress& /*peer*/) { take(std::move(socket)); },
        accept_errors));
    listeners.push_back(std::move(listener));
  }

  /// Deals a connection out to the next worker.
  void take(Descriptor socket) {
    const Result<uid_t> user = peer_user(socket);
    if (!user) return;
    if (connections.load(std::memory_order_relaxed) >= options.max_connections) {
      rejected.fetch_add(1, std::memory_order_relaxed);
      ::send(socket.get(), options.too_many.data(), options.too_many.size(),
             MSG_DONTWAIT | MSG_NOSIGNAL);
      return;
    }
    const std::size_t index = next_worker;
    next_worker = (next_worker + 1) % workers.size();
    connections.fetch_add(1, std::memory_order_relaxed);
    workers[index]->loop.post([this, index, user = *user, socket = std::move(socket)]() mutable {
      serve(index, std::move(socket), {}, user, options.lines, {});
    });
  }

  /// On the worker's loop. The connection has been counted.
  void serve(std::size_t index, Descriptor input, Descriptor output, uid_t user,
             const LineOptions& lines, Executor::Task ended) {
    const RefPtr<LineConnection> connection(
        new LineConnection(*workers[index], std::move(input), std::move(output), lines,
                           [this, ended = std::move(ended)]() mutable {
                             connections.fetch_sub(1, std::memory_order_relaxed);
                             if (ended) ended();
                           }));
    connection->start(services[index]->open(connection, user));
  }

  LineServerOptions options;
  LineOptions own;  // of adopted connections
  EventLoop& home;
  std::vector<LineService*> services;
  std::vector<std::unique_ptr<LineWorker>> workers;
  std::atomic<std::size_t> connections = 0;
  std::atomic<std::uint64_t> rejected = 0;
  std::atomic<std::uint64_t> accept_errors = 0;
  std::vector<UnixListener> listeners;
  std::vector<std::unique_ptr<Acceptor>> acceptors;
  std::size_t next_worker = 0;
  bool stopping = false;
};

LineServer::LineServer(std::vector<EventLoop*> loops, std::vector<LineService*> services,
                       LineServerOptions options)
    : impl_(std::make_unique<Impl>(std::move(loops), std::move(services), std::move(options))) {}

LineServer::~LineServer() = default;

Result<void> LineServer::listen(const std::string& path, mode_t mode) {
  Result<UnixListener> listener = UnixListener::listen(path, mode);
  if (!listener) return std::unexpected(std::move(listener.error()));
  impl_->home.post([impl = impl_.get(), listener = std::move(*listener)]() mutable {
    impl->accept_from(std::move(listener));
  });
  return {};
}

void LineServer::adopt(Descriptor input, Descriptor output, Executor::Task ended) {
  impl_->connections.fetch_add(1, std::memory_order_relaxed);
  impl_->home.post([impl = impl_.get(), input = std::move(input), output = std::move(output),
                    ended = std::move(ended)]() mutable {
    impl->serve(0, std::move(input), std::move(output), ::getuid(), impl->own, std::move(ended));
  });
}

void LineServer::shutdown(TimePoint deadline, Executor::Task done) {
  impl_->home.post([impl = impl_.get(), deadline, done = std::move(done)]() mutable {
    impl->stopping = true;
    impl->acceptors.clear();
    impl->listeners.clear();
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

LineServerStats LineServer::stats() const {
  LineServerStats stats;
  for (const auto& worker : impl_->workers) {
    const LineWorker::Counters& c = worker->counters;
    const auto get = [](const std::atomic<std::uint64_t>& counter) {
      return counter.load(std::memory_order_relaxed);
    };
    stats.connections += get(c.connections);
    stats.queued_bytes += get(c.queued_bytes);
    stats.connections_total += get(c.connections_total);
    stats.lines_total += get(c.lines_total);
    stats.timeouts += get(c.timeouts);
    stats.stalled += get(c.stalled);
  }
  stats.connections_rejected = impl_->rejected.load(std::memory_order_relaxed);
  return stats;
}

}  // namespace sluice
