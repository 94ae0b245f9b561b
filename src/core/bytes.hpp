#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace sluice {

/// Immutable bytes with a reference count, so that data for a thousand readers is encoded only
/// once. Copying is cheap. As thread-safe as std::shared_ptr.
class Bytes {
 public:
  Bytes() = default;
  /// Takes ownership of `data`. If it throws std::bad_alloc, `data` is unchanged.
  explicit Bytes(std::string&& data) : Bytes(std::move(data), nullptr) {}
  /// Also owns `with` and releases it together with the bytes, on whichever thread drops the last
  /// reference.
  Bytes(std::string&& data, std::shared_ptr<void> with)
      : block_(new Block{.references = {1}, .data = std::move(data), .with = std::move(with)}) {}
  Bytes(const Bytes& other) : block_(other.block_) {
    if (block_ != nullptr) block_->references.fetch_add(1, std::memory_order_relaxed);
  }
  Bytes(Bytes&& other) noexcept : block_(std::exchange(other.block_, nullptr)) {}
  Bytes& operator=(Bytes other) noexcept {
    std::swap(block_, other.block_);
    return *this;
  }
  ~Bytes() {
    if (block_ != nullptr && block_->references.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      delete block_;
    }
  }

  [[nodiscard]] std::string_view view() const {
    return block_ == nullptr ? std::string_view() : std::string_view(block_->data);
  }
  [[nodiscard]] std::size_t size() const { return view().size(); }
  [[nodiscard]] bool empty() const { return view().empty(); }

 private:
  struct Block {
    std::atomic<std::uint32_t> references;
    std::string data;
    std::shared_ptr<void> with;
  };
  Block* block_ = nullptr;
};

}  // namespace sluice
