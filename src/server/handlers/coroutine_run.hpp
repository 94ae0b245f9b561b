#pragma once

#include <coroutine>
#include <exception>
#include <memory>
#include <set>
#include <string_view>

#include "core/executor.hpp"
#include "server/handlers/branch.hpp"
#include "server/workers/worker_pool.hpp"
#include "sluice/detail/loop_backend.hpp"

namespace sluice {

class Calls;

/// One run of a coroutine that a user of the library has written, on the loop of a request. Keeps
/// itself alive until the coroutine has ended or the run is stopped; then the coroutine is
/// destroyed where it waits. Belongs to its loop.
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
  /// The outermost coroutine. It sets `over_` at its end, and lets nothing out.
  struct Root {
    struct promise_type {  // NOLINT(readability-identifier-naming)
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

  /// `calls` keeps what worker threads still use. `workers` may be null: then there are none.
  CoroutineRun(Executor& loop, Calls& calls, std::shared_ptr<WorkerPool> workers);

  /// Begins. Once, or never.
  void go(Root root);
  /// Destroys the coroutine where it waits. One that runs right now goes on until it waits.
  void stop();
  /// The end of the destructor of what derives from this: the coroutine refers to it.
  void end();

  [[nodiscard]] Executor& executor() const { return *loop_; }
  [[nodiscard]] bool is_running() const { return running_; }
  /// Whether destructors of the coroutine's objects are still to come.
  [[nodiscard]] bool has_coroutine() const { return root_ != nullptr; }

  /// Null: there are none.
  [[nodiscard]] WorkerPool* workers() const { return workers_.get(); }

  bool over_ = false;

 private:
  class LoopMailbox;

  /// Whose request it is; its client has a share of the workers.
  [[nodiscard]] virtual std::string_view principal() const = 0;

  /// The run is over, and its coroutine is destroyed unless a worker still uses it: lets go of the
  /// request. Returns what must live to the end of the turn.
  virtual std::shared_ptr<void> on_release() = 0;
  /// It waits, and is not over.
  virtual void on_wait() {}

  /// Calls `user_code`: the coroutine, or what destroys a part of it. A run that is stopped
  /// meanwhile is released afterwards, since its coroutine is in use.
  template <class UserCode>
  void enter(UserCode&& user_code);
  /// The end of enter(), also by an exception. `is_running`: as before it.
  void leave(bool is_running);
  /// Destroys the coroutine, as soon as no worker uses it, and lets go of everything.
  void release();
  void destroy_coroutine();

  Executor* loop_;
  Calls* calls_;
  std::shared_ptr<WorkerPool> workers_;
  detail::Branch whole_;
  std::coroutine_handle<> root_;
  std::shared_ptr<LoopMailbox> mailbox_;  // if somebody has asked for it
  std::shared_ptr<CoroutineRun> self_;
  std::set<Executor::TimerId> timers_;
  bool running_ = false;
  bool released_ = false;  // destructors that still use it get no timer, and a closed mailbox
};

}  // namespace sluice
