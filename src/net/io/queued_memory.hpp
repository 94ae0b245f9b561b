#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace sluice {

/// Keeps what messages take in somebody's memory until the bytes of them have left a queue. Bytes
/// are counted from the beginning of the connection.
class QueuedMemory {
 public:
  /// `memory` is kept until so many bytes have left. Null: there is nothing to keep.
  void keep(std::shared_ptr<void> memory, std::uint64_t until) {
    if (memory != nullptr) kept_.push_back({until, std::move(memory)});
  }
  /// So many bytes have left.
  void release(std::uint64_t left) {
    if (kept_.empty()) return;
    while (first_ < kept_.size() && kept_[first_].until <= left) kept_[first_++].memory.reset();
    // Moving the rest is worth it only now and then.
    if (first_ < kept_.size() && first_ <= kept_.size() / 2) return;
    kept_.erase(kept_.begin(), kept_.begin() + static_cast<std::ptrdiff_t>(first_));
    first_ = 0;
    if (kept_.empty()) kept_.shrink_to_fit();
  }
  void clear() {
    kept_.clear();
    first_ = 0;
  }

 private:
  struct Kept {
    std::uint64_t until;
    std::shared_ptr<void> memory;
  };

  std::vector<Kept> kept_;
  std::size_t first_ = 0;  // that has not left
};

}  // namespace sluice
