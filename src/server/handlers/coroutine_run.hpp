#pragma once

#include <coroutine>
#include <exception>
#include <memory>
#include <set>
#include <string_view>

#include "core/executor.hpp"
#include "core/turns/turn_watch.hpp"
#include "server/handlers/branch.hpp"
#include "server/workers/worker_pool.hpp"
#include "sluice/detail/loop_backend.hpp"

namespace sluice {

class Calls;

/// One run of a coroutine that a user of the library wrote, on the loop of a request. Keeps itself
/// alive until the coroutine has ended or the run is stopped. A stopped coroutine is destroyed
/// where it is suspended. Belongs to its loop.
class CoroutineRun : public detail::LoopBackend, public std::enable_shared_from_this<CoroutineRun> {
 public:
  ~CoroutineRun() override;
  CoroutineRun(const CoroutineRun&) = delete;
  CoroutineRun& operator=(const CoroutineRun&) = delete;

  std::uint64_t after(std::chrono::nanoseconds duration, detail::Job job) override;
  void cancel(std::uint64_t timer) override;
  void work(detail::Job job, detail::Job refuse) override;
  std::shared_ptr<detail::Mailbox> mailbox() override;
  std::weak_ptr<detail::LoopBackend> weak() override { return weak_from_this(); }
  void resume(std::coroutine_handle<> coroutine, detail::Branch* branch) override;

 protected:
  /// The outermost coroutine. It sets `over_` at its end, and must not let exceptions escape.
  struct Root {
    // NOLINTNEXTLINE(readability-identifier-naming)
    struct promise_type : detail::OwnedPromise {
      Root get_return_object() {
        return {std::coroutine_handle<promise_type>::from_promise(*this)};
      }
      std::suspend_always initial_suspend() noexcept { return {}; }
      std::suspend_always final_suspend() noexcept { return {}; }
      void return_void() noexcept {}
      void unhandled_exception() noexcept { std::terminate(); }
    };
    std::coroutine_handle<promise_type> handle;
  };

  /// `calls` keeps a run that has ended while worker threads still use it. `workers` may be null:
  /// then there are no worker threads.
  CoroutineRun(Executor& loop, Calls& calls, std::shared_ptr<WorkerPool> workers);

  /// Starts the run. Call it at most once.
  void go(Root root);
  /// Destroys the coroutine where it is suspended. If it is running now, that happens when it
  /// suspends.
  void stop();
  /// Waits for worker threads and destroys the coroutine. The destructor of a derived class must
  /// call it last, because the coroutine refers to the derived object.
  void end();

  [[nodiscard]] Executor& executor() const { return *loop_; }
  [[nodiscard]] bool is_running() const { return running_; }
  /// Whether there is a coroutine that has not been destroyed yet.
  [[nodiscard]] bool has_coroutine() const { return root_ != nullptr; }

  /// Null if there are no worker threads.
  [[nodiscard]] WorkerPool* workers() const { return workers_.get(); }

  bool over_ = false;

 private:
  class LoopMailbox;

  /// The principal of the request. Its client has a share of the worker threads.
  [[nodiscard]] virtual std::string_view principal() const = 0;
  /// What user code the coroutine is.
  [[nodiscard]] virtual TurnWatch::Work what() const = 0;

  /// Called when the run is over. The coroutine has been destroyed, unless a worker thread still
  /// uses it. Releases the request, and returns what must exist until the end of the turn.
  virtual std::shared_ptr<void> on_release() = 0;
  /// Called when the coroutine is suspended and the run is not over.
  virtual void on_wait() {}

  /// Calls `user_code`, which runs the coroutine or destroys a part of it. If the run is stopped
  /// during that, it is released afterwards, because its coroutine is in use until then.
  template <class UserCode>
  void enter(UserCode&& user_code);
  /// Ends enter(), also after an exception. `is_running` is what running_ was before it.
  void leave(bool is_running);
  /// Destroys the coroutine as soon as no worker uses it, and releases everything else.
  void release();
  void destroy_coroutine();

  Executor* loop_;
  Calls* calls_;
  std::shared_ptr<WorkerPool> workers_;
  detail::Branch whole_;
  std::coroutine_handle<> root_;
  std::shared_ptr<LoopMailbox> mailbox_;  // null until asked for
  std::shared_ptr<CoroutineRun> self_;
  std::set<Executor::TimerId> timers_;
  bool running_ = false;
  bool released_ = false;  // destructors that still use it get no timer, and a closed mailbox
};

}  // namespace sluice
