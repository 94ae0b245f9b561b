#include "net/event_loop.hpp"

#include <sched.h>
#include <utility>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>

namespace sluice {
namespace asio = boost::asio;

EventLoop::EventLoop() : context_(1), work_(context_.get_executor()), timer_(context_) {}

EventLoop::~EventLoop() = default;

void EventLoop::run() {
  thread_.store(std::this_thread::get_id(), std::memory_order_relaxed);
  if (!stopped_.load()) context_.run();
}

bool EventLoop::poll() {
  thread_.store(std::this_thread::get_id(), std::memory_order_relaxed);
  return context_.poll() > 0;
}

void EventLoop::stop() {
  stopped_.store(true);
  context_.stop();
}

bool EventLoop::on_loop_thread() const {
  return thread_.load(std::memory_order_relaxed) == std::this_thread::get_id();
}

void EventLoop::post(Task task) {
  if (on_loop_thread()) {
    local_.push_back(std::move(task));
    if (!running_tasks_) ensure_drain();
    return;
  }
  {
    const std::lock_guard lock(remote_mutex_);
    remote_.push_back(std::move(task));
    if (std::exchange(wake_sent_, true)) return;
  }
  asio::post(context_, [this] { drain(); });
}

void EventLoop::ensure_drain() {
  if (std::exchange(drain_queued_, true)) return;
  // Behind the events that this turn's poll has found already.
  asio::post(context_, [this] {
    drain_queued_ = false;
    drain();
  });
}

void EventLoop::drain() {
  {
    const std::lock_guard lock(remote_mutex_);
    wake_sent_ = false;
    remote_running_.swap(remote_);
  }
  running_tasks_ = true;
  for (Task& task : remote_running_) task();
  remote_running_.clear();
  // What these tasks post in their turn (a stream's flush) still belongs to this one, but no more
  // than that: work that keeps posting itself must not keep output back.
  for (int round = 0; round < 2; ++round) {
    running_.swap(local_);
    for (Task& task : running_) task();
    running_.clear();
  }
  running_tasks_ = false;
  if (!local_.empty()) ensure_drain();
  run_hooks();
}

void EventLoop::at_turn_end(TurnHook& hook) {
  if (std::exchange(hook.queued_, true)) return;
  hooks_.push_back(&hook);
  if (!running_tasks_) ensure_drain();
}

void EventLoop::forget(TurnHook& hook) {
  if (!std::exchange(hook.queued_, false)) return;
  for (TurnHook*& queued : hooks_) {
    if (queued == &hook) queued = nullptr;
  }
  for (TurnHook*& queued : running_hooks_) {
    if (queued == &hook) queued = nullptr;
  }
}

void EventLoop::run_hooks() {
  running_hooks_.swap(hooks_);
  for (std::size_t i = 0; i < running_hooks_.size(); ++i) {
    TurnHook* const hook = std::exchange(running_hooks_[i], nullptr);
    if (hook == nullptr) continue;
    hook->queued_ = false;
    hook->on_turn_end();
  }
  running_hooks_.clear();
}

Executor::TimerId EventLoop::schedule_at(TimePoint when, Task task) {
  const TimerId id = ++last_timer_;
  timers_.emplace(id, std::move(task));
  due_.push({when, id});
  if (when < armed_for_) arm_timer();
  return id;
}

void EventLoop::cancel(TimerId id) {
  if (id == 0 || timers_.erase(id) == 0) return;
  // Cancelled entries stay in the heap until they are due; many of them are swept out at once.
  static constexpr std::size_t kSweepAt = 1024;
  if (due_.size() < kSweepAt || due_.size() < 4 * timers_.size()) return;
  std::vector<Due> kept;
  kept.reserve(timers_.size());
  while (!due_.empty()) {
    if (timers_.contains(due_.top().id)) kept.push_back(due_.top());
    due_.pop();
  }
  due_ = std::priority_queue<Due, std::vector<Due>, std::greater<>>({}, std::move(kept));
}

void EventLoop::arm_timer() {
  armed_for_ = due_.top().when;
  timer_.expires_at(std::chrono::time_point_cast<std::chrono::steady_clock::duration>(armed_for_));
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (!error) run_timers();
  });
}

void EventLoop::run_timers() {
  armed_for_ = TimePoint::max();
  const TimePoint now = clock_.now();
  while (!due_.empty() && due_.top().when <= now) {
    const TimerId id = due_.top().id;
    due_.pop();
    if (auto timer = timers_.extract(id)) timer.mapped()();
  }
  while (!due_.empty() && !timers_.contains(due_.top().id)) due_.pop();
  if (!due_.empty() && due_.top().when < armed_for_) arm_timer();
}

namespace {

std::size_t usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return static_cast<std::size_t>(CPU_COUNT(&set));
}

}  // namespace

LoopPool::LoopPool(std::size_t count) {
  if (count == 0) count = usable_cores();
  for (std::size_t i = 0; i < count; ++i) loops_.push_back(std::make_unique<EventLoop>());
}

LoopPool::~LoopPool() {
  stop();
}

void LoopPool::start() {
  for (const auto& loop : loops_) {
    threads_.emplace_back([&event_loop = *loop] { event_loop.run(); });
  }
}

void LoopPool::stop() {
  for (const auto& loop : loops_) loop->stop();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

std::vector<EventLoop*> LoopPool::loops() const {
  std::vector<EventLoop*> result;
  for (const auto& loop : loops_) result.push_back(loop.get());
  return result;
}

}  // namespace sluice
