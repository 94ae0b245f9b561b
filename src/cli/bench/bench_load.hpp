#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "cli/bench/bench_results.hpp"
#include "client/answer.hpp"
#include "core/executor.hpp"

namespace sluice {

struct BenchPlan {
  std::uint32_t slots = 1;  // how many units can run at the same time
  double rate = 0;          // units that become due per second; 0: one as soon as a place is free
  Duration duration = std::chrono::seconds(10);  // how long units become due
  Duration grace = std::chrono::seconds(10);     // how long the last ones may take to end
  bool clock_is_shared = false;                  // the server's t_ns can be compared with our clock
};

/// Keeps a server under load and measures it. Starts each unit when it is due and a place is free,
/// and counts what it receives.
///
/// Latency is measured from when a unit was due, not from when a place was free for it. So a server
/// that falls behind cannot hide it by slowing the load down (coordinated omission). Without a
/// rate, a unit is due when a place becomes free. Belongs to one loop.
class BenchLoad {
 public:
  /// Begins a unit in a slot; its answer is reported to `sink`. When the next unit begins in that
  /// slot, the previous answer is dropped. Called on the loop.
  using Begin = std::function<void(std::uint32_t slot, AnswerSink& sink)>;

  BenchLoad(Executor& loop, BenchPlan plan, Begin begin);
  ~BenchLoad();
  BenchLoad(const BenchLoad&) = delete;
  BenchLoad& operator=(const BenchLoad&) = delete;

  /// Starts the load. `done` is called when all units have ended or the grace period is over.
  void start(std::function<void()> done);
  /// Starts no more units, closes the results as they are, and calls `done`.
  void stop();

  /// The results so far.
  [[nodiscard]] const BenchResults& results();

 private:
  class Slot;

  [[nodiscard]] TimePoint now() const;
  /// When unit number `unit` is due.
  [[nodiscard]] TimePoint due(std::uint64_t unit) const;
  /// Starts the units that are due in the free places, and sets the timer for the next one.
  void advance();
  void on_free(Slot& slot);
  void finish();

  Executor* loop_;
  BenchPlan plan_;
  Begin begin_;
  std::function<void()> done_;
  std::vector<std::unique_ptr<Slot>> slots_;
  std::vector<Slot*> free_;
  BenchResults results_;
  TimePoint began_{};
  std::uint64_t next_unit_ = 0;
  Executor::TimerId timer_ = 0;
  Executor::TimerId end_timer_ = 0;
  bool advancing_ = false;
  bool closed_ = false;    // no more units are started
  bool finished_ = false;  // `done` has been called
};

}  // namespace sluice
