#include "client/api/callback_thread.hpp"

#include <algorithm>
#include <csignal>
#include <exception>
#include <utility>

#include "core/error.hpp"
#include "core/log/log.hpp"

namespace sluice {

void CallbackThread::run(Job job) {
  add(std::move(job), 0);
}

bool CallbackThread::run_at_most(Job job, std::size_t most) {
  return add(std::move(job), most);
}

bool CallbackThread::add(Job job, std::size_t most) {
  Job dropped;
  {
    const std::lock_guard lock(shared_->mutex);
    if (shared_->is_over) return false;
    if (most > 0 && shared_->droppable >= most) {
      const auto oldest = std::ranges::find(shared_->waiting, true, &Waiting::may_be_dropped);
      dropped = std::move(oldest->job);
      shared_->waiting.erase(oldest);
      --shared_->droppable;
    }
    shared_->waiting.push_back({std::move(job), most > 0});
    if (most > 0) ++shared_->droppable;
  }
  shared_->changed.notify_one();
  const std::lock_guard lock(thread_mutex_);
  if (!thread_.joinable()) {
    // A thread inherits the mask of the one that starts it, so there is no moment without it.
    sigset_t all;
    sigset_t before;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_BLOCK, &all, &before);
    thread_ = std::thread([shared = shared_] { work(shared); });
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }
  return static_cast<bool>(dropped);
}

void CallbackThread::work(const std::shared_ptr<Shared>& shared) {
  std::unique_lock lock(shared->mutex);
  for (;;) {
    shared->changed.wait(lock, [&shared] { return shared->is_over || !shared->waiting.empty(); });
    if (shared->is_over) return;
    Waiting next = std::move(shared->waiting.front());
    shared->waiting.pop_front();
    if (next.may_be_dropped) --shared->droppable;
    lock.unlock();
    try {
      next.job();
    } catch (const std::exception& exception) {
      log_warning("a function of a client has failed", {{"why", what_of(exception)}});
    } catch (...) {
      log_warning("a function of a client has failed", {});
    }
    next.job = {};
    lock.lock();
  }
}

void CallbackThread::stop() {
  std::deque<Waiting> dropped;
  {
    const std::lock_guard lock(shared_->mutex);
    shared_->is_over = true;
    dropped.swap(shared_->waiting);
  }
  shared_->changed.notify_all();
  const std::lock_guard lock(thread_mutex_);
  if (!thread_.joinable()) return;
  if (thread_.get_id() == std::this_thread::get_id()) {
    thread_.detach();
  } else {
    thread_.join();
  }
}

}  // namespace sluice
