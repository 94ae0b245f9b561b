#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "core/clock.hpp"
#include "sluice/agent_event.hpp"
#include "sluice/agent_options.hpp"

namespace sluice {

/// Where a running call can be taken up again (ToolCallSink::on_position).
struct CallPosition {
  std::string text = {};   // empty: nowhere
  std::uint64_t next = 0;  // the number of the chunk that comes next
};

/// The events of a run that wait to be taken: one ordered stream with one taker. Events get their
/// numbers when they are taken. What a tool writes is counted as its call's, all else as the
/// model's and the run's own. Events that nobody could hold up are appended beyond the limits: a
/// few of each call or answer, whose number the limits of the run bound. Thread-safe.
class RunEvents {
 public:
  explicit RunEvents(RunEventsOptions options) : options_(options) {}

  /// Appends an event. Returns false if whoever makes such events should pause: the call it belongs
  /// to, or the model if it belongs to none. Nothing is taken after run_done.
  bool push(AgentEvent event);
  /// The call can be taken up again behind what was pushed of it. Counts once that is taken.
  void mark(const std::string& call_id, CallPosition position);
  /// Where it can be, so that what waits comes again; at the earliest that is known, if nothing was
  /// taken. Until its end is taken.
  [[nodiscard]] CallPosition position_of(std::string_view call_id) const;
  /// Is told, on the taker's thread, whenever something that was full has room again: a call's id,
  /// or an empty text for the model. Set it before anything is pushed.
  void on_room(std::function<void(const std::string& call_id)> told) { told_ = std::move(told); }
  /// Is shown each event as it is pushed, on the thread that pushes. Set it before anything is.
  void watch(std::function<void(const AgentEvent&)> watcher) { watcher_ = std::move(watcher); }
  /// Whether too much waits of what is the model's or the run's own.
  [[nodiscard]] bool is_full() const;
  /// The next event, if there is one. Never blocks. Throws std::logic_error if somebody is in
  /// wait().
  std::optional<AgentEvent> poll();
  /// Waits for the next event, at most for `patience`. Nothing: none came, or the last was taken.
  /// Throws std::logic_error if somebody waits already.
  std::optional<AgentEvent> wait(Duration patience);
  /// Tells, once, that there is an event or that the last was taken: at once, or on the thread that
  /// pushes. Throws std::logic_error if somebody waits already. `waiter` names who waits.
  void on_next(std::function<void()> told, const void* waiter = nullptr);
  /// If this waiter waits with on_next(), it does not any more.
  void forget_next(const void* waiter);
  /// Whether the last event was taken.
  [[nodiscard]] bool is_over() const;
  /// run_done, once it was taken.
  [[nodiscard]] std::optional<AgentEvent> last() const;

 private:
  struct Entry {
    AgentEvent event;
    CallPosition position = {};  // behind it
  };
  using Events = std::list<Entry>;
  /// Of one call, or of the model.
  struct Waiting {
    std::deque<Events::iterator> events = {};  // in their order
    std::size_t bytes = 0;
    bool is_full = false;
  };

  bool push_counted(AgentEvent event, const std::string& owner);
  void drop_oldest(Waiting& waiting);
  void require_nobody_waits() const;
  /// Takes the first event, with the lock held. `room` becomes whose producer may go on.
  AgentEvent take(std::optional<std::string>& room);
  std::optional<AgentEvent> told(std::optional<AgentEvent> event,
                                 const std::optional<std::string>& room);

  const RunEventsOptions options_;
  std::function<void(const std::string&)> told_;
  std::function<void(const AgentEvent&)> watcher_;
  mutable std::mutex mutex_;
  std::condition_variable arrived_;
  Events events_;
  /// By call; the empty id is the model's and the run's own, of which only pieces of the model are
  /// in `events`.
  std::map<std::string, Waiting, std::less<>> waiting_;
  std::map<std::string, CallPosition, std::less<>> taken_;  // by call
  std::uint64_t next_number_ = 0;
  bool is_ended_ = false;  // run_done was pushed
  std::optional<AgentEvent> last_;
  bool is_awaited_ = false;       // by wait() or on_next()
  std::function<void()> woken_;   // what on_next() was given
  const void* waiter_ = nullptr;  // who gave it
};

}  // namespace sluice
