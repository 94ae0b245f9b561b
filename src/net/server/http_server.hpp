#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "core/sharing/memory_budget.hpp"
#include "net/connection/connection_worker.hpp"
#include "net/connection/drain_watch.hpp"
#include "net/connection/output_stage.hpp"
#include "net/http/http_date.hpp"
#include "net/http/http_exchange.hpp"
#include "net/io/tls.hpp"
#include "net/loop/event_loop.hpp"
#include "net/loop/host_port.hpp"

namespace sluice {

struct HttpServerOptions {
  static constexpr std::size_t kMemory = std::size_t{256} << 20U;

  std::size_t max_header_bytes = 16U << 10U;  // beyond: 431
  std::size_t max_headers = 100;              // beyond: 431; at most 250
  std::size_t max_uri = 8U << 10U;            // beyond: 414
  std::size_t max_body = 4U << 20U;           // also after decompression; beyond: 413
  std::size_t max_connections = 100'000;      // over all loops; beyond: 503 and close
  /// Of one address, which never has more than are free; beyond: 503 and close. 0: a quarter.
  std::size_t max_connections_per_client = 0;
  /// Whether an address stands for many clients, as a proxy's does. Then it has no limit of its
  /// own, and each request of a connection may be of another client. Called on every loop.
  std::function<bool(const PeerAddress&)> stands_for_many = {};
  /// Whether a loopback address has a limit of its own. It may be a proxy's.
  bool counts_loopback = false;
  std::size_t gzip_threshold = 4U << 10U;  // smaller replies are not compressed; 0: none is
  OutputLimits output;                     // of each connection
  MemoryBudget* memory = nullptr;          // the budget of all buffers; null: one of kMemory bytes

  Duration request_timeout = std::chrono::seconds(30);  // from a request's first byte to its last
  Duration idle_timeout = std::chrono::seconds(75);     // keep-alive without a request
  /// How often a silent event stream sends a comment. This makes proxies keep it open, and shows
  /// whether the peer has gone; 0: never.
  Duration event_keep_alive = std::chrono::seconds(15);
  /// How long neither side may send a byte before a reply that may become an event stream does so
  /// (HttpExchange::stream_if_silent()).
  Duration event_start = std::chrono::seconds(5);
  Duration ping_interval = std::chrono::seconds(30);  // WebSocket; two unanswered end it; 0: none

  WorkLimits work = {};
  Duration tick = std::chrono::milliseconds(250);  // how often timeouts are checked
  const Clock* clock = nullptr;                    // for timeouts; null: the loop's
  HttpDate::TimeOfDay time_of_day = std::chrono::system_clock::now;  // for Date
};

/// Statistics of a server: first gauges, then counters since the start.
struct HttpServerStats {
  std::uint64_t connections = 0;
  std::uint64_t parked = 0;
  std::uint64_t websockets = 0;
  std::uint64_t streaming_replies = 0;
  std::uint64_t queued_bytes = 0;

  std::uint64_t connections_total = 0;
  std::uint64_t connections_rejected = 0;
  std::uint64_t accept_errors = 0;
  std::uint64_t requests_total = 0;
  std::uint64_t bytes_in = 0;
  std::uint64_t bytes_out = 0;
  std::uint64_t unblocked = 0;      // times that a peer took some of what waited for it
  std::uint64_t responses[5] = {};  // by status class, 1xx to 5xx
  std::uint64_t timeouts = 0;
  std::uint64_t stalled = 0;  // connections dropped because their peer did not read
};

/// An HTTP/1.1 server on one or more event loops. One acceptor distributes new connections to the
/// loops in turn. listen(), stats() and shutdown() are thread-safe. Destroy it after its loops have
/// stopped.
class HttpServer {
 public:
  /// handlers[i] answers the requests on loops[i], on the loop's thread. Loops and handlers must
  /// outlive the server.
  HttpServer(const std::vector<EventLoop*>& loops, const std::vector<HttpHandler*>& handlers,
             HttpServerOptions options = {});
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  /// Starts to accept there too, with TLS if a context is given. Returns the port, or an error with
  /// the place and the reason (port in use, no such address, no permission).
  Result<std::uint16_t> listen(HostPort place, std::shared_ptr<TlsContext> tls = nullptr);

  /// Connections that come from now on use `tls`, in all places that were given a context.
  /// Connections that are open keep theirs. Thread-safe.
  void replace_tls(std::shared_ptr<TlsContext> tls);

  /// Every reply ends its connection from now on, so that clients connect elsewhere. Thread-safe.
  void end_connections_with_replies();

  /// Stops accepting, closes idle connections, answers 503 to requests that have arrived in part,
  /// lets replies in flight finish within `limits`, then drops the remaining connections. `done`
  /// runs on the first loop when no connection is left. Call once.
  void shutdown(DrainLimits limits, Executor::Task done = {});

  [[nodiscard]] HttpServerStats stats() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace sluice
