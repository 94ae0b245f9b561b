#include "engine/llama/preparation.hpp"

#include <pthread.h>
#include <utility>

namespace sluice {

Preparation::Preparation(const RequestPreparer& preparer, std::function<void(RunPtr)> done)
    : preparer_(preparer), done_(std::move(done)), thread_([this] { work(); }) {}

bool Preparation::put(RunPtr run) {
  {
    const std::lock_guard lock(mutex_);
    if (stopped_) return false;
    const auto place = run->place;
    queue_.push(place, std::move(run));
  }
  changed_.notify_one();
  return true;
}

void Preparation::release_cancelled() {
  hand_on([](const RunPtr& run) { return run->cancelled.load(); });
}

void Preparation::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  changed_.notify_one();
  {
    const std::lock_guard lock(join_mutex_);
    if (thread_.joinable()) thread_.join();
  }
  hand_on([](const RunPtr&) { return true; });
}

void Preparation::work() {
  pthread_setname_np(pthread_self(), "sluice-prepare");
  for (;;) {
    RunPtr run;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return stopped_ || !queue_.empty(); });
      if (stopped_) return;
      run = queue_.pop();
    }
    if (!run->cancelled) {
      auto prepared = preparer_.prepare(*std::move(run->request),
                                        run->continued == nullptr ? 0 : run->continued->size());
      if (prepared) {
        run->prepared = std::move(*prepared);
      } else {
        run->fault = std::move(prepared).error();
      }
    }
    run->request.reset();
    done_(std::move(run));
  }
}

void Preparation::hand_on(std::function<bool(const RunPtr&)> which) {
  // Still locked while they are passed on, so that stop() waits for that too.
  const std::lock_guard lock(mutex_);
  queue_.take_if(std::move(which), done_);
}

}  // namespace sluice
