#pragma once

// What stands behind sluice::RequestLoop.

#include <coroutine>
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

/// Runs jobs on the loop of a coroutine as long as that is there. Thread-safe.
class Mailbox {
 public:
  virtual ~Mailbox() = default;
  /// Drops `job` when the coroutine is over.
  virtual void post(Job job) = 0;
};

/// The loop of a request as a coroutine sees it that runs there. On that loop, unless it says
/// otherwise.
class LoopBackend {
 public:
  virtual ~LoopBackend() = default;

  virtual void after(std::chrono::nanoseconds duration, Job job) = 0;
  /// Runs `job` on a worker thread, unless the coroutine is over before, which is there until it
  /// has run. False: too many are waiting.
  virtual bool work(Job job) = 0;
  virtual std::shared_ptr<Mailbox> mailbox() = 0;

  /// Goes on with the coroutine.
  virtual void resume(std::coroutine_handle<> coroutine) = 0;
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

    void succeed(Value value) {
      value_.emplace(std::move(value));
      wake();
    }
    void fail(std::exception_ptr failure) {
      failure_ = std::move(failure);
      wake();
    }

   private:
    friend class Awaiting;

    void wake() {
      if (awaiter_) loop_->resume(std::exchange(awaiter_, nullptr));
    }

    detail::LoopBackend* loop_;  // outlives its awaiter
    std::coroutine_handle<> awaiter_;
    std::optional<Value> value_;
    std::exception_ptr failure_;
  };

  explicit Awaiting(std::shared_ptr<Arrival> arrival) : arrival_(std::move(arrival)) {}
  Awaiting(Awaiting&&) noexcept = default;
  Awaiting& operator=(Awaiting&&) noexcept = default;
  ~Awaiting() {
    if (arrival_ != nullptr) arrival_->awaiter_ = nullptr;
  }

  bool await_ready() const noexcept { return arrival_->value_ || arrival_->failure_; }
  void await_suspend(std::coroutine_handle<> awaiter) noexcept { arrival_->awaiter_ = awaiter; }
  T await_resume() {
    if (arrival_->failure_) std::rethrow_exception(arrival_->failure_);
    if constexpr (!std::is_void_v<T>) return std::move(*arrival_->value_);
  }

 private:
  std::shared_ptr<Arrival> arrival_;
};

}  // namespace sluice
