#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/client_memory.hpp"
#include "core/executor.hpp"
#include "core/ref_ptr.hpp"
#include "net/connection/input_buffer.hpp"

namespace sluice {

class Connection;
class EventLoop;

/// Counted on one loop, readable from any thread.
struct ServerCounters {
  std::atomic<std::uint64_t> connections = 0;
  std::atomic<std::uint64_t> parked = 0;
  std::atomic<std::uint64_t> websockets = 0;
  std::atomic<std::uint64_t> streaming_replies = 0;
  std::atomic<std::uint64_t> connections_total = 0;
  std::atomic<std::uint64_t> requests_total = 0;  // lines, where there are lines
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

/// How much work on input the connections of one loop do in one turn of it, so that what else runs
/// on the loop is never late by much. The unit is about what a byte of a request costs.
struct WorkLimits {
  std::size_t turn = std::size_t{1} << 20U;          // of all connections together
  std::size_t connection = std::size_t{128} << 10U;  // of each, before the next has its turn
};

/// What a unit takes, for work whose cost is known only by the time that it took.
inline constexpr Duration kCostTime = std::chrono::nanoseconds(4);

/// What a request or message costs besides its bytes.
inline constexpr std::size_t kMessageCost = 2048;

/// One loop's share of a server: its connections, what they all use, and whose turn it is. Belongs
/// to its loop.
class ConnectionWorker : private Executor::TurnHook {
 public:
  struct Options {
    MemoryBudget* memory = nullptr;  // what all buffers draw on; null: there is no limit
    Duration tick = std::chrono::milliseconds(250);  // how often timeouts are looked at
    const Clock* clock = nullptr;  // what timeouts are measured with; null: the loop's
    WorkLimits work = {};
  };
  /// The number of no worker.
  static constexpr std::uint16_t kNone = 0xFFFF;

  /// Connections over descriptors want `sockets`, which is then the same as `executor`.
  ConnectionWorker(Executor& executor, EventLoop* sockets, const Options& options);
  ~ConnectionWorker() override;
  ConnectionWorker(const ConnectionWorker&) = delete;
  ConnectionWorker& operator=(const ConnectionWorker&) = delete;

  /// Ends what is idle and lets the rest finish.
  void drain();
  void drop_all();
  /// Ends the connections that have nothing left to be sent.
  void drop_quiet();
  [[nodiscard]] bool draining() const { return draining_; }
  [[nodiscard]] bool is_empty() const { return connections_ == nullptr; }

  // For connections.
  void add(Connection& connection);
  void remove(Connection& connection);
  /// Destroys `task` at the end of the turn: what it holds may be on the stack.
  void release_later(Executor::Task task);
  /// Whether there is work left in this turn that a connection may do.
  [[nodiscard]] bool has_work_left() const { return work_left_ > 0; }
  /// Says that so much has been done.
  void worked(std::size_t cost);
  /// Lets `connection` go on with its input in a later turn, behind those that wait already.
  /// Handshakes come behind all others: one can take as long as hundreds of requests. Of them
  /// clients, by their addresses, have their turns.
  void wait_for_turn(Connection& connection);
  [[nodiscard]] const WorkLimits& work() const { return work_; }
  [[nodiscard]] TimePoint now() const { return clock_->now(); }
  /// The time of the last tick: good enough for timeouts, free to ask.
  [[nodiscard]] TimePoint coarse_now() const { return coarse_now_; }
  void note_time() { coarse_now_ = clock_->now(); }

  // For the worker of a server that has several.
  [[nodiscard]] std::uint16_t number() const { return number_; }
  /// The number of the worker on that loop, or kNone.
  [[nodiscard]] std::uint16_t number_of(const Executor& its_loop) const;
  /// Hands a connection that is nobody's any more, but for the list, to another worker.
  void give(Connection& connection, std::uint16_t worker);

  using Workers = std::vector<std::unique_ptr<ConnectionWorker>>;
  /// Makes this the worker `number` of `workers`, which has those before it, and does not change
  /// while their loops run.
  void join(const Workers& workers, std::uint16_t number);

  Executor& loop;
  EventLoop* const sockets;
  ServerCounters counters;
  BufferPool buffers;
  MemoryBudget* const memory;  // as in the options
  /// What connections have of it that are no client's yet, of all workers of one server together;
  /// null: there is no limit. Settled before the first connection.
  std::shared_ptr<MemoryShare> nobodys_memory;

 private:
  using Queue = std::deque<RefPtr<Connection>>;

  void on_turn_end() override;
  void go_on_with_waiting();
  void go_on_with_newcomers();
  void tick();
  void schedule_tick();
  void unlist(Connection& connection);

  const WorkLimits work_;
  const Duration tick_every_;
  const Clock* clock_;
  const Workers* workers_ = nullptr;
  std::uint16_t number_ = 0;
  Connection* connections_ = nullptr;  // intrusive list, each with a reference
  std::vector<Executor::Task> released_;
  Queue waiting_;
  std::map<std::string, Queue, std::less<>> newcomers_;  // in a TLS handshake; none is empty
  std::string last_newcomer_;                            // whose turn was last
  std::size_t work_left_;
  TimePoint coarse_now_;
  Executor::TimerId tick_timer_ = 0;
  bool draining_ = false;
};

}  // namespace sluice
