#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "net/descriptor.hpp"
#include "net/event_loop.hpp"
#include "net/http_exchange.hpp"
#include "net/http_parser.hpp"
#include "net/http_server.hpp"
#include "net/input_buffer.hpp"

namespace sluice {

class Connection;

/// Counted on one loop, readable from any thread.
struct ServerCounters {
  std::atomic<std::uint64_t> connections = 0;
  std::atomic<std::uint64_t> parked = 0;
  std::atomic<std::uint64_t> websockets = 0;
  std::atomic<std::uint64_t> streaming_replies = 0;
  std::atomic<std::uint64_t> connections_total = 0;
  std::atomic<std::uint64_t> requests_total = 0;
  std::atomic<std::uint64_t> bytes_in = 0;
  std::atomic<std::uint64_t> bytes_out = 0;
  std::atomic<std::uint64_t> responses[5] = {};
  std::atomic<std::uint64_t> timeouts = 0;
  std::atomic<std::uint64_t> stalled = 0;
  std::atomic<std::uint64_t> queued_bytes = 0;

  /// Counters have one writer: a plain add is enough.
  static void add(std::atomic<std::uint64_t>& counter, std::uint64_t by = 1) {
    counter.store(counter.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
  }
  static void subtract(std::atomic<std::uint64_t>& counter, std::uint64_t by = 1) {
    counter.store(counter.load(std::memory_order_relaxed) - by, std::memory_order_relaxed);
  }
};

/// One loop's share of an HTTP server: its connections, and what they all use. Belongs to its
/// loop.
class ServerWorker final : private EventLoop::TurnHook {
 public:
  /// The workers of one server. They do not change while their loops run.
  using Workers = std::vector<std::unique_ptr<ServerWorker>>;
  /// The number of no worker.
  static constexpr std::uint16_t kNone = 0xFFFF;

  /// The worker is the next of `workers`, which outlive it.
  ServerWorker(EventLoop& event_loop, HttpHandler& http_handler,
               const HttpServerOptions& server_options, std::atomic<std::size_t>& total,
               const Workers& workers);
  ~ServerWorker() override;
  ServerWorker(const ServerWorker&) = delete;
  ServerWorker& operator=(const ServerWorker&) = delete;

  /// Takes over an accepted socket.
  void adopt(Descriptor socket, const PeerAddress& peer, TlsContext* tls);
  /// Answers an accepted socket with `reply` and ends it.
  void turn_away(Descriptor socket, const PeerAddress& peer, TlsContext* tls,
                 std::string_view reply);

  /// Closes what is idle and lets the rest finish.
  void drain();
  void drop_all();
  [[nodiscard]] bool draining() const { return draining_; }

  // For connections.
  void add(Connection& connection);
  void remove(Connection& connection);
  /// Destroys `task` at the end of the turn: what it holds may be on the stack.
  void release_later(Executor::Task task);
  /// Hands a connection that is nobody's any more, but for the list, to another worker.
  void give(Connection& connection, std::uint16_t worker);
  [[nodiscard]] std::uint16_t number() const { return number_; }
  /// The number of the worker on that loop, or kNone.
  [[nodiscard]] std::uint16_t number_of(const Executor& its_loop) const;
  [[nodiscard]] TimePoint now() const { return clock_->now(); }
  /// The time of the last tick: good enough for timeouts, free to ask.
  [[nodiscard]] TimePoint coarse_now() const { return coarse_now_; }

  EventLoop& loop;
  HttpHandler& handler;
  const HttpServerOptions& options;
  HttpHeadParser parser;
  ServerCounters counters;
  BufferPool buffers;
  std::string body;  // to decode a body into

 private:
  void on_turn_end() override;
  void tick();
  void schedule_tick();
  void unlist(Connection& connection);

  const Workers& workers_;
  const std::uint16_t number_;
  const Clock* clock_;
  std::atomic<std::size_t>& total_;
  Connection* connections_ = nullptr;  // intrusive list
  std::vector<Executor::Task> released_;
  TimePoint coarse_now_;
  Executor::TimerId tick_timer_ = 0;
  bool draining_ = false;
};

}  // namespace sluice
