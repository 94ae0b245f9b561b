#include "net/loop/timer_heap.hpp"

#include <utility>

namespace sluice {
namespace {

/// Children of a node. Four of them share a cache line or two, and the heap stays flat.
constexpr std::size_t kArity = 4;

}  // namespace

TimerHeap::TimerId TimerHeap::add(TimePoint when, Executor::Task task) {
  std::uint32_t index = first_free_;
  if (index == kNone) {
    index = static_cast<std::uint32_t>(slots_.size());
    slots_.emplace_back();
  } else {
    first_free_ = slots_[index].at;
  }
  slots_[index].task = std::move(task);
  heap_.emplace_back();
  sift_up(heap_.size() - 1, {.when = when, .order = ++last_order_, .slot = index});
  return TimerId{slots_[index].generation} << 32U | index;
}

void TimerHeap::remove(TimerId id) {
  const auto index = static_cast<std::uint32_t>(id);
  if (index >= slots_.size() || slots_[index].generation != id >> 32U) return;
  // Destroyed after the heap has changed, because its destructor may call this object.
  const Executor::Task task = take(slots_[index].at);
}

bool TimerHeap::take_due(TimePoint now, Executor::Task& task) {
  if (heap_.empty() || heap_.front().when > now) return false;
  task = take(0);
  return true;
}

Executor::Task TimerHeap::take(std::size_t at) {
  const std::uint32_t index = heap_[at].slot;
  Slot& slot = slots_[index];
  Executor::Task task = std::exchange(slot.task, {});
  // The id 0 is never used.
  if (++slot.generation == 0) slot.generation = 1;
  slot.at = std::exchange(first_free_, index);

  const Entry last = heap_.back();
  heap_.pop_back();
  if (at < heap_.size()) {
    if (at > 0 && last.before(heap_[(at - 1) / kArity])) {
      sift_up(at, last);
    } else {
      sift_down(at, last);
    }
  }
  return task;
}

void TimerHeap::sift_up(std::size_t at, const Entry& entry) {
  while (at > 0) {
    const std::size_t parent = (at - 1) / kArity;
    if (!entry.before(heap_[parent])) break;
    place(at, heap_[parent]);
    at = parent;
  }
  place(at, entry);
}

void TimerHeap::sift_down(std::size_t at, const Entry& entry) {
  for (;;) {
    const std::size_t first = at * kArity + 1;
    if (first >= heap_.size()) break;
    std::size_t least = first;
    for (std::size_t child = first + 1; child < first + kArity && child < heap_.size(); ++child) {
      if (heap_[child].before(heap_[least])) least = child;
    }
    if (!heap_[least].before(entry)) break;
    place(at, heap_[least]);
    at = least;
  }
  place(at, entry);
}

void TimerHeap::place(std::size_t at, const Entry& entry) {
  heap_[at] = entry;
  slots_[entry.slot].at = static_cast<std::uint32_t>(at);
}

}  // namespace sluice
