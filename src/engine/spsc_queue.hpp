#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <optional>
#include <utility>

namespace sluice {

/// A bounded, lock-free queue from one thread to another. Only the producing thread may call
/// push(), and only the consuming thread pop(). `Capacity` must be a power of two.
template <class T, std::size_t Capacity>
class SpscQueue {
  static_assert((Capacity & (Capacity - 1)) == 0);

 public:
  /// Returns false if the queue is full; `value` has then not been moved from.
  bool push(T&& value) {
    const std::size_t tail = tail_.load(std::memory_order_relaxed);
    if (tail - head_.load(std::memory_order_acquire) == Capacity) return false;
    slots_[tail % Capacity] = std::move(value);
    tail_.store(tail + 1, std::memory_order_release);
    return true;
  }
  std::optional<T> pop() {
    const std::size_t head = head_.load(std::memory_order_relaxed);
    if (head == tail_.load(std::memory_order_acquire)) return std::nullopt;
    std::optional<T> value = std::move(slots_[head % Capacity]);
    head_.store(head + 1, std::memory_order_release);
    return value;
  }
  /// The size as seen by either thread. The other thread may change it at any time: the producer
  /// sees at most too many, the consumer at most too few.
  [[nodiscard]] std::size_t size() const {
    return tail_.load(std::memory_order_acquire) - head_.load(std::memory_order_acquire);
  }

 private:
  std::array<T, Capacity> slots_{};
  alignas(64) std::atomic<std::size_t> head_ = 0;
  alignas(64) std::atomic<std::size_t> tail_ = 0;
};

}  // namespace sluice
