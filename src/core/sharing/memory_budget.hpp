#pragma once

#include <atomic>
#include <cstddef>

namespace sluice {

/// A limited number of bytes that many owners on many threads share. Thread-safe, lock-free.
class MemoryBudget {
 public:
  explicit MemoryBudget(std::size_t limit) : limit_(limit) {}

  /// Takes `bytes` from the budget. If fewer are left, takes nothing and returns false.
  bool try_acquire(std::size_t bytes) {
    std::size_t used = used_.load(std::memory_order_relaxed);
    do {
      if (bytes > limit_ || used > limit_ - bytes) return false;
    } while (!used_.compare_exchange_weak(used, used + bytes, std::memory_order_relaxed));
    return true;
  }
  /// Takes `bytes` even if the limit is exceeded, for what must not fail.
  void acquire_beyond_limit(std::size_t bytes) {
    used_.fetch_add(bytes, std::memory_order_relaxed);
  }
  void release(std::size_t bytes) { used_.fetch_sub(bytes, std::memory_order_relaxed); }

  [[nodiscard]] std::size_t used() const { return used_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::size_t limit() const { return limit_; }

 private:
  const std::size_t limit_;
  std::atomic<std::size_t> used_ = 0;
};

}  // namespace sluice
