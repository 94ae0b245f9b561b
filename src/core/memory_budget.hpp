#pragma once

#include <atomic>
#include <cstddef>

namespace sluice {

/// Bytes that many owners on many threads draw from one pot. Thread-safe, lock-free.
class MemoryBudget {
 public:
  explicit MemoryBudget(std::size_t limit) : limit_(limit) {}

  /// Takes `bytes` from the pot, or takes nothing and returns false if they are not there.
  bool try_acquire(std::size_t bytes) {
    std::size_t used = used_.load(std::memory_order_relaxed);
    do {
      if (bytes > limit_ || used > limit_ - bytes) return false;
    } while (!used_.compare_exchange_weak(used, used + bytes, std::memory_order_relaxed));
    return true;
  }
  /// Takes `bytes` even if they are not there: for what must not fail.
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

/// What one owner holds of a budget, kept up in coarse steps: who holds little never touches the
/// budget, which all threads share. Not thread-safe. Empty when it is destroyed: only release()
/// gives back, for the owner may outlive the budget.
class BudgetShare {
 public:
  /// Says how many bytes are held now. False: the budget has not so many; the share is as before.
  /// Without a budget there is no limit.
  [[nodiscard]] bool hold(MemoryBudget* budget, std::size_t bytes) {
    if (budget == nullptr) return true;
    if (bytes <= kFree) {
      if (drawn_ != 0) release(budget);
      return true;
    }
    // Neither a step too little nor two too many.
    if (bytes <= drawn_ && drawn_ - bytes < 2 * kStep) return true;
    const std::size_t due = (bytes + kStep - 1) / kStep * kStep;
    if (due > drawn_) {
      if (!budget->try_acquire(due - drawn_)) return false;
    } else {
      budget->release(drawn_ - due);
    }
    drawn_ = due;
    return true;
  }
  void release(MemoryBudget* budget) {
    if (budget != nullptr && drawn_ != 0) budget->release(drawn_);
    drawn_ = 0;
  }

  /// What it has of the budget now.
  [[nodiscard]] std::size_t drawn() const { return drawn_; }

  static constexpr std::size_t kFree = std::size_t{16} << 10U;
  static constexpr std::size_t kStep = std::size_t{64} << 10U;

 private:
  std::size_t drawn_ = 0;
};

}  // namespace sluice
