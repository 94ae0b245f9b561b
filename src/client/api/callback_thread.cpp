#include "client/api/callback_thread.hpp"

#include <algorithm>
#include <csignal>
#include <utility>
#include <vector>

#include "core/log/log.hpp"

namespace sluice {
namespace {

std::stop_source& stop_of_this_thread() {
  thread_local std::stop_source source(std::nostopstate);
  return source;
}

}  // namespace

std::stop_source CallbackThread::current() {
  return stop_of_this_thread();
}

void CallbackThread::run(Job job, std::uint64_t key) {
  const std::lock_guard lock(shared_->mutex);
  if (shared_->is_over) return;
  shared_->waiting.push_back({.job = std::move(job), .key = key});
  start();
}

bool CallbackThread::run_within(const Room& room, Job job, std::size_t bytes) {
  std::vector<Job> dropped;  // without the mutex
  {
    const std::lock_guard lock(shared_->mutex);
    if (shared_->is_over) return false;
    while (shared_->droppable > 0 &&
           (shared_->droppable >= room.jobs || shared_->droppable_bytes + bytes > room.bytes)) {
      const auto oldest = std::ranges::find(shared_->waiting, true, &Waiting::may_be_dropped);
      dropped.push_back(std::move(oldest->job));
      --shared_->droppable;
      shared_->droppable_bytes -= oldest->bytes;
      shared_->waiting.erase(oldest);
    }
    shared_->waiting.push_back({.job = std::move(job), .may_be_dropped = true, .bytes = bytes});
    ++shared_->droppable;
    shared_->droppable_bytes += bytes;
    start();
  }
  return !dropped.empty();
}

void CallbackThread::withdraw(std::uint64_t key) {
  // Both without the mutex.
  Job dropped;
  std::stop_source running(std::nostopstate);
  {
    const std::lock_guard lock(shared_->mutex);
    if (shared_->running_key == key) running = shared_->running;
    const auto found = std::ranges::find(shared_->waiting, key, &Waiting::key);
    if (found != shared_->waiting.end()) {
      dropped = std::move(found->job);
      shared_->waiting.erase(found);
    }
  }
  running.request_stop();
}

/// Has the thread look for jobs. With the mutex, so that a thread that is stopping never waits for
/// one that adds a job.
void CallbackThread::start() {
  shared_->changed.notify_one();
  if (thread_.joinable()) return;
  // A thread inherits the mask of the one that starts it, so there is no moment without it.
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_BLOCK, &all, &before);
  thread_ = std::thread([shared = shared_] { work(shared); });
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void CallbackThread::work(const std::shared_ptr<Shared>& shared) {
  std::unique_lock lock(shared->mutex);
  for (;;) {
    shared->changed.wait(lock, [&shared] { return shared->is_over || !shared->waiting.empty(); });
    if (shared->waiting.empty()) return;
    Waiting next = std::move(shared->waiting.front());
    shared->waiting.pop_front();
    if (next.may_be_dropped) {
      --shared->droppable;
      shared->droppable_bytes -= next.bytes;
    }
    shared->running_key = next.key;
    shared->running = std::stop_source();
    stop_of_this_thread() = shared->running;
    lock.unlock();
    try {
      next.job();
    } catch (...) {
      log_exception(shared->failures, "a function of a client has failed");
    }
    next.job = {};
    lock.lock();
    shared->running_key = 0;
    shared->running = std::stop_source(std::nostopstate);
  }
}

void CallbackThread::stop() {
  std::deque<Waiting> dropped;
  std::stop_source running(std::nostopstate);
  std::thread thread;
  bool is_own = false;
  {
    const std::lock_guard lock(shared_->mutex);
    thread.swap(thread_);
    is_own = thread.get_id() == std::this_thread::get_id();
    shared_->is_over = true;
    running = shared_->running;
    dropped.swap(shared_->waiting);
    for (Waiting& each : dropped) {
      if (!is_own && each.key == 0 && !each.may_be_dropped) {
        shared_->waiting.push_back(std::move(each));
      }
    }
  }
  shared_->changed.notify_all();
  running.request_stop();
  if (!thread.joinable()) return;
  if (is_own) {
    thread.detach();
  } else {
    thread.join();
  }
}

}  // namespace sluice
