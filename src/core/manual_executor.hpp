#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "core/executor.hpp"
#include "core/turn_hooks.hpp"

namespace sluice {

/// An executor for tests: nothing runs until run() or advance() is called, on the caller's thread.
class ManualExecutor final : public Executor {
 public:
  void post(Task task) override {
    const std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
    posted_.notify_one();
  }

  TimerId schedule_at(TimePoint when, Task task) override {
    const TimerId id = ++last_timer_;
    timers_.emplace(std::pair(when, id), std::move(task));
    return id;
  }

  void cancel(TimerId id) override {
    std::erase_if(timers_, [id](const auto& timer) { return timer.first.second == id; });
  }

  [[nodiscard]] const Clock& clock() const override { return clock_; }
  [[nodiscard]] bool on_loop_thread() const override { return true; }

  /// Runs posted tasks and turn-end hooks, including those that they add, until none are left.
  /// Returns how many tasks ran.
  std::size_t run() {
    std::size_t ran = 0;
    for (;;) {
      Task task;
      {
        const std::lock_guard lock(mutex_);
        if (!tasks_.empty()) {
          task = std::move(tasks_.front());
          tasks_.pop_front();
        }
      }
      if (task) {
        task();
        ++ran;
      } else if (!hooks_.empty()) {
        hooks_.run();
      } else {
        return ran;
      }
    }
  }

  /// Moves the clock forward by `by`, and runs every timer and task that becomes due meanwhile, in
  /// order. Time also passes for tasks that do nothing but schedule timers that are due at once:
  /// each 1,000 of them in a row take twice as long as those before, at first a millisecond. So the
  /// clock may end up beyond `by`.
  void advance(Duration by) {
    const TimePoint until = clock_.now() + by;
    run();
    while (clock_.now() <= until && !timers_.empty() && timers_.begin()->first.first <= until) {
      auto timer = timers_.extract(timers_.begin());
      if (timer.key().first > clock_.now()) {
        clock_.advance(timer.key().first - clock_.now());
        at_once_ = 0;
      } else if (++at_once_ % kMostAtOnce == 0) {
        clock_.advance(std::chrono::milliseconds(1 << std::min(at_once_ / kMostAtOnce - 1, 30U)));
      }
      timer.mapped()();
      run();
    }
    if (clock_.now() < until) clock_.advance(until - clock_.now());
  }

  /// Moves the clock forward by `by` and runs nothing, as a task that blocks the loop does.
  void stall(Duration by) { clock_.advance(by); }

  /// Blocks until another thread has posted a task, but at most for `time` of the real clock.
  void wait(Duration time) {
    std::unique_lock lock(mutex_);
    posted_.wait_for(lock, time, [this] { return !tasks_.empty(); });
  }

  /// Whether a task has been posted that has not run.
  [[nodiscard]] bool has_tasks() {
    const std::lock_guard lock(mutex_);
    return !tasks_.empty();
  }
  [[nodiscard]] std::size_t timers() const { return timers_.size(); }
  /// When the next timer is due.
  [[nodiscard]] std::optional<TimePoint> next_timer() const {
    if (timers_.empty()) return std::nullopt;
    return timers_.begin()->first.first;
  }

 protected:
  void add_hook(TurnHook& hook) override { hooks_.add(hook); }
  void remove_hook(TurnHook& hook) override { hooks_.remove(hook); }

 private:
  static constexpr unsigned kMostAtOnce = 1000;

  ManualClock clock_;
  TurnHooks hooks_;
  std::mutex mutex_;
  std::condition_variable posted_;
  std::deque<Task> tasks_;
  std::map<std::pair<TimePoint, TimerId>, Task> timers_;
  TimerId last_timer_ = 0;
  unsigned at_once_ = 0;  // timers in a row that were due when they were scheduled
};

}  // namespace sluice
