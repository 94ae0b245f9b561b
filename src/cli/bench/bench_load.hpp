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
  std::uint32_t slots = 1;  // units under way at the same time
  double rate = 0;          // units that become due a second; 0: as soon as a place is free
  Duration duration = std::chrono::seconds(10);  // in which units become due
  Duration grace = std::chrono::seconds(10);     // for the last ones to end
  bool clock_is_shared = false;                  // the server's t_ns can be compared with our clock
};

/// Keeps a server under load and measures it: starts units when they are due, in free places, and
/// counts what they bring.
///
/// Latency is counted from when a unit was due, not from when a place was free for it, so a server
/// that falls behind cannot hide that by slowing the load down (coordinated omission). Without a
/// rate a unit is due when its place becomes free. Belongs to one loop.
class BenchLoad {
 public:
  /// Begins a unit in a place, reporting to `sink`; its answer is dropped when the place's next one
  /// begins. Called on the loop.
  using Begin = std::function<void(std::uint32_t slot, AnswerSink& sink)>;

  BenchLoad(Executor& loop, BenchPlan plan, Begin begin);
  ~BenchLoad();
  BenchLoad(const BenchLoad&) = delete;
  BenchLoad& operator=(const BenchLoad&) = delete;

  /// Starts the load; `done` is called when all has ended, or the grace is over.
  void start(std::function<void()> done);
  /// Starts nothing more and reports what there is; `done` is called.
  void stop();

  /// The results so far.
  [[nodiscard]] const BenchResults& results();

 private:
  class Slot;

  [[nodiscard]] TimePoint now() const;
  /// When the unit of that number is due.
  [[nodiscard]] TimePoint due(std::uint64_t unit) const;
  /// Starts what is due in the places that are free, and arms the timer for the next.
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
  bool closed_ = false;    // no more units
  bool finished_ = false;  // `done` has been called
};

}  // namespace sluice
