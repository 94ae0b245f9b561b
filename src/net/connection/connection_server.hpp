#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "net/connection/connection_ticket.hpp"
#include "net/connection/connection_worker.hpp"
#include "net/connection/drain_watch.hpp"
#include "net/loop/acceptor.hpp"
#include "net/loop/event_loop.hpp"

namespace sluice {

/// The part of a server that does not depend on the protocol: accepts connections on its first
/// loop, distributes them to its workers, and ends them. All workers must be added before the first
/// connection. From then on, members may be called only on the first loop, unless they are marked
/// as thread-safe. Destroy it after its loops have stopped.
class ConnectionServer {
 public:
  explicit ConnectionServer(EventLoop& home) : home_(home) {}
  ConnectionServer(const ConnectionServer&) = delete;
  ConnectionServer& operator=(const ConnectionServer&) = delete;

  [[nodiscard]] EventLoop& home() const { return home_; }
  void add_worker(std::unique_ptr<ConnectionWorker> worker);
  [[nodiscard]] std::size_t workers() const { return workers_.size(); }
  [[nodiscard]] ConnectionWorker& worker(std::size_t index) const { return *workers_[index]; }
  /// The worker for the next connection. The workers take turns.
  [[nodiscard]] ConnectionWorker& next_worker();

  /// Counts the open connections; a ConnectionTicket made from it adds one. Thread-safe.
  [[nodiscard]] const ConnectionTicket::Count& count() const { return connections_; }
  /// The number of open connections, without those that are refused. Thread-safe.
  [[nodiscard]] std::size_t connections() const {
    return connections_->open.load(std::memory_order_relaxed);
  }

  /// Accepts from `socket` until the server stops.
  void accept_from(Descriptor socket, Acceptor::Sink sink);
  [[nodiscard]] bool is_stopping() const { return is_stopping_; }
  /// Stops accepting, lets what is under way finish within `limits`, then drops the remaining
  /// connections. On the first loop, `stopped` runs as soon as accepting has stopped, and `done`
  /// when no connection is left. Thread-safe. Call once.
  void shutdown(DrainLimits limits, Executor::Task stopped, Executor::Task done);

  /// Thread-safe.
  [[nodiscard]] std::uint64_t accept_errors() const {
    return accept_errors_.load(std::memory_order_relaxed);
  }

 private:
  EventLoop& home_;
  const ConnectionTicket::Count connections_ = std::make_shared<ConnectionCount>();
  ConnectionWorker::Workers workers_;
  std::vector<std::unique_ptr<Acceptor>> acceptors_;
  std::atomic<std::uint64_t> accept_errors_ = 0;
  std::size_t next_worker_ = 0;
  bool is_stopping_ = false;
};

}  // namespace sluice
