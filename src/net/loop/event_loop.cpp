#include "net/loop/event_loop.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <pthread.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <system_error>
#include <unistd.h>
#include <utility>

#include "core/log/log.hpp"
#include "core/log/log_limit.hpp"
#include "core/retry_allocation.hpp"

namespace sluice {
namespace {

/// Rounds of posted tasks in one turn. What the tasks of a turn post (a stream's flush) still runs
/// in it, but work that keeps posting itself must not delay the output.
constexpr int kTaskRounds = 2;

const SteadyClock kSteadyClock;

/// Whether this thread runs a loop, which must not be blocked.
thread_local bool is_loop_thread = false;

int checked(int result, const char* what) {
  if (result < 0) throw std::system_error(errno, std::generic_category(), what);
  return result;
}

}  // namespace

EventLoop::EventLoop() : EventLoop(kSteadyClock) {}

EventLoop::EventLoop(const Clock& clock)
    : clock_(&clock),
      epoll_(checked(::epoll_create1(EPOLL_CLOEXEC), "epoll_create1")),
      wake_event_(checked(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC), "eventfd")) {
  epoll_event event{.events = EPOLLIN | EPOLLET, .data = {.ptr = nullptr}};
  checked(::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, wake_event_.get(), &event), "epoll_ctl");
}

EventLoop::~EventLoop() {
  // The destructors of what the tasks hold may still call this loop.
  discard_tasks();
}

void EventLoop::discard_tasks() {
  for (Task task; timers_.take_due(TimePoint::max(), task);) task = {};
  for (;;) {
    std::vector<Task> posted = std::exchange(local_, {});
    if (posted.empty()) {
      // Other threads may still post.
      const std::lock_guard lock(remote_mutex_);
      posted.swap(remote_);
    }
    if (posted.empty()) return;
  }
}

void EventLoop::run() {
  thread_.store(std::this_thread::get_id(), std::memory_order_relaxed);
  is_loop_thread = true;
  while (!stopped_.load()) run_turn(true);
}

bool EventLoop::poll() {
  thread_.store(std::this_thread::get_id(), std::memory_order_relaxed);
  return run_turn(false);
}

void EventLoop::stop() {
  stopped_.store(true);
  wake();
}

bool EventLoop::on_loop_thread() const {
  return thread_.load(std::memory_order_relaxed) == std::this_thread::get_id();
}

std::optional<TimePoint> EventLoop::next_timer() const {
  if (timers_.empty()) return std::nullopt;
  return timers_.next();
}

void EventLoop::wake() {
  // The event is edge-triggered, so nobody needs to read it.
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(wake_event_.get(), &one, sizeof one);
}

void EventLoop::post(Task task) {
  if (on_loop_thread()) {
    local_.push_back(std::move(task));
    return;
  }
  const auto add = [&] {
    const std::lock_guard lock(remote_mutex_);
    remote_.push_back(std::move(task));  // if it throws, `task` is as before
    has_remote_.store(true);
  };
  if (is_loop_thread) {
    add();
  } else {
    retry_allocation(add);
  }
  // No wake-up is lost: the loop sets asleep_ and then looks for tasks; a poster adds a task and
  // then looks at asleep_.
  if (asleep_.exchange(false)) wake();
}

void EventLoop::watch(int descriptor, Watcher& watcher) {
  epoll_event event{.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, .data = {.ptr = &watcher}};
  checked(::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, descriptor, &event), "epoll_ctl");
}

void EventLoop::unwatch(int descriptor, Watcher& watcher) {
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, descriptor, nullptr);
  for (std::size_t i = event_at_; i < event_count_; ++i) {
    if (events_[i].data.ptr == &watcher) events_[i].data.ptr = nullptr;
  }
}

bool EventLoop::run_turn(bool may_wait) {
  bool ran = wait_and_dispatch(may_wait);
  if (!timers_.empty() && timers_.next() <= clock_->now()) {
    ran = true;
    run_timers();
  }
  ran |= run_tasks();
  ran |= !hooks_.empty();
  // If one throws, those behind it run in the next turn.
  guarded([this] { hooks_.run(); });
  return ran;
}

