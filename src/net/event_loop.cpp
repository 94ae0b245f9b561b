#include "net/event_loop.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <pthread.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <system_error>
#include <unistd.h>
#include <utility>

#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/basic_stream_descriptor.hpp>
#include <boost/asio/post.hpp>

namespace sluice {
namespace asio = boost::asio;
namespace {

/// Rounds of tasks that a turn runs: what its tasks post in their turn (a stream's flush) still
/// belongs to it, but work that keeps posting itself must not keep output back.
constexpr int kTaskRounds = 2;

int checked(int result, const char* what) {
  if (result < 0) throw std::system_error(errno, std::generic_category(), what);
  return result;
}

}  // namespace

/// Waits in Asio's place: the loop's own descriptors are one of Asio's, its next timer is one of
/// Asio's timers.
class EventLoop::Asio {
 public:
  explicit Asio(EventLoop& event_loop)
      : context(1), loop_(&event_loop), descriptors_(context), timer_(context) {}

  /// On the loop's thread, before the context is run for the first time.
  void start() {
    if (std::exchange(started_, true)) return;
    descriptors_.assign(checked(::dup(loop_->epoll_), "dup"));
    wait();
    after_turn();
  }

  void after_turn() {
    if (!started_) return;
    arm_timer();
    loop_->asleep_.store(true);
    if (loop_->has_work() || loop_->has_remote_.load()) post_turn();
  }

  /// Work came from outside a turn.
  void post_turn() {
    if (!started_ || std::exchange(turn_posted_, true)) return;
    asio::post(context, [this] {
      turn_posted_ = false;
      loop_->run_turn(false);
    });
  }

  void arm_timer() {
    if (!started_ || loop_->timers_.empty() || loop_->timers_.next() >= armed_for_) return;
    armed_for_ = loop_->timers_.next();
    timer_.expires_at(std::chrono::steady_clock::time_point(armed_for_.time_since_epoch()));
    timer_.async_wait([this](const boost::system::error_code& error) {
      if (error) return;
      armed_for_ = TimePoint::max();
      loop_->run_turn(false);
    });
  }

  asio::io_context context;

 private:
  using Executor = asio::io_context::executor_type;
  using Timer = asio::basic_waitable_timer<std::chrono::steady_clock,
                                           asio::wait_traits<std::chrono::steady_clock>, Executor>;

  void wait() {
    descriptors_.async_wait(asio::posix::descriptor_base::wait_read,
                            [this](const boost::system::error_code& error) {
                              if (error) return;
                              loop_->run_turn(false);
                              wait();
                            });
  }

  EventLoop* loop_;
  asio::posix::basic_stream_descriptor<Executor> descriptors_;
  Timer timer_;
  TimePoint armed_for_ = TimePoint::max();
  bool started_ = false;
  bool turn_posted_ = false;
};

EventLoop::EventLoop()
    : epoll_(checked(::epoll_create1(EPOLL_CLOEXEC), "epoll_create1")),
      wake_event_(checked(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC), "eventfd")) {
  epoll_event event{.events = EPOLLIN | EPOLLET, .data = {.ptr = nullptr}};
  checked(::epoll_ctl(epoll_, EPOLL_CTL_ADD, wake_event_, &event), "epoll_ctl");
}

EventLoop::~EventLoop() {
  // What the tasks hold may still call this loop while it is destroyed.
  asio_used_.store(false);
  asio_ = nullptr;
  for (Task task; timers_.take_due(TimePoint::max(), task);) task = {};
  while (!remote_.empty() || !local_.empty()) {
    std::exchange(remote_, {}).clear();
    std::exchange(local_, {}).clear();
  }
  ::close(wake_event_);
  ::close(epoll_);
}

asio::io_context& EventLoop::context() {
  std::call_once(asio_made_, [this] {
    asio_ = std::make_unique<Asio>(*this);
    asio_used_.store(true);
    wake();
  });
  return asio_->context;
}

void EventLoop::run() {
  thread_.store(std::this_thread::get_id(), std::memory_order_relaxed);
  while (!stopped_.load() && !asio_used_.load()) run_turn(true);
  if (!asio_used_.load()) return;
  asio_->start();
  while (!stopped_.load()) asio_->context.run_one();
}

bool EventLoop::poll() {
  thread_.store(std::this_thread::get_id(), std::memory_order_relaxed);
  if (!asio_used_.load()) return run_turn(false);
  asio_->start();
  return asio_->context.poll() > 0;
}

void EventLoop::stop() {
  stopped_.store(true);
  wake();
  if (asio_used_.load()) asio_->context.stop();
}

bool EventLoop::on_loop_thread() const {
  return thread_.load(std::memory_order_relaxed) == std::this_thread::get_id();
}

void EventLoop::wake() {
  // Edge-triggered: nobody needs to read it.
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(wake_event_, &one, sizeof one);
}

