#pragma once

// Task, the coroutine type of handlers and middleware.
//
//   Task<Total> add_up(Numbers in, Call& call) {
//     co_await call.sleep(1s);
//     co_return Total{...};
//   }
//
// A Task starts when it is awaited, and runs on the event loop of the request. It can await only
// what Sluice returns; to wait for the completion of another library, it awaits callback<T>()
// (sluice/request_loop.hpp). If the request is cancelled, the coroutine is destroyed at the
// co_await where it is suspended, so put cleanup into destructors.

#include <concepts>
#include <coroutine>
#include <exception>
#include <optional>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include "sluice/detail/compiler.hpp"

namespace sluice {

namespace detail {

class TaskGroup;

/// Is told when a coroutine that nobody awaits ends.
class EndWatcher {
 public:
  /// `failure` is the exception that ended the coroutine, or null. Returns the coroutine to resume.
  virtual std::coroutine_handle<> on_end(const std::exception_ptr& failure) noexcept = 0;

 protected:
  ~EndWatcher() = default;
};

/// Whether a Task or a Stream can await a `T`, which must resume it on the event loop of its
/// request.
template <class T>
inline constexpr bool kAwaitable = false;

/// The base of the promises of coroutines that a cancelled request destroys. Only those may await
/// what Sluice returns: it could not destroy another library's coroutine.
struct OwnedPromise {};

/// The coroutine that awaits.
class AwaiterHandle {
 public:
  template <class Promise>
  AwaiterHandle(std::coroutine_handle<Promise> awaiter) noexcept  // NOLINT(*-explicit-constructor)
      : handle_(awaiter) {
    static_assert(std::derived_from<Promise, OwnedPromise>,
                  "only a sluice::Task or Stream can co_await what Sluice returns");
  }
  operator std::coroutine_handle<>() const noexcept {  // NOLINT(*-explicit-constructor)
    return handle_;
  }

 private:
  std::coroutine_handle<> handle_;
};

/// The common base of the promises of Task and Stream.
class PromiseBase : public OwnedPromise {
 public:
  template <class T>
  static T&& await_transform(T&& awaited) noexcept {
    static_assert(kAwaitable<std::remove_cvref_t<T>>,
                  "a sluice::Task or Stream can co_await only what Sluice returns: to wait for "
                  "another library's completion, use call.callback<T>()");
    return std::forward<T>(awaited);
  }
  std::suspend_always initial_suspend() noexcept { return {}; }
  auto final_suspend() noexcept { return AtEnd{}; }
  void unhandled_exception() noexcept { failure_ = std::current_exception(); }

  // They say which coroutine to resume at the end: `awaiter`, or the one that `watcher` returns,
  // which takes precedence.

  void set_awaiter(std::coroutine_handle<> awaiter) noexcept { awaiter_ = awaiter; }
  void set_watcher(EndWatcher& watcher) noexcept { watcher_ = &watcher; }

 protected:
  void rethrow() const {
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  std::coroutine_handle<> next() const noexcept {
    return watcher_ == nullptr ? awaiter_ : watcher_->on_end(failure_);
  }

  struct AtEnd {
    bool await_ready() const noexcept { return false; }
    template <class Promise>
    std::coroutine_handle<> await_suspend(std::coroutine_handle<Promise> ended) const noexcept {
      return ended.promise().next();
    }
    void await_resume() const noexcept {}
  };

  std::coroutine_handle<> awaiter_ = std::noop_coroutine();
  EndWatcher* watcher_ = nullptr;
  std::exception_ptr failure_;
};

template <class T>
class ValuePromise : public PromiseBase {
 public:
  template <class U = T>
    requires std::convertible_to<U&&, T>
  void return_value(U&& value) {
    value_.emplace(std::forward<U>(value));
  }
  T take() {
    rethrow();
    if (!value_) throw std::logic_error("a coroutine has ended without co_return");
    return std::move(*value_);
  }

 private:
  std::optional<T> value_;
};

template <>
class ValuePromise<void> : public PromiseBase {
 public:
  void return_void() noexcept {}
  void take() const { rethrow(); }
};

/// Owns a coroutine's frame.
template <class Promise>
class Frame {
 public:
  explicit Frame(Promise& promise)
      : handle_(std::coroutine_handle<Promise>::from_promise(promise)) {}
  Frame(Frame&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Frame& operator=(Frame&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Frame() {
    if (handle_) handle_.destroy();
  }

  std::coroutine_handle<Promise> get() const { return handle_; }
  std::coroutine_handle<Promise> release() { return std::exchange(handle_, nullptr); }

 private:
  std::coroutine_handle<Promise> handle_;
};

/// Awaiting it starts a coroutine and returns its result.
template <class Promise>
class RunToEnd {
 public:
  explicit RunToEnd(Frame<Promise> frame) : frame_(std::move(frame)) {}

  bool await_ready() const noexcept { return false; }
  std::coroutine_handle<> await_suspend(AwaiterHandle awaiter) const {
    if (!frame_.get()) throw std::logic_error("a coroutine can be awaited only once");
    frame_.get().promise().set_awaiter(awaiter);
    return frame_.get();
  }
  decltype(auto) await_resume() const { return frame_.get().promise().take(); }

 private:
  Frame<Promise> frame_;
};
template <class Promise>
inline constexpr bool kAwaitable<RunToEnd<Promise>> = true;

}  // namespace detail

/// A coroutine that returns a `T` or throws. Await it once. Destroying it destroys the coroutine.
/// Not thread-safe.
template <class T = void>
class [[nodiscard]] Task {
 public:
  class promise_type : public detail::ValuePromise<T> {  // NOLINT(readability-identifier-naming)
   public:
    Task get_return_object() { return Task(detail::Frame<promise_type>(*this)); }
    template <class Yielded>
    std::suspend_never yield_value(const Yielded& /*yielded*/) {
      static_assert(sizeof(Yielded) == 0,
                    "a Task yields nothing: a handler with co_yield returns a sluice::Stream");
      return {};
    }
  };

  auto operator co_await() && { return detail::RunToEnd<promise_type>(std::move(frame_)); }

 private:
  friend class detail::TaskGroup;

  explicit Task(detail::Frame<promise_type> frame) : frame_(std::move(frame)) {}

  detail::Frame<promise_type> frame_;
};

template <class T>
inline constexpr bool detail::kAwaitable<Task<T>> = true;

}  // namespace sluice
