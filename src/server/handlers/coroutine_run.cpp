#include "server/handlers/coroutine_run.hpp"

#include <mutex>
#include <string>
#include <utility>

#include "core/retry_allocation.hpp"
#include "core/sharing/client.hpp"
#include "server/calls/calls.hpp"

namespace sluice {

namespace {

/// Ends a job, whatever it throws: the coroutine waits for it.
class JobEnd {
 public:
  explicit JobEnd(BackgroundJobs& jobs) : jobs_(&jobs) {}
  ~JobEnd() { jobs_->end(); }
  JobEnd(const JobEnd&) = delete;
  JobEnd& operator=(const JobEnd&) = delete;

 private:
  BackgroundJobs* jobs_;
};

}  // namespace

class CoroutineRun::LoopMailbox final : public detail::Mailbox,
                                        public std::enable_shared_from_this<LoopMailbox> {
 public:
  explicit LoopMailbox(CoroutineRun& run) : run_(&run), loop_(run.loop_) {}

  void post(detail::Job job) override {
    // What a worker has made must not get lost, and a task of one pointer needs no memory. The
    // letter is made without the lock, for which close() would wait.
    const auto make = [this] { return std::make_unique<Letter>(shared_from_this()); };
    std::unique_ptr<Letter> letter = on_loop() ? make() : retry_allocation(make);
    letter->job = std::move(job);
    const std::lock_guard lock(mutex_);
    if (loop_ == nullptr) return;
    loop_->post([letter = std::move(letter)] {
      if (letter->box->run_ != nullptr) letter->box->run_->enter(letter->job);
    });
  }
  /// Call it on the loop, before the run is destroyed.
  void close() {
    run_ = nullptr;
    const std::lock_guard lock(mutex_);
    loop_ = nullptr;
  }

 private:
  struct Letter {
    explicit Letter(std::shared_ptr<LoopMailbox> its_box) : box(std::move(its_box)) {}
    const std::shared_ptr<LoopMailbox> box;
    detail::Job job;
  };

  bool on_loop() {
    const std::lock_guard lock(mutex_);
    return loop_ != nullptr && loop_->on_loop_thread();
  }

  CoroutineRun* run_;  // used on the loop only; null once closed
  std::mutex mutex_;
  Executor* loop_;  // null once closed
};

CoroutineRun::CoroutineRun(Executor& loop, Calls& calls, std::shared_ptr<WorkerPool> workers)
    : loop_(&loop),
      calls_(&calls),
      workers_(std::move(workers)),
      whole_(static_cast<detail::LoopBackend&>(*this), nullptr) {}

CoroutineRun::~CoroutineRun() = default;

void CoroutineRun::end() {
  whole_.join();
  destroy_coroutine();
}

void CoroutineRun::destroy_coroutine() {
  if (root_) std::exchange(root_, nullptr).destroy();
}

void CoroutineRun::go(Root root) {
  root_ = root.handle;
  self_ = shared_from_this();
  resume(root_, &whole_);
}

void CoroutineRun::resume(std::coroutine_handle<> coroutine, detail::Branch* branch) {
  if (over_ || branch->stopped()) return;
  enter([coroutine, branch] {
    detail::Branch* const before = detail::Branch::enter(branch);
    coroutine.resume();
    detail::Branch::enter(before);
  });
}

template <class UserCode>
void CoroutineRun::enter(UserCode&& user_code) {
  const std::shared_ptr<CoroutineRun> keep = shared_from_this();
  const bool was_running = std::exchange(running_, true);
  calls_->watch().begin(what());
  try {
    user_code();
  } catch (...) {
    leave(was_running);
    throw;
  }
  leave(was_running);
}

void CoroutineRun::leave(bool is_running) {
  running_ = is_running;
  if (running_) return;
  if (!over_) on_wait();
  if (over_) release();
}

void CoroutineRun::stop() {
  const std::shared_ptr<CoroutineRun> keep = shared_from_this();
  over_ = true;
  if (!running_) release();
}

std::uint64_t CoroutineRun::after(std::chrono::nanoseconds duration, detail::Job job) {
  if (released_) return 0;
  const auto id = std::make_shared<Executor::TimerId>(0);
  const TimePoint now = loop_->clock().now();
  *id = loop_->schedule_at(now + at_most_forever(duration),
                           [this, id, job = std::move(job)]() mutable {
                             timers_.erase(*id);
                             enter(job);
                           });
  timers_.insert(*id);
  return *id;
}

void CoroutineRun::cancel(std::uint64_t timer) {
  if (timers_.erase(timer) > 0) loop_->cancel(timer);
}

void CoroutineRun::work(detail::Job job, detail::Job refuse) {
  if (workers_ == nullptr) {
    refuse();
    return;
  }
  detail::Branch* const branch = detail::running_branch();
  const auto& jobs = (branch == nullptr ? &whole_ : branch)->jobs();
  const WorkerPool::JobId id = workers_->new_id();
  const std::string client = client_of(principal());
  jobs->wait(id, [weak = std::weak_ptr(workers_), id, client] {
    if (const auto workers = weak.lock()) workers->drop(id, client);
  });
  workers_->run(
      id, client,
      [jobs, id, job = std::move(job)]() mutable {
        if (!jobs->begin(id)) return;
        const JobEnd end(*jobs);
        detail::Job running = std::move(job);  // destroyed before the end
        running();
      },
      [jobs, id, refuse = std::move(refuse)]() mutable {
        jobs->forget(id);
        refuse();
      });
}

std::shared_ptr<detail::Mailbox> CoroutineRun::mailbox() {
  if (mailbox_ == nullptr) {
    mailbox_ = std::make_shared<LoopMailbox>(*this);
    if (released_) mailbox_->close();
  }
  return mailbox_;
}

void CoroutineRun::release() {
  if (self_ == nullptr) return;
  released_ = true;
  if (mailbox_ != nullptr) mailbox_->close();
  for (const Executor::TimerId timer : std::exchange(timers_, {})) loop_->cancel(timer);
  const std::shared_ptr<CoroutineRun> self = std::move(self_);
  const bool is_unused = whole_.stop([loop = loop_, weak = weak_from_this()] {
    loop->post([weak] {
      const auto run = weak.lock();
      if (run == nullptr) return;
      run->destroy_coroutine();
      run->calls_->let_go(*run);
    });
  });
  if (is_unused) {
    destroy_coroutine();
  } else {
    calls_->keep(self);
  }
  // The caller of this function may belong to one of these objects, so they exist until the end of
  // the turn.
  loop_->post([self, released = on_release()] {});
}

}  // namespace sluice