void EventLoop::post(Task task) {
  if (on_loop_thread()) {
    local_.push_back(std::move(task));
    work_added();
    return;
  }
  {
    const std::lock_guard lock(remote_mutex_);
    remote_.push_back(std::move(task));
    has_remote_.store(true);
  }
  // The loop says that it will sleep, then looks for tasks; we add one, then look whether it does.
  if (asleep_.exchange(false)) wake();
}

/// From outside a turn, only Asio's handlers add work; it does not know of it.
void EventLoop::work_added() {
  if (!in_turn_ && asio_used_.load(std::memory_order_relaxed)) asio_->post_turn();
}

Executor::TimerId EventLoop::schedule_at(TimePoint when, Task task) {
  const TimerId id = timers_.add(when, std::move(task));
  if (!in_turn_ && asio_used_.load(std::memory_order_relaxed)) asio_->arm_timer();
  return id;
}

void EventLoop::watch(int descriptor, Watcher& watcher) {
  epoll_event event{.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, .data = {.ptr = &watcher}};
  checked(::epoll_ctl(epoll_, EPOLL_CTL_ADD, descriptor, &event), "epoll_ctl");
}

void EventLoop::unwatch(int descriptor, Watcher& watcher) {
  ::epoll_ctl(epoll_, EPOLL_CTL_DEL, descriptor, nullptr);
  for (std::size_t i = event_at_; i < event_count_; ++i) {
    if (events_[i].data.ptr == &watcher) events_[i].data.ptr = nullptr;
  }
}

bool EventLoop::run_turn(bool may_wait) {
  in_turn_ = true;
  bool ran = wait_and_dispatch(may_wait);
  if (!timers_.empty() && timers_.next() <= clock_.now()) {
    ran = true;
    run_timers();
  }
  ran |= run_tasks();
  ran |= !hooks_.empty();
  run_hooks();
  in_turn_ = false;
  if (asio_used_.load(std::memory_order_relaxed)) asio_->after_turn();
  return ran;
}

bool EventLoop::wait_and_dispatch(bool may_wait) {
  event_count_ = static_cast<std::size_t>(std::max(0, wait(may_wait)));
  bool ran = false;
  for (event_at_ = 0; event_at_ < event_count_; ++event_at_) {
    const epoll_event& event = events_[event_at_];
    if (event.data.ptr == nullptr) continue;
    ran = true;
    static_cast<Watcher*>(event.data.ptr)->on_ready(event.events);
  }
  event_count_ = 0;
  return ran;
}

/// How many events there are. Waits for the first, but not beyond the next timer.
int EventLoop::wait(bool may_wait) {
  const int room = static_cast<int>(events_.size());
  if (!may_wait || has_work()) return ::epoll_wait(epoll_, events_.data(), room, 0);
  Duration timeout = Duration::max();
  if (!timers_.empty()) timeout = std::max(Duration::zero(), timers_.next() - clock_.now());
  asleep_.store(true);
  if (has_remote_.load() || stopped_.load() || asio_used_.load()) timeout = Duration::zero();
  int count = -1;
  const bool is_endless = timeout == Duration::max();
  if (has_pwait2_) {
    const auto seconds = std::chrono::floor<std::chrono::seconds>(timeout);
    const timespec limit{.tv_sec = seconds.count(), .tv_nsec = (timeout - seconds).count()};
    count = ::epoll_pwait2(epoll_, events_.data(), room, is_endless ? nullptr : &limit, nullptr);
    // Old kernels do not know it, and filters of system calls (seccomp) may refuse it in any way.
    has_pwait2_ = count >= 0 || errno == EINTR;
  }
  if (!has_pwait2_) {
    // Without it a wait is as long as whole milliseconds.
    static constexpr Duration kLongest = std::chrono::hours(1);
    const auto limit = std::chrono::ceil<std::chrono::milliseconds>(std::min(timeout, kLongest));
    count = ::epoll_wait(epoll_, events_.data(), room,
                         is_endless ? -1 : static_cast<int>(limit.count()));
  }
  asleep_.store(false, std::memory_order_relaxed);
  return count;
}

void EventLoop::run_timers() {
  const TimePoint now = clock_.now();
  for (Task task; timers_.take_due(now, task);) task();
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
    for (Task& task : remote_running_) task();
    remote_running_.clear();
  }
  for (int round = 0; round < kTaskRounds && !local_.empty(); ++round) {
    ran = true;
    running_.swap(local_);
    for (Task& task : running_) task();
    running_.clear();
  }
  return ran;
}

void EventLoop::at_turn_end(TurnHook& hook) {
  if (std::exchange(hook.queued_, true)) return;
  hooks_.push_back(&hook);
  work_added();
}

void EventLoop::forget(TurnHook& hook) {
  if (!std::exchange(hook.queued_, false)) return;
  std::ranges::replace(hooks_, &hook, nullptr);
  std::ranges::replace(running_hooks_, &hook, nullptr);
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
      // A reader of a pipe that went away is an error of write(2), not the end of the process.
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

std::vector<EventLoop*> LoopPool::loops() const {
  std::vector<EventLoop*> result;
  for (const auto& loop : loops_) result.push_back(loop.get());
  return result;
}

}  // namespace sluice
