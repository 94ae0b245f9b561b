#include "net/input_buffer.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace sluice {
namespace {

constexpr std::size_t kPooledInputs = 256;
constexpr std::size_t kPooledTexts = 64;
constexpr std::size_t kTextCapacity = 1024;
constexpr std::size_t kMaxPooledText = std::size_t{64} << 10U;

}  // namespace

BufferPool::BufferPool(MemoryBudget* budget) : budget_(budget) {
  // So that to give something back needs no memory.
  inputs_.reserve(kPooledInputs);
  texts_.reserve(kPooledTexts);
}

std::span<char> BufferPool::scratch() {
  if (scratch_ == nullptr) scratch_.reset(new char[kScratchSize]);
  return {scratch_.get(), kScratchSize};
}

std::unique_ptr<char[]> BufferPool::take_input() {
  if (inputs_.empty()) return std::unique_ptr<char[]>(new char[kInputSize]);
  std::unique_ptr<char[]> buffer = std::move(inputs_.back());
  inputs_.pop_back();
  return buffer;
}

void BufferPool::give_input(std::unique_ptr<char[]> buffer) noexcept {
  if (inputs_.size() < kPooledInputs) inputs_.push_back(std::move(buffer));
}

std::string BufferPool::take_text() {
  std::string text;
  if (texts_.empty()) {
    text.reserve(kTextCapacity);
  } else {
    text = std::move(texts_.back());
    texts_.pop_back();
  }
  return text;
}

void BufferPool::give_text(std::string text) noexcept {
  if (texts_.size() >= kPooledTexts || text.capacity() > kMaxPooledText) return;
  text.clear();
  texts_.push_back(std::move(text));
}

std::span<char> InputBuffer::room() {
  if (data_ == nullptr) {
    const std::span<char> scratch = pool_->scratch();
    data_ = scratch.data();
    capacity_ = scratch.size();
  } else if (end_ == capacity_) {
    if (begin_ >= capacity_ / 2) {
      std::memmove(data_, data_ + begin_, size());
      end_ -= begin_;
      begin_ = 0;
    } else if (!own(capacity_ * 2)) {
      return {};
    }
  }
  return {data_ + end_, capacity_ - end_};
}

void InputBuffer::consume(std::size_t bytes) {
  begin_ += bytes;
  if (begin_ == end_) clear();
}

/// Moves the bytes into owned memory of at least `capacity`. False if there is none.
bool InputBuffer::own(std::size_t capacity) {
  std::unique_ptr<char[]> larger;
  if (capacity <= BufferPool::kInputSize) {
    capacity = BufferPool::kInputSize;
    larger = pool_->take_input();
  } else {
    if (!share_.hold(pool_->budget(), capacity)) return false;
    larger.reset(new char[capacity]);
  }
  const std::size_t kept = size();
  if (kept > 0) std::memcpy(larger.get(), data_ + begin_, kept);
  if (owned_ != nullptr && capacity_ == BufferPool::kInputSize) {
    pool_->give_input(std::move(owned_));
  }
  owned_ = std::move(larger);
  data_ = owned_.get();
  begin_ = 0;
  end_ = kept;
  capacity_ = capacity;
  return true;
}

bool InputBuffer::settle() {
  // A long message leaves no more behind than what came after it needs.
  const bool is_too_large = capacity_ > BufferPool::kInputSize && size() <= BufferPool::kInputSize;
  const bool is_kept = empty() || (owned_ != nullptr && !is_too_large) || own(size());
  if (empty() || !is_kept) disown();
  return is_kept;
}

void InputBuffer::disown() noexcept {
  if (owned_ != nullptr && capacity_ == BufferPool::kInputSize) {
    pool_->give_input(std::move(owned_));
  }
  owned_ = nullptr;
  share_.release(pool_->budget());
  data_ = nullptr;
  capacity_ = 0;
  clear();
}

}  // namespace sluice
