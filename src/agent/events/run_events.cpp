#include "agent/events/run_events.hpp"

#include <algorithm>
#include <iterator>
#include <stdexcept>
#include <string_view>
#include <utility>

namespace sluice {
namespace {

bool is_piece_of_model(const AgentEvent& event) {
  return event.type == AgentEventType::output_text_delta ||
         event.type == AgentEventType::reasoning_text_delta ||
         event.type == AgentEventType::function_call_arguments_delta;
}

bool is_output(const AgentEvent& event) {
  return event.type == AgentEventType::tool_output_delta ||
         event.type == AgentEventType::tool_progress;
}

bool is_text_output(const AgentEvent& event) {
  return event.type == AgentEventType::tool_output_delta && event.data.empty();
}

}  // namespace

bool RunEvents::push(AgentEvent event) {
  if (watcher_) watcher_(event);
  bool goes_on = true;
  std::function<void()> woken;
  {
    const std::lock_guard lock(mutex_);
    if (is_ended_) return true;
    is_ended_ = event.type == AgentEventType::run_done;
    const std::string owner = is_output(event) ? event.call_id : std::string();
    goes_on = push_counted(std::move(event), owner);
    if (woken_) {
      woken = std::exchange(woken_, nullptr);
      is_awaited_ = false;
    } else if (is_awaited_) {
      arrived_.notify_one();
    }
  }
  if (woken) woken();
  return goes_on;
}

bool RunEvents::push_counted(AgentEvent event, const std::string& owner) {
  Waiting& waiting = waiting_[owner];
  const bool is_model = owner.empty();
  AgentEvent* const last = waiting.events.empty() ? nullptr : &waiting.events.back()->event;
  if (!is_model && options_.overflow == OutputOverflow::coalesce && last != nullptr &&
      is_text_output(event) && event.dropped == 0 && is_text_output(*last) &&
      last->last + 1 == event.first) {
    last->text += event.text;
    last->last = event.last;
    waiting.bytes += event.text.size();
  } else {
    const bool is_piece = !is_model || is_piece_of_model(event);
    waiting.bytes += event.memory();
    events_.push_back({std::move(event)});
    if (is_piece) waiting.events.push_back(std::prev(events_.end()));
  }
  if (!is_model && options_.overflow == OutputOverflow::drop_oldest) {
    drop_oldest(waiting);
    return true;
  }
  const std::size_t most = is_model ? options_.max_model_events : options_.max_call_events;
  waiting.is_full =
      waiting.is_full || waiting.events.size() >= most || waiting.bytes >= options_.max_call_bytes;
  return !waiting.is_full;
}

void RunEvents::mark(const std::string& call_id, CallPosition position) {
  const std::lock_guard lock(mutex_);
  const auto found = waiting_.find(call_id);
  const bool waits = found != waiting_.end() && !found->second.events.empty();
  (waits ? found->second.events.back()->position : taken_[call_id]) = std::move(position);
}

CallPosition RunEvents::position_of(std::string_view call_id) const {
  const std::lock_guard lock(mutex_);
  const auto taken = taken_.find(call_id);
  if (taken != taken_.end()) return taken->second;
  const auto found = waiting_.find(call_id);
  if (found == waiting_.end()) return {};
  for (const auto& each : found->second.events) {
    if (!each->position.text.empty()) return each->position;
  }
  return {};
}

void RunEvents::drop_oldest(Waiting& waiting) {
  std::uint64_t dropped = 0;
  while (waiting.events.size() > 1 && (waiting.bytes > options_.max_call_bytes ||
                                       waiting.events.size() > options_.max_call_events)) {
    const auto oldest = waiting.events.front();
    const AgentEvent& event = oldest->event;
    dropped += event.dropped;
    if (event.type == AgentEventType::tool_output_delta) dropped += event.last - event.first + 1;
    waiting.bytes -= event.memory();
    waiting.events.pop_front();
    events_.erase(oldest);
  }
  waiting.events.front()->event.dropped += dropped;
}

AgentEvent RunEvents::take(std::optional<std::string>& room) {
  AgentEvent event = std::move(events_.front().event);
  if (CallPosition& behind = events_.front().position; !behind.text.empty()) {
    taken_.insert_or_assign(event.call_id, std::move(behind));
  }
  if (event.type == AgentEventType::tool_output_done) taken_.erase(event.call_id);
  events_.pop_front();
  event.sequence_number = next_number_++;
  if (event.type == AgentEventType::run_done) last_ = event;
  const bool is_call = is_output(event);
  const auto found = waiting_.find(is_call ? std::string_view(event.call_id) : std::string_view());
  Waiting& waiting = found->second;
  if (is_call || is_piece_of_model(event)) waiting.events.pop_front();
  waiting.bytes -= event.memory();
  const std::size_t most = is_call ? options_.max_call_events : options_.max_model_events;
  if (waiting.is_full && waiting.events.size() <= most / 2 &&
      waiting.bytes <= options_.max_call_bytes / 2) {
    waiting.is_full = false;
    room = found->first;
  }
  if (waiting.bytes == 0) waiting_.erase(found);
  return event;
}

std::optional<AgentEvent> RunEvents::told(std::optional<AgentEvent> event,
                                          const std::optional<std::string>& room) {
  if (room && told_) told_(*room);
  return event;
}

std::optional<AgentEvent> RunEvents::poll() {
  std::optional<std::string> room;
  std::optional<AgentEvent> event;
  {
    const std::lock_guard lock(mutex_);
    // Whoever waits for on_next()'s call finds nothing here before it.
    if (!woken_) require_nobody_waits();
    if (!events_.empty()) event = take(room);
  }
  return told(std::move(event), room);
}

std::optional<AgentEvent> RunEvents::wait(Duration patience) {
  std::optional<std::string> room;
  std::optional<AgentEvent> event;
  {
    std::unique_lock lock(mutex_);
    require_nobody_waits();
    is_awaited_ = true;
    arrived_.wait_for(lock, std::min(patience, Duration(kForever)),
                      [&] { return !events_.empty() || is_ended_; });
    is_awaited_ = false;
    if (!events_.empty()) event = take(room);
  }
  return told(std::move(event), room);
}

void RunEvents::on_next(std::function<void()> told, const void* waiter) {
  {
    const std::lock_guard lock(mutex_);
    require_nobody_waits();
    if (events_.empty() && !is_ended_) {
      is_awaited_ = true;
      woken_ = std::move(told);
      waiter_ = waiter;
      return;
    }
  }
  told();
}

void RunEvents::forget_next(const void* waiter) {
  std::function<void()> forgotten;
  const std::lock_guard lock(mutex_);
  if (!woken_ || waiter_ != waiter) return;
  is_awaited_ = false;
  forgotten.swap(woken_);
}

void RunEvents::require_nobody_waits() const {
  if (is_awaited_) throw std::logic_error("somebody waits for the run's next event already");
}

std::optional<AgentEvent> RunEvents::last() const {
  const std::lock_guard lock(mutex_);
  return last_;
}

bool RunEvents::is_full() const {
  const std::lock_guard lock(mutex_);
  const auto own = waiting_.find(std::string_view());
  return own != waiting_.end() && own->second.is_full;
}

bool RunEvents::is_over() const {
  const std::lock_guard lock(mutex_);
  return events_.empty() && is_ended_;
}

}  // namespace sluice
