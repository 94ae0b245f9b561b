#pragma once

#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <utility>

#include "core/executor.hpp"

namespace sluice {

/// The jobs of one coroutine that worker threads run. They may refer to what the coroutine has, so
/// it is not destroyed before the last of them has ended. Thread-safe.
class BackgroundJobs {
 public:
  /// A job is about to run. False: its coroutine is over, and it must not.
  bool begin() {
    const std::lock_guard lock(mutex_);
    if (closed_) return false;
    ++running_;
    return true;
  }
  /// It has run.
  void end() {
    const std::lock_guard lock(mutex_);
    if (--running_ > 0) return;
    // With the lock, so that the loop is there until join() returns.
    if (idle_) loop_->post(std::exchange(idle_, {}));
    ended_.notify_all();
  }
  /// Nothing begins any more. False: some still run, and `idle` is posted to `loop` after the last.
  bool close(Executor& loop, Executor::Task idle) {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    if (running_ == 0) return true;
    loop_ = &loop;
    idle_ = std::move(idle);
    return false;
  }
  /// Waits until none runs.
  void join() {
    std::unique_lock lock(mutex_);
    closed_ = true;
    ended_.wait(lock, [this] { return running_ == 0; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable ended_;
  std::size_t running_ = 0;
  bool closed_ = false;
  Executor* loop_ = nullptr;
  Executor::Task idle_;
};

}  // namespace sluice
