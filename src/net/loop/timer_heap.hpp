#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "core/executor.hpp"

namespace sluice {

/// Tasks that wait for their time. Adding one, taking one out and finding the next cost no more
/// than a few moves in a heap, and nothing is allocated while the number of timers stays below its
/// highest. Belongs to one thread.
class TimerHeap {
 public:
  using TimerId = Executor::TimerId;

  /// Timers of the same time run in the order in which they were added.
  TimerId add(TimePoint when, Executor::Task task);
  /// Forgets a timer; unknown ids, also of timers that have run, are ignored.
  void remove(TimerId id);

  [[nodiscard]] bool empty() const { return heap_.empty(); }
  [[nodiscard]] std::size_t size() const { return heap_.size(); }
  /// When the next timer is due. Not if empty().
  [[nodiscard]] TimePoint next() const { return heap_.front().when; }
  /// Takes out the next timer if it is due at `now`.
  [[nodiscard]] bool take_due(TimePoint now, Executor::Task& task);

 private:
  struct Entry {
    TimePoint when;
    std::uint64_t order;
    std::uint32_t slot;
    [[nodiscard]] bool before(const Entry& other) const {
      return when != other.when ? when < other.when : order < other.order;
    }
  };
  /// What an id names: its low half is the slot, its high half must match the slot's generation.
  struct Slot {
    Executor::Task task;
    std::uint32_t generation = 1;
    std::uint32_t at = 0;  // in the heap, or the next free slot
  };

  Executor::Task take(std::size_t at);
  void sift_up(std::size_t at, const Entry& entry);
  void sift_down(std::size_t at, const Entry& entry);
  void place(std::size_t at, const Entry& entry);

  std::vector<Entry> heap_;
  std::deque<Slot> slots_;  // which grows by little at a time
  std::uint32_t first_free_ = kNone;
  std::uint64_t last_order_ = 0;

  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
};

}  // namespace sluice
