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

#include "agent/events/agent_event.hpp"
#include "core/clock.hpp"

namespace sluice {

/// What to do with the output of a tool that nobody takes.
enum class OutputOverflow : std::uint8_t {
  block,        // the tool's server is not read any more, until half of it is taken
  coalesce,     // chunks that wait become one event; beyond the limit as with block
  drop_oldest,  // the oldest chunks are dropped, which the next event of the call says
};

struct RunEventsOptions {
  OutputOverflow overflow = OutputOverflow::coalesce;
  /// How much of one call may wait: bytes of its output, and chunks.
  std::size_t max_call_bytes = std::size_t{1} << 20U;
  std::size_t max_call_events = 1000;
  /// How many pieces of a model's text may wait before the model is held up.
  std::size_t max_model_events = 1000;
};

/// The events of a run that wait to be taken: one ordered stream with one taker. Events get their
/// numbers when they are taken. Bounded but for events that happen a few times in each call or
/// answer, whose number the limits of the run bound. Thread-safe.
class RunEvents {
 public:
  explicit RunEvents(RunEventsOptions options) : options_(options) {}

  /// Appends an event. Returns false if whoever makes such events should pause: the call it belongs
  /// to, or the model if it belongs to none. Nothing is taken after run_done.
  bool push(AgentEvent event);
  /// Is told, on the taker's thread, whenever something that was full has room again: a call's id,
  /// or an empty text for the model. Set it before anything is pushed.
  void on_room(std::function<void(const std::string& call_id)> told) { told_ = std::move(told); }
  /// Is told, on the pusher's thread, that there is an event where there was none. Set it before
  /// anything is pushed. It must not call the queue.
  void on_event(std::function<void()> told) { woken_ = std::move(told); }

  /// The next event, if there is one. Never blocks.
  std::optional<AgentEvent> poll();
  /// Waits for the next event, at most for `patience`. Nothing: none came, or the last was taken.
  std::optional<AgentEvent> wait(Duration patience);
  /// Whether the last event was taken.
  [[nodiscard]] bool is_over() const;
  /// Wakes whoever waits, which then gets nothing.
  void close();

 private:
  using Events = std::list<AgentEvent>;
  /// Of one call, or of the model.
  struct Waiting {
    std::deque<Events::iterator> events = {};  // in their order
    std::size_t bytes = 0;
    bool is_full = false;
  };

  bool push_counted(AgentEvent event, const std::string& owner);
  void drop_oldest(Waiting& waiting);
  /// Takes the first event, with the lock held. `room` becomes whose producer may go on.
  AgentEvent take(std::optional<std::string>& room);
  std::optional<AgentEvent> told(std::optional<AgentEvent> event,
                                 const std::optional<std::string>& room);

  const RunEventsOptions options_;
  std::function<void(const std::string&)> told_;
  std::function<void()> woken_;
  mutable std::mutex mutex_;
  std::condition_variable arrived_;
  Events events_;
  std::map<std::string, Waiting, std::less<>> waiting_;  // by call; the empty id is the model
  std::uint64_t next_number_ = 0;
  bool is_ended_ = false;   // run_done was pushed
  bool is_closed_ = false;  // or nobody waits any more
};

}  // namespace sluice
