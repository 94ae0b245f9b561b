#include "net/http_server.hpp"

#include <utility>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>

#include "net/server_worker.hpp"

namespace sluice {
namespace asio = boost::asio;
using tcp = asio::ip::tcp;
namespace {

/// How long the acceptor rests when the process has no descriptors left.
constexpr Duration kAcceptRest = std::chrono::milliseconds(100);
/// Connections beyond the limit that are told so at a time.
constexpr std::size_t kTurnedAway = 64;
constexpr std::string_view kTooMany =
    "HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain; charset=utf-8\r\n"
    "Content-Length: 60\r\nConnection: close\r\nRetry-After: 1\r\n\r\n"
    "The server has as many connections as it may; try it again.\n";

}  // namespace

class HttpServer::Impl {
 public:
  using Acceptor = asio::basic_socket_acceptor<tcp, asio::io_context::executor_type>;

  Impl(std::vector<EventLoop*> loops, std::vector<HttpHandler*> handlers,
       HttpServerOptions server_options)
      : options(server_options), home(*loops.front()) {
    for (std::size_t i = 0; i < loops.size(); ++i) {
      workers.push_back(
          std::make_unique<ServerWorker>(*loops[i], *handlers[i], options, connections));
    }
  }

  void accept(std::size_t listener) {
    ServerWorker& worker = *workers[next_worker];
    next_worker = (next_worker + 1) % workers.size();
    Listener& source = *listeners[listener];
    source.acceptor.async_accept(
        worker.loop.context(), [this, listener, &worker](const boost::system::error_code& error,
                                                         ServerWorker::Socket socket) {
          if (stopping || error == asio::error::operation_aborted) return;
          if (error) {
            accept_errors.fetch_add(1, std::memory_order_relaxed);
            home.schedule_at(home.clock().now() + kAcceptRest, [this, listener] {
              if (!stopping) accept(listener);
            });
            return;
          }
          take(worker, std::move(socket), listeners[listener]->tls);
          accept(listener);
        });
  }

  void take(ServerWorker& worker, ServerWorker::Socket socket, std::shared_ptr<TlsContext> tls) {
    boost::system::error_code ignored;
    const std::size_t before = connections.fetch_add(1, std::memory_order_relaxed);
    const bool is_served = before < options.max_connections;
    if (!is_served) rejected.fetch_add(1, std::memory_order_relaxed);
    if (before >= options.max_connections + kTurnedAway) {
      // Too many even to be told so.
      connections.fetch_sub(1, std::memory_order_relaxed);
      return;
    }
    socket.non_blocking(true, ignored);
    socket.set_option(tcp::no_delay(true), ignored);
    auto adopt = [&worker, is_served, socket = std::move(socket), tls = std::move(tls)]() mutable {
      if (is_served) {
        worker.adopt(std::move(socket), std::move(tls));
      } else {
        worker.turn_away(std::move(socket), std::move(tls), kTooMany);
      }
    };
    if (worker.loop.on_loop_thread()) {
      adopt();
    } else {
      worker.loop.post(std::move(adopt));
    }
  }

  struct Listener {
    Listener(asio::io_context& context, std::shared_ptr<TlsContext> context_tls)
        : acceptor(context), tls(std::move(context_tls)) {}
    Acceptor acceptor;
    std::shared_ptr<TlsContext> tls;
  };

  HttpServerOptions options;
  EventLoop& home;
  std::vector<std::unique_ptr<ServerWorker>> workers;
  std::vector<std::unique_ptr<Listener>> listeners;
  std::atomic<std::size_t> connections = 0;
  std::atomic<std::uint64_t> rejected = 0;
  std::atomic<std::uint64_t> accept_errors = 0;
  std::size_t next_worker = 0;
  bool stopping = false;
};

HttpServer::HttpServer(std::vector<EventLoop*> loops, std::vector<HttpHandler*> handlers,
                       HttpServerOptions options)
    : impl_(std::make_unique<Impl>(std::move(loops), std::move(handlers), options)) {}

HttpServer::~HttpServer() = default;

Result<std::uint16_t> HttpServer::listen(const std::string& host, std::uint16_t port,
                                         std::shared_ptr<TlsContext> tls) {
  const std::string where = host + ":" + std::to_string(port);
  boost::system::error_code error;
  tcp::resolver resolver(impl_->home.context());
  const auto found = resolver.resolve(
      host, std::to_string(port), tcp::resolver::passive | tcp::resolver::numeric_service, error);
  if (error || found.empty()) {
    return fail(1, "Cannot listen on " + where + ": no such address (" + error.message() + ")");
  }
  // A name may have several addresses, "localhost" one of each family. The first must do; the
  // others share its port if they are there.
  std::vector<std::unique_ptr<Impl::Listener>> bound;
  for (const auto& entry : found) {
    tcp::endpoint endpoint = entry.endpoint();
    if (!bound.empty()) endpoint.port(port);
    auto listener = std::make_unique<Impl::Listener>(impl_->home.context(), tls);
    Impl::Acceptor& acceptor = listener->acceptor;
    acceptor.open(endpoint.protocol(), error);
    if (!error) acceptor.set_option(asio::socket_base::reuse_address(true), error);
    if (!error) acceptor.bind(endpoint, error);
    if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
    if (!error) {
      port = acceptor.local_endpoint().port();
      bound.push_back(std::move(listener));
    } else if (bound.empty()) {
      break;
    }
  }
  if (bound.empty()) {
    if (error == asio::error::address_in_use) {
      return fail(1, "Cannot listen on " + where +
                         ": the port is taken; stop the other program or choose one with --port");
    }
    if (error == asio::error::access_denied) {
      return fail(1, "Cannot listen on " + where +
                         ": no permission for that port; choose one above 1023 with --port");
    }
    return fail(1, "Cannot listen on " + where + ": " + error.message());
  }
  // The list belongs to the home loop once that runs.
  asio::post(impl_->home.context(), [impl = impl_.get(), bound = std::move(bound)]() mutable {
    for (std::unique_ptr<Impl::Listener>& listener : bound) {
      impl->listeners.push_back(std::move(listener));
      impl->accept(impl->listeners.size() - 1);
    }
  });
  return port;
}

void HttpServer::shutdown(TimePoint deadline, Executor::Task done) {
  impl_->home.post([impl = impl_.get(), deadline, done = std::move(done)]() mutable {
    impl->stopping = true;
    boost::system::error_code ignored;
    for (const auto& listener : impl->listeners) listener->acceptor.close(ignored);
    for (const auto& worker : impl->workers) {
      worker->loop.post([&drained = *worker] { drained.drain(); });
    }
    // Looks again until nobody is left or time is up.
    struct Watch {
      static void look(Impl* impl, TimePoint deadline, std::shared_ptr<Executor::Task> done) {
        static constexpr Duration kLook = std::chrono::milliseconds(10);
        if (impl->connections.load(std::memory_order_relaxed) == 0) {
          if (*done) (*done)();
          return;
        }
        if (impl->home.clock().now() >= deadline) {
          for (const auto& worker : impl->workers) {
            worker->loop.post([&dropped = *worker] { dropped.drop_all(); });
          }
          deadline = TimePoint::max();
        }
        impl->home.schedule_at(impl->home.clock().now() + kLook,
                               [impl, deadline, done] { look(impl, deadline, done); });
      }
    };
    Watch::look(impl, deadline, std::make_shared<Executor::Task>(std::move(done)));
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
