#pragma once

#include <memory>

#include "server/handlers/background_jobs.hpp"
#include "sluice/detail/loop_backend.hpp"

namespace sluice::detail {

/// A part of a coroutine run that can be given up separately: the whole run, or one of the tasks
/// that a branch runs concurrently. Belongs to the loop of the run.
class Branch {
 public:
  /// `outer` is the enclosing branch, which must outlive this one; null for the whole run.
  Branch(LoopBackend& loop, Branch* outer) : loop_(&loop), outer_(outer) {}
  Branch(const Branch&) = delete;
  Branch& operator=(const Branch&) = delete;

  [[nodiscard]] LoopBackend& loop() const { return *loop_; }

  /// Sets the branch that runs on this thread, and returns the one before. Both may be null.
  static Branch* enter(Branch* branch) noexcept;

  /// Stops the branch. Returns false if its jobs still run; the thread of the last one then calls
  /// `idle`.
  bool stop(Job idle) {
    stopped_ = true;
    return jobs_ == nullptr || jobs_->close(std::move(idle));
  }
  [[nodiscard]] bool stopped() const {
    return stopped_ || (outer_ != nullptr && outer_->stopped());
  }

  /// Its jobs on worker threads.
  const std::shared_ptr<BackgroundJobs>& jobs() {
    if (jobs_ == nullptr) {
      jobs_ = std::make_shared<BackgroundJobs>(outer_ == nullptr ? nullptr : outer_->jobs());
    }
    return jobs_;
  }
  /// Blocks until none of its jobs runs.
  void join() {
    if (jobs_ != nullptr) jobs_->join();
  }

 private:
  LoopBackend* loop_;
  Branch* outer_;
  std::shared_ptr<BackgroundJobs> jobs_;  // null if there were none
  bool stopped_ = false;
};

}  // namespace sluice::detail
