#pragma once

// What stands behind sluice::RequestLoop.

#include <coroutine>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include "sluice/detail/duration.hpp"

namespace sluice {

namespace detail {

using Job = std::move_only_function<void()>;

/// The value of what returns none.
struct Unit {};

/// What a coroutine gets that waits for what nobody will hand over.
std::exception_ptr dropped_resolver() noexcept;
/// What it gets in the place of a failure that is null.
std::exception_ptr null_failure() noexcept;

/// Runs jobs on the loop of a coroutine as long as that is there. Thread-safe.
class Mailbox {
 public:
  virtual ~Mailbox() = default;
  /// Drops `job` when the coroutine is over.
  virtual void post(Job job) = 0;
};

/// A part of what a coroutine does that can be given up by itself.
class Branch;
/// The one that runs now on this thread, or null.
Branch* running_branch() noexcept;

/// The loop of a request as a coroutine sees it that runs there. On that loop, unless it says
/// otherwise.
class LoopBackend {
 public:
  virtual ~LoopBackend() = default;

  /// Returns what cancel() takes, which ignores what has run.
  virtual std::uint64_t after(std::chrono::nanoseconds duration, Job job) = 0;
  virtual void cancel(std::uint64_t timer) = 0;
  /// Runs `job` on a worker thread, unless the branch that runs now is given up before, whose
  /// coroutines are there until it has run. Or `refuse`, on any thread, if too many wait there,
  /// then or later.
  virtual void work(Job job, Job refuse) = 0;
  virtual std::shared_ptr<Mailbox> mailbox() = 0;

  /// Goes on with `coroutine`, unless it or its `branch` is over. Not while another one of the
  /// same request runs.
  virtual void resume(std::coroutine_handle<> coroutine, Branch* branch) = 0;
};

}  // namespace detail

/// Something a coroutine waits for with co_await. Dropping it forgets the wait.
template <class T>
class [[nodiscard]] Awaiting {
  using Value = std::conditional_t<std::is_void_v<T>, detail::Unit, T>;

 public:
  /// Where the value arrives; on the loop, and at most once.
  class Arrival {
   public:
    explicit Arrival(detail::LoopBackend& loop) : loop_(&loop) {}

    /// Run when nobody waits any more and nothing has arrived.
    void set_withdraw(detail::Job withdraw) { withdraw_ = std::move(withdraw); }

    void succeed(Value value) {
      value_.emplace(std::move(value));
      wake();
    }
    void fail(std::exception_ptr failure) {
      failure_ = failure != nullptr ? std::move(failure) : detail::null_failure();
      wake();
    }

   private:
    friend class Awaiting;

    void wake() {
      withdraw_ = {};
      if (awaiter_) loop_->resume(std::exchange(awaiter_, nullptr), branch_);
    }
    void forget() {
      awaiter_ = nullptr;
      if (auto withdraw = std::exchange(withdraw_, {})) withdraw();
    }

    detail::LoopBackend* loop_;  // outlives its awaiter
    std::coroutine_handle<> awaiter_;
    detail::Branch* branch_ = nullptr;  // of the awaiter
    detail::Job withdraw_;
    std::optional<Value> value_;
    std::exception_ptr failure_;
  };

  explicit Awaiting(std::shared_ptr<Arrival> arrival) : arrival_(std::move(arrival)) {}
  Awaiting(Awaiting&&) noexcept = default;
  Awaiting& operator=(Awaiting&&) noexcept = default;
  ~Awaiting() {
    if (arrival_ != nullptr) arrival_->forget();
  }

  bool await_ready() const noexcept { return arrival_->value_ || arrival_->failure_; }
  void await_suspend(std::coroutine_handle<> awaiter) noexcept {
    arrival_->awaiter_ = awaiter;
    arrival_->branch_ = detail::running_branch();
  }
  T await_resume() {
    if (arrival_->failure_) std::rethrow_exception(arrival_->failure_);
    if constexpr (!std::is_void_v<T>) return std::move(*arrival_->value_);
  }

 private:
  std::shared_ptr<Arrival> arrival_;
};

}  // namespace sluice
