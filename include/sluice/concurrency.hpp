#pragma once

// Runs several tasks of one coroutine concurrently, and gives tasks a timeout.
//
//   const auto [user, news] = co_await when_all(find_user(in.id), with_timeout(2s, read_news()));
//
// The tasks run on the event loop of the request, one at a time: while one is suspended, the others
// go on. When the co_await ends, with a result or an exception, none of them is left. A task that
// is given up is destroyed where it is suspended; if a worker thread is running its in_background()
// work, that is waited for. If the request is cancelled, all of its tasks are given up.

#include <coroutine>
#include <cstddef>
#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "sluice/detail/duration.hpp"
#include "sluice/detail/loop_backend.hpp"
#include "sluice/task.hpp"

namespace sluice {

/// The largest number of tasks that one when_all() takes.
inline constexpr std::size_t kMaxConcurrentTasks = 1000;

namespace detail {

/// Runs tasks concurrently for the coroutine that makes and awaits the group. The first exception
/// of a task ends the others, and is rethrown when none of them is left.
class TaskGroup {
 public:
  TaskGroup();
  ~TaskGroup();
  TaskGroup(const TaskGroup&) = delete;
  TaskGroup& operator=(const TaskGroup&) = delete;

  /// Returns the task's promise, which has the result at the end. Throws Error kLimitReached above
  /// kMaxConcurrentTasks.
  template <class T>
  auto* add(Task<T> task) {
    auto& promise = task.frame_.get().promise();
    add(task.frame_.get(), promise);
    task.frame_.release();
    return &promise;
  }
  /// Makes all tasks fail with kTimedOut when `timeout` has passed since the co_await.
  void set_timeout(std::chrono::nanoseconds timeout);

  bool await_ready() const noexcept;
  std::coroutine_handle<> await_suspend(AwaiterHandle awaiter);
  void await_resume() const;

 private:
  class Member;
  struct State;

  /// Owns `coroutine` once this has returned, but not if it throws.
  void add(std::coroutine_handle<> coroutine, PromiseBase& promise);

  std::unique_ptr<State> state_;
};
template <>
inline constexpr bool kAwaitable<TaskGroup> = true;

template <class T>
Task<T> task_of(Task<T> task) {
  return task;
}
template <class T>
Task<T> task_of(Awaiting<T> awaiting) {
  co_return co_await std::move(awaiting);
}

template <class T>
using ValueOf = std::conditional_t<std::is_void_v<T>, std::monostate, T>;

template <class T>
ValueOf<T> take_value(ValuePromise<T>& promise) {
  if constexpr (std::is_void_v<T>) {
    promise.take();
    return {};
  } else {
    return promise.take();
  }
}

template <class... T>
Task<std::tuple<ValueOf<T>...>> run_all(Task<T>... tasks) {
  static_assert(sizeof...(T) <= kMaxConcurrentTasks);
  TaskGroup group;
  const std::tuple promises{group.add(std::move(tasks))...};
  co_await group;
  co_return std::apply(
      [](auto*... promise) { return std::tuple<ValueOf<T>...>{take_value<T>(*promise)...}; },
      promises);
}

template <class T>
Task<T> run_within(std::chrono::nanoseconds timeout, Task<T> task) {
  TaskGroup group;
  group.set_timeout(timeout);
  auto* const promise = group.add(std::move(task));
  co_await group;
  co_return promise->take();
}

}  // namespace detail

/// Runs all arguments concurrently. Each is a Task<T>, or what sleep(), callback() or
/// Request::next() returns. Returns the results in order, as a std::tuple with std::monostate for
/// void. If one throws, the others are given up, and the exception is rethrown when none is left.
template <class... Awaited>
  requires(sizeof...(Awaited) > 0)
auto when_all(Awaited... awaited) {
  return detail::run_all(detail::task_of(std::move(awaited))...);
}

/// The same for a number of tasks known at run time. Throws Error kLimitReached above
/// kMaxConcurrentTasks.
template <class T>
Task<std::vector<T>> when_all(std::vector<Task<T>> tasks) {
  detail::TaskGroup group;
  std::vector<detail::ValuePromise<T>*> promises;
  promises.reserve(tasks.size());
  for (Task<T>& task : tasks) promises.push_back(group.add(std::move(task)));
  co_await group;
  std::vector<T> values;
  values.reserve(promises.size());
  for (auto* const promise : promises) values.push_back(promise->take());
  co_return values;
}
inline Task<> when_all(std::vector<Task<>> tasks) {
  detail::TaskGroup group;
  for (Task<>& task : tasks) group.add(std::move(task));
  co_await group;
}

/// Returns what `awaited` returns. If that takes longer than `timeout`, gives `awaited` up and
/// throws Error kTimedOut. A task that is not suspended is not interrupted.
template <class Awaited>
auto with_timeout(std::chrono::nanoseconds timeout, Awaited awaited) {
  return detail::run_within(timeout, detail::task_of(std::move(awaited)));
}

}  // namespace sluice
