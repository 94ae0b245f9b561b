#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace sluice {

/// Threads for what must not run on an event loop. They start when there is work for them, and are
/// joined by the destructor, which drops what has not begun. Thread-safe.
class WorkerPool {
 public:
  using Job = std::move_only_function<void()>;

  /// At most `max_waiting` jobs wait for one of `threads` threads.
  WorkerPool(std::size_t threads, std::size_t max_waiting);
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  /// False if too many wait already; `job` is dropped. Jobs do not throw.
  bool run(Job job);

 private:
  void work();

  const std::size_t most_threads_;
  const std::size_t max_waiting_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Job> waiting_;
  std::vector<std::thread> threads_;
  std::size_t idle_ = 0;
  bool stopped_ = false;
};

}  // namespace sluice
