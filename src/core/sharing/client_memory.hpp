#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include "core/sharing/memory_budget.hpp"

namespace sluice {

/// One client's share of a budget, across all loops. A client may hold as much as is still free. A
/// single client can therefore take half of the budget; with n other clients that take all they
/// can, it is one part in n + 2. So there is always room for the next client. Thread-safe,
/// lock-free.
class MemoryShare {
 public:
  explicit MemoryShare(MemoryBudget& budget) : budget_(&budget) {}

  /// Like the functions of MemoryBudget, within the share.
  bool try_acquire(std::size_t bytes) {
    const std::size_t used = used_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
    if (used <= free_bytes() && budget_->try_acquire(bytes)) return true;
    used_.fetch_sub(bytes, std::memory_order_relaxed);
    return false;
  }
  void acquire_beyond_limit(std::size_t bytes) {
    used_.fetch_add(bytes, std::memory_order_relaxed);
    budget_->acquire_beyond_limit(bytes);
  }
  /// Releasing 0 bytes does not access the budget, which may already be destroyed.
  void release(std::size_t bytes) {
    if (bytes == 0) return;
    used_.fetch_sub(bytes, std::memory_order_relaxed);
    budget_->release(bytes);
  }
  /// Whether less than a sixteenth of what the client may hold is left, or would be after taking
  /// `more` bytes.
  [[nodiscard]] bool is_short(std::size_t more = 0) const {
    const std::size_t free = free_bytes();
    return used_.load(std::memory_order_relaxed) + more > (free - std::min(free, more)) / 16 * 15;
  }

 private:
  [[nodiscard]] std::size_t free_bytes() const {
    const std::size_t used = budget_->used();
    return used < budget_->limit() ? budget_->limit() - used : 0;
  }

  MemoryBudget* budget_;
  std::atomic<std::size_t> used_ = 0;
};

/// Bytes of a share that one owner holds. The destructor releases them. Not thread-safe.
class MemoryHold {
 public:
  /// Without a share there is no limit.
  explicit MemoryHold(std::shared_ptr<MemoryShare> share = nullptr) : share_(std::move(share)) {}
  ~MemoryHold() { release(); }
  MemoryHold(MemoryHold&& other) noexcept
      : share_(std::move(other.share_)), bytes_(std::exchange(other.bytes_, 0)) {}
  MemoryHold& operator=(MemoryHold&& other) noexcept {
    std::swap(share_, other.share_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }

  /// Takes `bytes` more. Returns false and takes nothing if the share does not have them.
  [[nodiscard]] bool add(std::size_t bytes) {
    if (share_ == nullptr) return true;
    if (!share_->try_acquire(bytes)) return false;
    bytes_ += bytes;
    return true;
  }
  /// Takes over what `other` holds of the same share.
  void join(MemoryHold other) {
    if (share_ == nullptr) return std::swap(*this, other);
    bytes_ += std::exchange(other.bytes_, 0);
  }
  void remove(std::size_t bytes) {
    if (share_ == nullptr) return;
    bytes_ -= bytes;
    share_->release(bytes);
  }
  void release() {
    if (share_ != nullptr) share_->release(std::exchange(bytes_, 0));
  }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }

 private:
  std::shared_ptr<MemoryShare> share_;
  std::size_t bytes_ = 0;
};

/// Bytes of a share that one owner holds, accounted in coarse steps. An owner that holds little
/// never touches the share, which all threads use. The destructor releases the bytes. Not
/// thread-safe.
class CoarseHold {
 public:
  CoarseHold() = default;
  ~CoarseHold() { release(); }
  CoarseHold(CoarseHold&& other) noexcept
      : share_(std::move(other.share_)), drawn_(std::exchange(other.drawn_, 0)) {}
  CoarseHold& operator=(CoarseHold&& other) noexcept {
    std::swap(share_, other.share_);
    std::swap(drawn_, other.drawn_);
    return *this;
  }

  /// Sets how many bytes are held from now on, and of which share. Without a share there is no
  /// limit. Returns false and changes nothing if the share does not have the bytes.
  [[nodiscard]] bool hold(const std::shared_ptr<MemoryShare>& share, std::size_t bytes) {
    if (bytes <= kFree || share == nullptr) {
      release();
      return true;
    }
    const bool is_new = share != share_;
    // Unchanged if what is drawn is enough and less than two steps too much.
    if (!is_new && bytes <= drawn_ && drawn_ - bytes < 2 * kStep) return true;
    const std::size_t due = (bytes + kStep - 1) / kStep * kStep;
    const std::size_t had = is_new ? 0 : drawn_;
    if (due > had && !share->try_acquire(due - had)) return false;
    if (is_new) {
      release();
      share_ = share;
    } else if (due < had) {
      share->release(had - due);
    }
    drawn_ = due;
    return true;
  }
  void release() {
    if (drawn_ != 0) share_->release(std::exchange(drawn_, 0));
    share_ = nullptr;
  }

  static constexpr std::size_t kFree = std::size_t{16} << 10U;
  static constexpr std::size_t kStep = std::size_t{64} << 10U;

 private:
  std::shared_ptr<MemoryShare> share_;  // null while nothing is drawn
  std::size_t drawn_ = 0;
};

/// The memory shares of all clients. Thread-safe.
class ClientMemory {
 public:
  /// `budget` must live until the shares hold nothing more.
  explicit ClientMemory(MemoryBudget& budget);

  [[nodiscard]] MemoryBudget& budget() const { return *budget_; }
  /// The share of the client that `principal` counts as (client_of()). It is removed with its last
  /// handle.
  std::shared_ptr<MemoryShare> of(const std::string& principal);
  /// The client that has `share`, which of() has returned.
  static const std::string& client(const MemoryShare& share);

 private:
  struct Table;
  class Entry;

  MemoryBudget* budget_;
  std::shared_ptr<Table> table_;  // handles may outlive this
};

}  // namespace sluice
