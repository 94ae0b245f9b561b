#pragma once

// What a handler or a middleware can await: time, worker threads and callbacks.

#include <atomic>
#include <exception>
#include <memory>
#include <type_traits>
#include <utility>

#include "sluice/detail/duration.hpp"
#include "sluice/detail/loop_backend.hpp"
#include "sluice/error.hpp"
#include "sluice/task.hpp"

namespace sluice {

template <class T>
inline constexpr bool detail::kAwaitable<Awaiting<T>> = true;

/// Hands a value or an exception to a waiting coroutine. Thread-safe. Only the first succeed() or
/// fail() of all copies counts; nothing happens if the coroutine has ended. If all copies are
/// destroyed before either is called, the coroutine gets an Error -32603. If moving the value
/// throws, either succeed() throws the exception and does not count, or the coroutine gets it.
template <class T>
class Resolver {
  using Value = std::conditional_t<std::is_void_v<T>, detail::Unit, T>;
  using Arrival = typename Awaiting<T>::Arrival;

 public:
  Resolver(std::shared_ptr<detail::Mailbox> mailbox, std::shared_ptr<Arrival> arrival)
      : wait_(std::make_shared<Wait>(std::move(mailbox), std::move(arrival))) {}

  void succeed(Value value) {
    wait_->settle([arrival = wait_->arrival, value = std::move(value)]() mutable {
      arrival->succeed(std::move(value));
    });
  }
  void succeed()
    requires std::is_void_v<T>
  {
    succeed(detail::Unit());
  }
  void fail(std::exception_ptr failure) { wait_->fail(std::move(failure)); }

 private:
  /// Shared by all copies.
  struct Wait {
    Wait(std::shared_ptr<detail::Mailbox> box, std::shared_ptr<Arrival> place)
        : mailbox(std::move(box)), arrival(std::move(place)) {}
    ~Wait() {
      if (!settled.load()) fail(detail::dropped_resolver());
    }
    Wait(const Wait&) = delete;
    Wait& operator=(const Wait&) = delete;
    /// Counts only once `job` has been made, which may throw.
    void settle(detail::Job job) {
      if (!settled.exchange(true)) mailbox->post(std::move(job));
    }
    void fail(std::exception_ptr failure) {
      settle([place = arrival, failure = std::move(failure)]() mutable {
        place->fail(std::move(failure));
      });
    }

    std::shared_ptr<detail::Mailbox> mailbox;
    std::shared_ptr<Arrival> arrival;
    std::atomic<bool> settled = false;
  };

  std::shared_ptr<Wait> wait_;
};

/// The event loop of a request, for its handler and its middleware. Not thread-safe: use it only on
/// that loop.
class RequestLoop {
 public:
  explicit RequestLoop(detail::LoopBackend& loop) : loop_(&loop) {}
  RequestLoop(const RequestLoop&) = delete;
  RequestLoop& operator=(const RequestLoop&) = delete;

  /// Suspends the coroutine for `duration`. The loop serves others meanwhile.
  Awaiting<void> sleep(std::chrono::nanoseconds duration);

  /// Runs `work` on a worker thread once it is awaited, and returns or throws what `work` does.
  /// `work` may refer to the coroutine's variables: a coroutine that is cancelled meanwhile is
  /// destroyed only after `work` has ended. Throws Error kBusy if too many jobs wait for a worker
  /// and no other client has more of them.
  template <class Work>
  Task<std::invoke_result_t<Work&>> in_background(Work work) {
    using Out = std::invoke_result_t<Work&>;
    const auto arrival = std::make_shared<typename Awaiting<Out>::Arrival>(*loop_);
    Resolver<Out> resolver(loop_->mailbox(), arrival);
    loop_->work(
        [&work, resolver]() mutable {
          try {
            if constexpr (std::is_void_v<Out>) {
              work();
              resolver.succeed();
            } else {
              resolver.succeed(work());
            }
          } catch (...) {
            resolver.fail(std::current_exception());
          }
        },
        [resolver]() mutable {
          resolver.fail(std::make_exception_ptr(
              Error{kBusy, "The server has too much to do; try it again later", {}}));
        });
    co_return co_await Awaiting<Out>(arrival);
  }

  /// Waits for a value from elsewhere. Calls `start` at once with a Resolver<T>, which may hand
  /// over the value at any time and on any thread.
  template <class T, class Start>
  Awaiting<T> callback(Start start) {
    const auto arrival = std::make_shared<typename Awaiting<T>::Arrival>(*loop_);
    start(Resolver<T>(loop_->mailbox(), arrival));
    return Awaiting<T>(arrival);
  }

 protected:
  ~RequestLoop() = default;

 private:
  detail::LoopBackend* loop_;
};

}  // namespace sluice
