#pragma once

// The interface behind sluice::RequestLoop, and Awaiting, which its functions return.

#include <coroutine>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include "sluice/detail/duration.hpp"
#include "sluice/task.hpp"

namespace sluice {

namespace detail {

using Job = std::move_only_function<void()>;

/// Stands for the value of a function that returns void.
struct Unit {};

/// The Error -32603 for a coroutine whose Resolver was destroyed without a value.
std::exception_ptr dropped_resolver() noexcept;
/// What it gets in the place of a failure that is null.
std::exception_ptr null_failure() noexcept;
/// Throws std::logic_error: two coroutines wait for the same value.
[[noreturn]] void refuse_second_wait();

/// Runs jobs on the event loop of a coroutine while the coroutine exists. Thread-safe.
class Mailbox {
 public:
  virtual ~Mailbox() = default;
  /// Destroys `job` without running it if the coroutine has ended.
  virtual void post(Job job) = 0;
};

/// A part of a coroutine's work that can be given up separately, such as a task of when_all().
class Branch;
/// The branch that is running on this thread, or null.
Branch* running_branch() noexcept;

/// The event loop of a request, as its coroutines see it. Used only on that loop.
class LoopBackend {
 public:
  virtual ~LoopBackend() = default;

  /// Runs `job` after `duration`. Returns the timer for cancel(), which ignores one that has run.
  virtual std::uint64_t after(std::chrono::nanoseconds duration, Job job) = 0;
  virtual void cancel(std::uint64_t timer) = 0;
  /// Runs `job` on a worker thread. If the running branch is given up before `job` begins, `job` is
  /// dropped; if it is given up later, its coroutines live until `job` has ended. If too many jobs
  /// wait, now or later, runs `refuse` instead, on any thread.
  virtual void work(Job job, Job refuse) = 0;
  virtual std::shared_ptr<Mailbox> mailbox() = 0;
  /// A weak pointer to this object, for use after it may have been destroyed.
  virtual std::weak_ptr<LoopBackend> weak() = 0;

  /// Resumes `coroutine`, unless it or its `branch` has ended. Must not be called while another
  /// coroutine of the same request is running.
  virtual void resume(std::coroutine_handle<> coroutine, Branch* branch) = 0;
};

}  // namespace detail

/// What a coroutine awaits: a value or an exception that arrives later. It gives its value once. If
/// the coroutine that awaits it is given up before that (with_timeout()), another one can await it.
/// Awaiting it while another coroutine does throws std::logic_error. Destroying it gives up the
/// value, and does nothing if the request has ended. Not thread-safe: use it only on the event loop
/// of the request.
template <class T>
class [[nodiscard]] Awaiting {
  using Value = std::conditional_t<std::is_void_v<T>, detail::Unit, T>;

 public:
  /// Receives the value: succeed() or fail() is called at most once, on the loop.
  class Arrival {
   public:
    explicit Arrival(detail::LoopBackend& loop) : loop_(&loop) {}

    /// `withdraw` runs if the wait is given up before anything has arrived, maybe after the end of
    /// its call.
    void set_withdraw(detail::Job withdraw) {
      if (!has_arrived()) withdraw_ = std::move(withdraw);
    }

    /// If moving `value` throws, that is what has arrived.
    void succeed(Value&& value) {
      try {
        value_.emplace(std::move(value));
      } catch (...) {
        failure_ = std::current_exception();
      }
      wake();
    }
    void fail(std::exception_ptr failure) {
      failure_ = failure != nullptr ? std::move(failure) : detail::null_failure();
      wake();
    }

   private:
    friend class Awaiting;

    bool has_arrived() const noexcept { return value_ || failure_; }
    void wake() {
      withdraw_ = {};
      if (awaiter_) loop_->resume(std::exchange(awaiter_, nullptr), branch_);
    }
    void give_up() {
      awaiter_ = nullptr;
      if (auto withdraw = std::exchange(withdraw_, {})) withdraw();
    }

    detail::LoopBackend* loop_;  // outlives its awaiter
    std::coroutine_handle<> awaiter_;
    detail::Branch* branch_ = nullptr;  // the awaiter's
    detail::Job withdraw_;
    std::optional<Value> value_;
    std::exception_ptr failure_;
  };

  /// The wait of one coroutine, which owns it. Ends with that coroutine.
  class Wait {
   public:
    explicit Wait(const Awaiting& awaited) : arrival_(awaited.arrival_) {}
    ~Wait() {
      if (suspended_) arrival_->awaiter_ = nullptr;
    }
    Wait(const Wait&) = delete;
    Wait& operator=(const Wait&) = delete;

    bool await_ready() const noexcept { return arrival_->has_arrived(); }
    void await_suspend(detail::AwaiterHandle awaiter) {
      if (arrival_->awaiter_) detail::refuse_second_wait();
      arrival_->awaiter_ = awaiter;
      arrival_->branch_ = detail::running_branch();
      suspended_ = true;
    }
    T await_resume() {
      suspended_ = false;
      if (arrival_->failure_) std::rethrow_exception(arrival_->failure_);
      if constexpr (!std::is_void_v<T>) return std::move(*arrival_->value_);
    }

   private:
    std::shared_ptr<Arrival> arrival_;
    bool suspended_ = false;
  };

  explicit Awaiting(std::shared_ptr<Arrival> arrival) : arrival_(std::move(arrival)) {}
  Awaiting(Awaiting&&) noexcept = default;
  Awaiting& operator=(Awaiting&& other) noexcept {
    std::swap(arrival_, other.arrival_);  // `other` gives up what this waited for
    return *this;
  }
  ~Awaiting() {
    if (arrival_ != nullptr) arrival_->give_up();
  }

  Wait operator co_await() const { return Wait(*this); }

 private:
  std::shared_ptr<Arrival> arrival_;
};

}  // namespace sluice
