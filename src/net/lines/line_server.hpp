#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "net/connection/connection_shares.hpp"
#include "net/connection/drain_watch.hpp"
#include "net/lines/line_protocol.hpp"
#include "net/loop/descriptor.hpp"
#include "net/loop/event_loop.hpp"
#include "net/loop/host_port.hpp"

namespace sluice {

struct LineServerOptions {
  LineOptions lines;               // of connections to a socket
  MemoryBudget* memory = nullptr;  // the budget of all buffers; null: there is no limit
  ConnectionLimits connections;    // to sockets; beyond: sends `too_many`, closes
  std::string too_many;            // a line with its end

  WorkLimits work = {};
  Duration tick = std::chrono::milliseconds(250);  // how often timeouts are checked
  const Clock* clock = nullptr;                    // for timeouts; null: the loop's
};

/// Statistics of a server: first gauges, then counters since the start.
struct LineServerStats {
  std::uint64_t connections = 0;
  std::uint64_t queued_bytes = 0;

  std::uint64_t connections_total = 0;
  std::uint64_t connections_rejected = 0;
  std::uint64_t lines_total = 0;
  std::uint64_t unblocked = 0;  // times that a peer took some of what waited for it
  std::uint64_t timeouts = 0;
  std::uint64_t stalled = 0;  // connections dropped because their peer did not read
};

/// A server of connections of lines on one or more event loops. All members but the destructor are
/// thread-safe. Destroy it after its loops have stopped.
class LineServer {
 public:
  /// services[i] serves the connections on loops[i], on the loop's thread. Loops and services must
  /// outlive the server.
  LineServer(const std::vector<EventLoop*>& loops, std::vector<LineService*> services,
             LineServerOptions options);
  ~LineServer();
  LineServer(const LineServer&) = delete;
  LineServer& operator=(const LineServer&) = delete;

  /// Accepts connections to a Unix domain socket and distributes them to the loops. Errors as
  /// UnixListener::listen().
  Result<void> listen(const std::string& path, mode_t mode);
  /// The same for a TCP port, which is returned. Connections must begin with JSON. Errors as
  /// listen_on().
  Result<std::uint16_t> listen(HostPort place);

  /// Serves one more connection, of the process's own user: over a pair of descriptors, or over
  /// `input` alone if `output` is empty. It has no timeout but end_timeout. `ended` runs on the
  /// first loop when the connection is over, or is destroyed with the loop.
  void adopt(Descriptor input, Descriptor output, Executor::Task ended);

  /// Stops accepting and reading, lets answers in flight finish within `limits`, then drops the
  /// remaining connections. `done` runs on the first loop when no connection is left. Call once.
  void shutdown(DrainLimits limits, Executor::Task done);

  [[nodiscard]] LineServerStats stats() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace sluice
