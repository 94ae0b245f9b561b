#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "core/executor.hpp"

namespace sluice {

/// Tasks scheduled for a time, in a heap. Adding or removing one takes no more than a few moves.
/// Allocates only when there are more timers than ever before. Belongs to one thread.
class TimerHeap {
 public:
  using TimerId = Executor::TimerId;

  /// Timers of the same time run in the order in which they were added.
  TimerId add(TimePoint when, Executor::Task task);
  /// Removes a timer. Ignores unknown ids, including those of timers that have run.
  void remove(TimerId id);

  [[nodiscard]] bool empty() const { return heap_.empty(); }
  [[nodiscard]] std::size_t size() const { return heap_.size(); }
  /// When the next timer is due. Must not be called if empty().
  [[nodiscard]] TimePoint next() const { return heap_.front().when; }
  /// If the next timer is due at `now`, removes it, moves its task to `task` and returns true.
  [[nodiscard]] bool take_due(TimePoint now, Executor::Task& task);

 private:
  struct Entry {
    TimePoint when;
    std::uint32_t order;  // may overflow
    std::uint32_t slot;
    [[nodiscard]] bool before(const Entry& other) const {
      return when != other.when ? when < other.when
                                : static_cast<std::int32_t>(order - other.order) < 0;
    }
  };
  /// What an id refers to. The low half of the id is the index of the slot; the high half must
  /// match the slot's generation.
  struct Slot {
    Executor::Task task;
    std::uint32_t generation = 1;
    std::uint32_t at = 0;  // index in the heap, or of the next free slot
  };

  Executor::Task take(std::size_t at);
  void sift_up(std::size_t at, const Entry& entry);
  void sift_down(std::size_t at, const Entry& entry);
  void place(std::size_t at, const Entry& entry);

  std::vector<Entry> heap_;
  std::deque<Slot> slots_;  // a deque, which grows in small steps
  std::uint32_t first_free_ = kNone;
  // Begins shortly before it overflows, so that tests see the overflow.
  std::uint32_t last_order_ = std::uint32_t{0} - 100;

  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
};

}  // namespace sluice
