#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <sys/epoll.h>
#include <thread>
#include <utility>
#include <vector>

#include "core/executor.hpp"
#include "core/turn_hooks.hpp"
#include "net/loop/descriptor.hpp"
#include "net/loop/timer_heap.hpp"

namespace sluice {

/// One thread's event loop over epoll. A turn is: the sockets that are ready, the timers that are
/// due, the posted tasks, then the turn-end hooks. Everything but post(), stop() and
/// on_loop_thread() belongs to the thread that calls run(), or to the owner before run().
class EventLoop final : public Executor {
 public:
  EventLoop();
  /// `clock` outlives the loop. One that is moved by hand makes a loop for tests, which is driven
  /// with poll() and next_timer().
  explicit EventLoop(const Clock& clock);
  ~EventLoop() override;
  EventLoop(const EventLoop&) = delete;
  EventLoop& operator=(const EventLoop&) = delete;

  /// Runs until stop(). Call once, from the thread that is to be the loop's.
  void run();
  /// Runs what is ready, without waiting; for tests and for loops driven from outside. Returns
  /// whether anything ran.
  bool poll();
  /// Destroys all posted and scheduled tasks without running them, and whatever their destructors
  /// post. Call after run() has returned, while everything the tasks refer to still exists.
  void discard_tasks();
  /// Makes run() return after the current turn. Thread-safe; may be called before run().
  void stop();

  /// A burst of posts from other threads wakes the loop once.
  void post(Task task) override;
  TimerId schedule_at(TimePoint when, Task task) override {
    return timers_.add(std::max(when, not_before_), std::move(task));
  }
  void cancel(TimerId id) override { timers_.remove(id); }
  [[nodiscard]] const Clock& clock() const override { return *clock_; }
  [[nodiscard]] bool on_loop_thread() const override;
  /// When the next timer is due.
  [[nodiscard]] std::optional<TimePoint> next_timer() const;

  /// Is told when a descriptor is ready.
  class Watcher {
   public:
    virtual ~Watcher() = default;
    /// `events` are epoll's (EPOLLIN, EPOLLOUT, EPOLLRDHUP, EPOLLHUP, EPOLLERR).
    virtual void on_ready(std::uint32_t events) = 0;
  };
  /// Calls `watcher` each time `descriptor` becomes ready (edge-triggered, epoll(7)). The watcher
  /// must then read or write until the kernel has no more. Throws std::system_error if the kernel
  /// cannot watch the descriptor.
  void watch(int descriptor, Watcher& watcher);
  /// Call before the descriptor is closed or the watcher destroyed.
  void unwatch(int descriptor, Watcher& watcher);

 private:
  bool run_turn(bool may_wait);
  bool wait_and_dispatch(bool may_wait);
  int wait(bool may_wait);
  /// Does `work`, and logs what it throws, so that the loop goes on.
  template <class Work>
  static void guarded(Work&& work) noexcept;
  void run_timers();
  bool run_tasks();
  void add_hook(TurnHook& hook) override { hooks_.add(hook); }
  void remove_hook(TurnHook& hook) override { hooks_.remove(hook); }
  [[nodiscard]] bool has_work() const { return !local_.empty() || !hooks_.empty(); }
  void wake();

  const Clock* clock_;
  Descriptor epoll_;
  Descriptor wake_event_;
  std::array<epoll_event, 128> events_;
  std::size_t event_at_ = 0;     // being dispatched
  std::size_t event_count_ = 0;  // of this turn
  bool has_pwait2_ = true;

  std::atomic<std::thread::id> thread_;
  std::atomic<bool> stopped_ = false;

  std::vector<Task> local_;
  std::vector<Task> running_;
  TurnHooks hooks_;

  std::mutex remote_mutex_;
  std::vector<Task> remote_;  // guarded by remote_mutex_
  std::vector<Task> remote_running_;
  std::atomic<bool> has_remote_ = false;
  std::atomic<bool> asleep_ = false;  // a post must wake the loop

  TimerHeap timers_;
  /// A timer that a timer schedules runs in a later turn, whatever its time.
  TimePoint not_before_ = TimePoint::min();
};

/// Event loops, one per thread. The threads start with start() and end with stop() or the
/// destructor, which join them.
class LoopPool {
 public:
  /// `count` 0 means one loop per core that this process may use.
  explicit LoopPool(std::size_t count = 0);
  ~LoopPool();
  LoopPool(const LoopPool&) = delete;
  LoopPool& operator=(const LoopPool&) = delete;

  void start();
  void stop();
  /// Between start() and stop(); for whoever calls them.
  [[nodiscard]] bool is_running() const { return !threads_.empty(); }
  /// Calls EventLoop::discard_tasks() on all loops. Call after stop().
  void discard_tasks();

  [[nodiscard]] std::size_t size() const { return loops_.size(); }
  [[nodiscard]] EventLoop& loop(std::size_t index) { return *loops_[index]; }
  [[nodiscard]] std::vector<EventLoop*> loops() const;
  /// Whether the caller is on the thread of one of them. Thread-safe.
  [[nodiscard]] bool on_loop_thread() const;

 private:
  std::vector<std::unique_ptr<EventLoop>> loops_;
  std::vector<std::thread> threads_;
};

}  // namespace sluice
