#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>
#include <thread>

#include "core/log/log_limit.hpp"

namespace sluice {

/// Runs a user's functions, which may block, one after another on a thread of its own, which
/// receives no signals. The thread starts with the first of them. Thread-safe.
class CallbackThread {
 public:
  using Job = std::move_only_function<void()>;

  CallbackThread() : shared_(std::make_shared<Shared>()) {}
  /// As stop().
  ~CallbackThread() { stop(); }
  CallbackThread(const CallbackThread&) = delete;
  CallbackThread& operator=(const CallbackThread&) = delete;

  /// `key`: for withdraw(); 0: the job is run in any case.
  void run(Job job, std::uint64_t key);
  /// What jobs may wait: how many, and the memory that they hold together.
  struct Room {
    std::size_t jobs;
    std::size_t bytes;
  };
  /// Drops the oldest jobs of this kind that wait, so that `room` is enough; `bytes` are the job's
  /// own. Returns whether it had to.
  bool run_within(const Room& room, Job job, std::size_t bytes);
  /// Drops the job with this key, or asks it to stop if it runs.
  void withdraw(std::uint64_t key);
  /// Drops what waits, but for jobs without a key, which it waits for. Asks what runs to stop and
  /// waits for it. If called by that, it waits for nothing and drops everything.
  void stop();
  /// Within a job: what asks it to stop. Elsewhere it has no state.
  static std::stop_source current();

 private:
  struct Waiting {
    Job job;
    std::uint64_t key = 0;
    bool may_be_dropped = false;
    std::size_t bytes = 0;
  };
  /// What the thread uses, which may outlive this.
  struct Shared {
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<Waiting> waiting;
    std::uint64_t running_key = 0;
    std::stop_source running{std::nostopstate};
    std::size_t droppable = 0;        // of those that wait
    std::size_t droppable_bytes = 0;  // that they hold
    bool is_over = false;
    LogLimit failures;
  };

  void start();
  static void work(const std::shared_ptr<Shared>& shared);

  std::shared_ptr<Shared> shared_;
  std::thread thread_;  // with the mutex
};

}  // namespace sluice
