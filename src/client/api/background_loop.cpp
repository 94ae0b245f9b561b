#include "client/api/background_loop.hpp"

#include <csignal>
#include <mutex>

namespace sluice {

std::shared_ptr<BackgroundLoop> BackgroundLoop::shared() {
  static std::mutex mutex;
  static std::weak_ptr<BackgroundLoop> known;
  const std::lock_guard lock(mutex);
  std::shared_ptr<BackgroundLoop> loop = known.lock();
  if (loop == nullptr) {
    loop = std::make_shared<BackgroundLoop>();
    known = loop;
  }
  return loop;
}

BackgroundLoop::BackgroundLoop() : loop_(std::make_shared<EventLoop>()) {
  // A thread inherits the mask of the one that starts it, so there is no moment without it.
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_BLOCK, &all, &before);
  thread_ = std::thread([loop = loop_] {
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
