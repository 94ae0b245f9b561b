#include "server/worker_pool.hpp"

#include <algorithm>
#include <utility>

namespace sluice {

WorkerPool::WorkerPool(std::size_t threads, std::size_t max_waiting)
    : most_threads_(std::max<std::size_t>(threads, 1)), max_waiting_(max_waiting) {}

WorkerPool::~WorkerPool() {
  std::deque<Job> dropped;
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    dropped.swap(waiting_);
  }
  wake_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

bool WorkerPool::run(Job job) {
  const std::lock_guard lock(mutex_);
  if (stopped_ || waiting_.size() >= max_waiting_) return false;
  waiting_.push_back(std::move(job));
  if (waiting_.size() > idle_ && threads_.size() < most_threads_) {
    threads_.emplace_back([this] { work(); });
  }
  wake_.notify_one();
  return true;
}

void WorkerPool::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    ++idle_;
    wake_.wait(lock, [this] { return stopped_ || !waiting_.empty(); });
    --idle_;
    if (stopped_) return;
    Job job = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    job();
    job = nullptr;
    lock.lock();
  }
}

}  // namespace sluice
