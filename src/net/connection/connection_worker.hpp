#pragma once

#include <array>
#include <atomic>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "core/executor.hpp"
#include "core/ref_ptr.hpp"
#include "core/sharing/client_memory.hpp"
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
  std::atomic<std::uint64_t> requests_total = 0;  // or lines
  std::atomic<std::uint64_t> bytes_in = 0;
  std::atomic<std::uint64_t> bytes_out = 0;
  std::atomic<std::uint64_t> unblocked = 0;  // times that a peer took some of what waited for it
  std::atomic<std::uint64_t> responses[5] = {};
  std::atomic<std::uint64_t> timeouts = 0;
  std::atomic<std::uint64_t> stalled = 0;
  std::atomic<std::uint64_t> queued_bytes = 0;

  /// Each counter has one writer, so that a plain add is enough.
  static void add(std::atomic<std::uint64_t>& counter, std::uint64_t by = 1) {
    counter.store(counter.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
  }
  static void subtract(std::atomic<std::uint64_t>& counter, std::uint64_t by = 1) {
    counter.store(counter.load(std::memory_order_relaxed) - by, std::memory_order_relaxed);
  }
};

/// Limits the work on input that the connections of a loop do in one turn, so that other tasks of
/// the loop are never much delayed. One unit is about what a byte of a request costs.
struct WorkLimits {
  std::size_t turn = std::size_t{1} << 20U;          // of all connections together
  std::size_t connection = std::size_t{128} << 10U;  // of each, before the next has its turn
};

/// The time that counts as one unit, for work whose cost is known only by the time it took.
inline constexpr Duration kCostTime = std::chrono::nanoseconds(4);

/// What a request or message costs besides its bytes, in units of work.
inline constexpr std::size_t kMessageCost = 2048;

/// The part of a server on one loop: its connections, the resources they share, and the order in
/// which they work. Belongs to its loop.
class ConnectionWorker : private Executor::TurnHook {
 public:
  struct Options {
    MemoryBudget* memory = nullptr;  // the budget of all buffers; null: there is no limit
    Duration tick = std::chrono::milliseconds(250);  // how often timeouts are checked
    const Clock* clock = nullptr;                    // for timeouts; null: the loop's
    WorkLimits work = {};
  };
  /// Stands for no worker.
  static constexpr std::uint16_t kNone = 0xFFFF;

  /// `sockets` is needed for connections over descriptors, and is then the same loop as `executor`.
  ConnectionWorker(Executor& executor, EventLoop* sockets, const Options& options);
  ~ConnectionWorker() override;
  ConnectionWorker(const ConnectionWorker&) = delete;
  ConnectionWorker& operator=(const ConnectionWorker&) = delete;

  /// Ends idle connections and lets the others finish.
  void drain();
  void drop_all();
  /// Ends the connections that have nothing left to send.
  void drop_quiet();
  [[nodiscard]] bool draining() const { return draining_; }
  [[nodiscard]] bool is_empty() const { return connections_ == nullptr; }

  // For connections.
  void add(Connection& connection);
  void remove(Connection& connection);
  /// At the end of the turn, destroys `task` without running it. What it holds may be on the stack
  /// until then.
  void release_later(Executor::Task task);
  /// Whether connections may do more work in this turn.
  [[nodiscard]] bool has_work_left() const { return work_left_ > 0; }
  /// Counts work that has been done.
  void worked(std::size_t cost);
  /// A connection begins to handle its input. To read the clock less often, a step is taken to
  /// begin where the one before has ended, unless interrupt_steps() was called in between.
  void begin_step();
  /// How long the step took, if one had begun. Another one begins.
  Duration end_step();
  /// What has just run may have taken long, and was no step.
  void interrupt_steps() { step_begun_.reset(); }
  /// Lets `connection` continue in a later turn. Clients take turns: those that connections are
  /// charged to, or else addresses. A connection that awaits its client stands for itself, unless
  /// it still has something to send. Connections in a TLS handshake come after all others, because
  /// a handshake can take as long as hundreds of requests.
  void wait_for_turn(Connection& connection);
  /// Whether connections wait for their turns, other than for TLS handshakes.
  [[nodiscard]] bool has_waiting() const { return !waiting_.waiting.empty(); }
  [[nodiscard]] const WorkLimits& work() const { return work_; }
  [[nodiscard]] TimePoint now() const { return clock_->now(); }
  /// The time of the last tick: precise enough for timeouts, and free.
  [[nodiscard]] TimePoint coarse_now() const { return coarse_now_; }
  void note_time() { coarse_now_ = clock_->now(); }

  // For the worker of a server that has several.
  [[nodiscard]] std::uint16_t number() const { return number_; }
  /// The number of the worker on that loop, or kNone.
  [[nodiscard]] std::uint16_t number_of(const Executor& its_loop) const;
  /// Moves `connection`, which is detached from this loop, to another worker.
  void give(Connection& connection, std::uint16_t worker);

  using Workers = std::vector<std::unique_ptr<ConnectionWorker>>;
  /// Gives this worker the number `number` among `workers`, which already has those before it, and
  /// must not change while their loops run.
  void join(const Workers& workers, std::uint16_t number);

  Executor& loop;
  EventLoop* const sockets;
  ServerCounters counters;
  BufferPool buffers;
  MemoryBudget* const memory;  // as in the options
  /// The share of that budget for connections that are not charged to a client, common to all
  /// workers of a server; null: there is no limit. Does not change after the first connection.
  std::shared_ptr<MemoryShare> nobodys_memory;

 private:
  /// The share that its connections are charged to, or its only connection, or its address.
  struct Client {
    const void* of = nullptr;
    std::array<std::uint8_t, 16> network{};
    auto operator<=>(const Client&) const = default;
  };
  struct Turns {
    std::map<Client, std::deque<RefPtr<Connection>>> waiting;  // no queue is empty
    std::size_t count = 0;                                     // of connections
    Client last;                                               // whose turn was last
  };

  void on_turn_end() override;
  void go_on(Turns& turns);
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
  Turns waiting_;
  Turns newcomers_;  // in a TLS handshake
  std::size_t work_left_;
  TimePoint coarse_now_;
  std::optional<TimePoint> step_begun_;  // nothing where a turn begins
  Executor::TimerId tick_timer_ = 0;
  bool draining_ = false;
};

}  // namespace sluice
