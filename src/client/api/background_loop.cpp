#include "client/api/background_loop.hpp"

#include <atomic>
#include <csignal>
#include <mutex>
#include <pthread.h>

namespace sluice {
namespace {

std::mutex loop_mutex;  // of known_loop; no fork happens while it is held
std::weak_ptr<BackgroundLoop> known_loop;
thread_local bool is_thread_of_loop = false;
std::atomic<std::uint64_t> forks = 0;  // that have led to this process since the first loop

void count_forks() {
  static const int registered =
      ::pthread_atfork([] { loop_mutex.lock(); }, [] { loop_mutex.unlock(); },
                       [] {
                         ++forks;
                         loop_mutex.unlock();
                       });
  static_cast<void>(registered);
}

}  // namespace

std::shared_ptr<BackgroundLoop> BackgroundLoop::shared() {
  count_forks();
  const std::lock_guard lock(loop_mutex);
  std::shared_ptr<BackgroundLoop> loop = known_loop.lock();
  if (loop == nullptr || loop->is_of_parent()) {
    loop = std::make_shared<BackgroundLoop>();
    known_loop = loop;
  }
  return loop;
}

bool BackgroundLoop::is_current() {
  return is_thread_of_loop;
}

bool BackgroundLoop::is_of_parent() const {
  return forks_ != forks;
}

BackgroundLoop::BackgroundLoop() : forks_(forks), loop_(std::make_shared<EventLoop>()) {
  // A thread inherits the mask of the one that starts it, so there is no moment without it.
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_BLOCK, &all, &before);
  thread_ = std::thread([loop = loop_] {
    is_thread_of_loop = true;
    loop->run();
    loop->discard_tasks();
  });
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

BackgroundLoop::~BackgroundLoop() {
  loop_->stop();
  if (loop_->on_loop_thread()) {
    thread_.detach();
  } else {
    thread_.join();
  }
}

}  // namespace sluice
