#pragma once

#include <memory>

#include "server/handlers/background_jobs.hpp"
#include "sluice/detail/loop_backend.hpp"

namespace sluice::detail {

/// A part of a coroutine run that can be given up by itself: the whole of it, or one of the tasks
/// that a branch of it runs at once. Belongs to the loop of the run.
class Branch {
 public:
  /// `outer`: what it is a part of, which outlives it; null for the whole.
  Branch(LoopBackend& loop, Branch* outer) : loop_(&loop), outer_(outer) {}
  Branch(const Branch&) = delete;
  Branch& operator=(const Branch&) = delete;

  [[nodiscard]] LoopBackend& loop() const { return *loop_; }

  /// Says which one runs on this thread, and returns which one has.
  static Branch* enter(Branch* branch) noexcept;

  /// Nothing of it goes on. False: its jobs still run, and the thread of the last calls `idle`.
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
  /// Waits until none runs.
  void join() {
    if (jobs_ != nullptr) jobs_->join();
  }

 private:
  LoopBackend* loop_;
  Branch* outer_;
  std::shared_ptr<BackgroundJobs> jobs_;  // if there were any
  bool stopped_ = false;
};

}  // namespace sluice::detail
