#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <queue>
#include <thread>
#include <unordered_map>
#include <vector>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include "core/executor.hpp"

namespace sluice {

/// One thread's event loop over an Asio io_context. A turn is: the socket events that are ready,
/// then the posted tasks, then the turn-end hooks. Everything but post(), stop() and
/// on_loop_thread() belongs to the thread that calls run(), or to the owner before run().
class EventLoop final : public Executor {
 public:
  using Timer =
      boost::asio::basic_waitable_timer<std::chrono::steady_clock,
                                        boost::asio::wait_traits<std::chrono::steady_clock>,
                                        boost::asio::io_context::executor_type>;

  EventLoop();
  ~EventLoop() override;
  EventLoop(const EventLoop&) = delete;
  EventLoop& operator=(const EventLoop&) = delete;

  /// Runs until stop(). Call once, from the thread that is to be the loop's.
  void run();
  /// Runs what is ready, without waiting; for tests and for loops driven from outside. Returns
  /// whether anything ran.
  bool poll();
  /// Makes run() return after the current turn. Thread-safe; may be called before run().
  void stop();

  /// A burst of posts from other threads wakes the loop once.
  void post(Task task) override;
  TimerId schedule_at(TimePoint when, Task task) override;
  void cancel(TimerId id) override;
  [[nodiscard]] const Clock& clock() const override { return clock_; }
  [[nodiscard]] bool on_loop_thread() const override;

  /// Work that is collected during a turn and done at its end, such as flushing sockets.
  class TurnHook {
   public:
    virtual ~TurnHook() = default;
    virtual void on_turn_end() = 0;

   private:
    friend class EventLoop;
    bool queued_ = false;
  };
  /// Calls `hook` once, when this turn's tasks have run. `hook` must outlive the turn or be
  /// withdrawn by forget().
  void at_turn_end(TurnHook& hook);
  void forget(TurnHook& hook);

  [[nodiscard]] boost::asio::io_context& context() { return context_; }

 private:
  struct Due {
    TimePoint when;
    TimerId id;
    bool operator>(const Due& other) const {
      return when != other.when ? when > other.when : id > other.id;
    }
  };

  void ensure_drain();
  void drain();
  void run_hooks();
  void arm_timer();
  void run_timers();

  SteadyClock clock_;
  boost::asio::io_context context_;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_;
  std::atomic<std::thread::id> thread_;
  std::atomic<bool> stopped_ = false;

  std::vector<Task> local_;
  std::vector<Task> running_;
  std::vector<TurnHook*> hooks_;
  std::vector<TurnHook*> running_hooks_;
  bool drain_queued_ = false;
  bool running_tasks_ = false;  // the hooks follow

  std::mutex remote_mutex_;
  std::vector<Task> remote_;  // guarded by remote_mutex_
  bool wake_sent_ = false;    // guarded by remote_mutex_
  std::vector<Task> remote_running_;

  Timer timer_;
  TimePoint armed_for_ = TimePoint::max();
  std::priority_queue<Due, std::vector<Due>, std::greater<>> due_;
  std::unordered_map<TimerId, Task> timers_;
  TimerId last_timer_ = 0;
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

  [[nodiscard]] std::size_t size() const { return loops_.size(); }
  [[nodiscard]] EventLoop& loop(std::size_t index) { return *loops_[index]; }
  [[nodiscard]] std::vector<EventLoop*> loops() const;

 private:
  std::vector<std::unique_ptr<EventLoop>> loops_;
  std::vector<std::thread> threads_;
};

}  // namespace sluice
