#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "sluice/call_event.hpp"

namespace sluice::detail {

/// The events of a call that wait for its user. The oldest are dropped if there are too many, or if
/// they take too much memory. An empty queue keeps memory for at most one event.
class EventQueue final {
 public:
  /// The newest event is kept even if it is beyond these limits.
  EventQueue(std::size_t max_events, std::size_t max_bytes)
      : max_events_(max_events), max_bytes_(max_bytes) {}

  /// `bytes`: what the event takes in memory.
  void push(CallEvent event, std::size_t bytes);
  /// Sets CallEvent::resumption of the newest event. The queue must not be empty.
  void mark_newest(std::string resumption);
  /// The oldest event. The queue must not be empty.
  CallEvent pop();
  [[nodiscard]] bool empty() const { return first_ == entries_.size(); }
  /// Whether half of what may wait does.
  [[nodiscard]] bool is_half_full() const {
    return entries_.size() - first_ > max_events_ / 2 || bytes_ > max_bytes_ / 2;
  }

 private:
  struct Entry {
    CallEvent event;
    std::size_t bytes;
  };

  void drop_oldest();
  /// Frees the memory of entries that have been taken, if they are half of all.
  void compact();

  const std::size_t max_events_;
  const std::size_t max_bytes_;
  std::vector<Entry> entries_;
  std::size_t first_ = 0;  // the oldest; those before it have been taken
  std::size_t bytes_ = 0;
};

}  // namespace sluice::detail
