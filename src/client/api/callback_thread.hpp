#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

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

  void run(Job job);
  /// The same, unless there are `most` of them: then the oldest of those that wait is dropped.
  /// Returns whether that happened.
  bool run_at_most(Job job, std::size_t most);
  /// Drops what waits. Waits for what runs, unless called by that.
  void stop();

 private:
  struct Waiting {
    Job job;
    bool may_be_dropped;
  };
  /// What the thread uses, which may outlive this.
  struct Shared {
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<Waiting> waiting;
    std::size_t droppable = 0;
    bool is_over = false;
  };

  bool add(Job job, std::size_t most);
  static void work(const std::shared_ptr<Shared>& shared);

  std::shared_ptr<Shared> shared_;
  std::mutex thread_mutex_;
  std::thread thread_;
};

}  // namespace sluice
