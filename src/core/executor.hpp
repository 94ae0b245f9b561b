#pragma once

#include <cstdint>

#include "core/clock.hpp"
#include "core/unique_function.hpp"

namespace sluice {

/// An event loop, as code that does not depend on net/ sees it: a thread that runs tasks one at a
/// time, in turns. Objects with mutable state belong to one executor and are touched only on its
/// thread; other threads post to it.
class Executor {
 public:
  using Task = UniqueFunction<void()>;
  /// Identifies a scheduled task; 0 is never used for one.
  using TimerId = std::uint64_t;

  virtual ~Executor() = default;

  /// Runs `task` on the loop's thread after all tasks that are already queued. Posted from the
  /// loop's own thread, it runs at the end of the current turn. Tasks from one thread run in order.
  /// Thread-safe. After the loop has stopped, tasks are destroyed without being run.
  virtual void post(Task task) = 0;

  /// Runs `task` on the loop's thread at `when` or soon after it, but not in the turn of the timer
  /// that schedules it. Call only on the loop's thread.
  virtual TimerId schedule_at(TimePoint when, Task task) = 0;

  /// Cancels a scheduled task. Ignores ids that are unknown or have already run. Call only on the
  /// loop's thread.
  virtual void cancel(TimerId id) = 0;

  [[nodiscard]] virtual const Clock& clock() const = 0;

  /// Whether the caller is on the loop's thread. Thread-safe.
  [[nodiscard]] virtual bool on_loop_thread() const = 0;

  /// A hook's place in a list of hooks (TurnHooks).
  class TurnLink {
    friend class Executor;
    friend class TurnHooks;
    TurnLink* previous_ = nullptr;
    TurnLink* next_ = nullptr;
  };
  /// Work that is collected during a turn and done at its end, such as flushing sockets.
  class TurnHook : private TurnLink {
   public:
    virtual ~TurnHook() = default;
    virtual void on_turn_end() = 0;

   private:
    friend class Executor;
    friend class TurnHooks;
  };
  /// Calls `hook` once, when this turn's tasks have run. `hook` must outlive the turn or be removed
  /// with forget(). Call both only on the loop's thread.
  void at_turn_end(TurnHook& hook) {
    if (hook.next_ == nullptr) add_hook(hook);
  }
  void forget(TurnHook& hook) {
    if (hook.next_ != nullptr) remove_hook(hook);
  }

 protected:
  virtual void add_hook(TurnHook& hook) = 0;
  virtual void remove_hook(TurnHook& hook) = 0;
};

}  // namespace sluice
