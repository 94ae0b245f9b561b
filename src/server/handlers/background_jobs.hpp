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

/// The jobs that worker threads run for one branch of a coroutine. A job may refer to variables of
/// the branch, which must therefore not be destroyed before the last job has ended. Thread-safe.
class BackgroundJobs {
 public:
  /// `outer` has the jobs of the enclosing branch, which include these, or is null.
  explicit BackgroundJobs(std::shared_ptr<BackgroundJobs> outer) : outer_(std::move(outer)) {}

  /// Records that a job waits for a worker. `drop` removes it from the queue of the workers, or
  /// does nothing if it does not wait any more. Call only on the loop.
  void wait(std::uint64_t id, const std::function<void()>& drop) {
    {
      const std::lock_guard lock(mutex_);
      waiting_.emplace(id, drop);
    }
    if (outer_ != nullptr) outer_->wait(id, drop);
  }
  /// Records that the job does not wait any more.
  void forget(std::uint64_t id) {
    {
      const std::lock_guard lock(mutex_);
      waiting_.erase(id);
    }
    if (outer_ != nullptr) outer_->forget(id);
  }
  /// Called when the job is about to run. Returns false if the branch has ended and the job must
  /// not run.
  bool begin(std::uint64_t id) {
    forget(id);
    return begin();
  }
  /// Called when the job has run.
  void end() {
    uncount();
    if (outer_ != nullptr) outer_->end();
  }
  /// Lets no more jobs begin, and drops those that wait. Returns false if jobs still run; the
  /// thread of the last one then calls `idle`. Call only on the loop.
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
  /// Lets no more jobs begin, and blocks until none runs.
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
    // With the lock held, so that join() cannot return before this call has.
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
