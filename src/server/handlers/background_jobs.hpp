#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

namespace sluice {

/// The jobs of one branch of a coroutine that worker threads run. They may refer to what the branch
/// has, so it is not destroyed before the last of them has ended. Thread-safe.
class BackgroundJobs {
 public:
  /// `outer`: those of the branch that it is a part of, of which its jobs are too; or null.
  explicit BackgroundJobs(std::shared_ptr<BackgroundJobs> outer) : outer_(std::move(outer)) {}

  /// A job waits for a worker; `drop` takes it out of there, or does nothing if it does not wait
  /// any more. On the loop.
  void wait(std::uint64_t id, const std::function<void()>& drop) {
    {
      const std::lock_guard lock(mutex_);
      waiting_.emplace(id, drop);
    }
    if (outer_ != nullptr) outer_->wait(id, drop);
  }
  /// It does not wait any more.
  void forget(std::uint64_t id) {
    {
      const std::lock_guard lock(mutex_);
      waiting_.erase(id);
    }
    if (outer_ != nullptr) outer_->forget(id);
  }
  /// The job is about to run. False: its coroutine is over, and it must not.
  bool begin(std::uint64_t id) {
    forget(id);
    return begin();
  }
  /// It has run.
  void end() {
    uncount();
    if (outer_ != nullptr) outer_->end();
  }
  /// Nothing begins any more, and nothing waits. False: some still run, and the thread of the last
  /// calls `idle`. On the loop.
  bool close(std::move_only_function<void()> idle) {
    std::map<std::uint64_t, std::function<void()>> dropped;
    bool is_unused = false;
    {
      const std::lock_guard lock(mutex_);
      closed_ = true;
      dropped.swap(waiting_);
      is_unused = running_ == 0;
      if (!is_unused) idle_ = std::move(idle);
    }
    for (const auto& [id, drop] : dropped) {
      if (outer_ != nullptr) outer_->forget(id);
      drop();
    }
    return is_unused;
  }
  /// Waits until none runs.
  void join() {
    std::unique_lock lock(mutex_);
    closed_ = true;
    ended_.wait(lock, [this] { return running_ == 0; });
  }

 private:
  bool begin() {
    if (outer_ != nullptr && !outer_->begin()) return false;
    if (count()) return true;
    if (outer_ != nullptr) outer_->end();
    return false;
  }
  bool count() {
    const std::lock_guard lock(mutex_);
    if (closed_) return false;
    ++running_;
    return true;
  }
  void uncount() {
    const std::lock_guard lock(mutex_);
    if (--running_ > 0) return;
    // With the lock, so that what it calls is there until join() returns.
    if (idle_) std::exchange(idle_, {})();
    ended_.notify_all();
  }

  const std::shared_ptr<BackgroundJobs> outer_;
  std::mutex mutex_;
  std::condition_variable ended_;
  std::map<std::uint64_t, std::function<void()>> waiting_;  // by their ids
  std::size_t running_ = 0;
  bool closed_ = false;
  std::move_only_function<void()> idle_;
};

}  // namespace sluice