bool EventLoop::wait_and_dispatch(bool may_wait) {
  event_count_ = static_cast<std::size_t>(std::max(0, wait(may_wait)));
  bool ran = false;
  for (event_at_ = 0; event_at_ < event_count_; ++event_at_) {
    const epoll_event& event = events_[event_at_];
    if (event.data.ptr == nullptr) continue;
    ran = true;
    guarded([&event] { static_cast<Watcher*>(event.data.ptr)->on_ready(event.events); });
  }
  event_count_ = 0;
  return ran;
}

/// Waits for the first event, but not beyond the next timer. Returns the number of events, or -1.
int EventLoop::wait(bool may_wait) {
  const int capacity = static_cast<int>(events_.size());
  if (!may_wait || has_work()) return ::epoll_wait(epoll_.get(), events_.data(), capacity, 0);
  Duration timeout = Duration::max();
  if (!timers_.empty()) timeout = std::max(Duration::zero(), timers_.next() - clock_->now());
  asleep_.store(true);
  if (has_remote_.load() || stopped_.load()) timeout = Duration::zero();
  int count = -1;
  const bool is_endless = timeout == Duration::max();
  if (has_pwait2_) {
    const auto seconds = std::chrono::floor<std::chrono::seconds>(timeout);
    const timespec limit{.tv_sec = seconds.count(), .tv_nsec = (timeout - seconds).count()};
    count = ::epoll_pwait2(epoll_.get(), events_.data(), capacity, is_endless ? nullptr : &limit,
                           nullptr);
    // Old kernels do not know the call, and system call filters (seccomp) may refuse it with any
    // error.
    has_pwait2_ = count >= 0 || errno == EINTR;
  }
  if (!has_pwait2_) {
    // epoll_wait() only knows whole milliseconds.
    static constexpr Duration kLongest = std::chrono::hours(1);
    const auto limit = std::chrono::ceil<std::chrono::milliseconds>(std::min(timeout, kLongest));
    count = ::epoll_wait(epoll_.get(), events_.data(), capacity,
                         is_endless ? -1 : static_cast<int>(limit.count()));
  }
  // A process that was stopped hears what has come meanwhile before its timers, which are late,
  // run.
  if (count < 0 && errno == EINTR) {
    count = ::epoll_wait(epoll_.get(), events_.data(), capacity, 0);
  }
  asleep_.store(false, std::memory_order_relaxed);
  return count;
}

/// What user code or a lack of memory throws ends one piece of work, not the loop.
template <class Work>
void EventLoop::guarded(Work&& work) noexcept {
  try {
    work();
  } catch (...) {
    static LogLimit limit;
    log_exception(limit, "A task of an event loop failed");
  }
}

void EventLoop::run_timers() {
  const TimePoint now = clock_->now();
  not_before_ = now + Duration(1);
  for (Task task; timers_.take_due(now, task);) guarded(task);
}

bool EventLoop::run_tasks() {
  bool ran = false;
  if (has_remote_.load(std::memory_order_acquire)) {
    {
      const std::lock_guard lock(remote_mutex_);
      has_remote_.store(false);
      remote_running_.swap(remote_);
    }
    ran = true;
    for (Task& task : remote_running_) guarded(task);
    remote_running_.clear();
  }
  for (int round = 0; round < kTaskRounds && !local_.empty(); ++round) {
    ran = true;
    running_.swap(local_);
    for (Task& task : running_) guarded(task);
    running_.clear();
  }
  return ran;
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
    threads_.emplace_back([&event_loop = *loop] {
      // Writing to a pipe whose reader has gone must be an error of write(2), not end the process.
      sigset_t pipes;
      sigemptyset(&pipes);
      sigaddset(&pipes, SIGPIPE);
      pthread_sigmask(SIG_BLOCK, &pipes, nullptr);
      event_loop.run();
    });
  }
}

void LoopPool::stop() {
  for (const auto& loop : loops_) loop->stop();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

void LoopPool::discard_tasks() {
  for (const auto& loop : loops_) loop->discard_tasks();
}

bool LoopPool::on_loop_thread() const {
  return std::ranges::any_of(loops_, [](const auto& loop) { return loop->on_loop_thread(); });
}

std::vector<EventLoop*> LoopPool::loops() const {
  std::vector<EventLoop*> result;
  for (const auto& loop : loops_) result.push_back(loop.get());
  return result;
}

}  // namespace sluice
