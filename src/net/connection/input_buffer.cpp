#include "net/connection/input_buffer.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "net/connection/output_stage.hpp"

namespace sluice {
namespace {

constexpr std::size_t kPooledInputs = 256;
constexpr std::size_t kPooledStates = 64;
constexpr std::size_t kMaxPooledText = std::size_t{64} << 10U;

}  // namespace

BufferPool::BufferPool() {
  // So that giving something back allocates nothing.
  inputs_.reserve(kPooledInputs);
  unread_.reserve(kPooledStates);
  unsent_.reserve(kPooledStates);
}

BufferPool::~BufferPool() = default;

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

std::unique_ptr<UnreadInput> BufferPool::take_unread() {
  if (unread_.empty()) return std::make_unique<UnreadInput>();
  std::unique_ptr<UnreadInput> unread = std::move(unread_.back());
  unread_.pop_back();
  return unread;
}

void BufferPool::give_unread(std::unique_ptr<UnreadInput> unread) noexcept {
  if (unread_.size() == kPooledStates) return;
  *unread = {};
  unread_.push_back(std::move(unread));
}

std::unique_ptr<UnsentOutput> BufferPool::take_unsent() {
  if (unsent_.empty()) return std::make_unique<UnsentOutput>();
  std::unique_ptr<UnsentOutput> unsent = std::move(unsent_.back());
  unsent_.pop_back();
  return unsent;
}

void BufferPool::give_unsent(std::unique_ptr<UnsentOutput> unsent) noexcept {
  if (unsent_.size() == kPooledStates || unsent->text.capacity() > kMaxPooledText) return;
  unsent_.push_back(std::move(unsent));
}

std::span<char> InputBuffer::writable_space(const BufferSource& source) {
  if (unread_ == nullptr) unread_ = source.pool.take_unread();
  UnreadInput& unread = *unread_;
  if (unread.data == nullptr) {
    const std::span<char> scratch = source.pool.scratch();
    unread.data = scratch.data();
    unread.capacity = scratch.size();
  } else if (unread.end == unread.capacity) {
    if (unread.begin >= unread.capacity / 2) {
      std::memmove(unread.data, unread.data + unread.begin, size());
      unread.end -= unread.begin;
      unread.begin = 0;
    } else if (!own(source, unread.capacity * 2)) {
      return {};
    }
  }
  return {unread.data + unread.end, unread.capacity - unread.end};
}

void InputBuffer::consume(std::size_t bytes) {
  unread_->begin += bytes;
  if (empty()) clear();
}

/// Moves the bytes into owned memory of at least `capacity`. Returns false if the share is used up.
bool InputBuffer::own(const BufferSource& source, std::size_t capacity) {
  UnreadInput& unread = *unread_;
  std::unique_ptr<char[]> larger;
  if (capacity <= BufferPool::kInputSize) {
    capacity = BufferPool::kInputSize;
    larger = source.pool.take_input();
    unread.hold.release();
  } else {
    if (!unread.hold.hold(source.share, capacity)) return false;
    larger.reset(new char[capacity]);
  }
  const std::size_t kept = size();
  if (kept > 0) std::memcpy(larger.get(), unread.data + unread.begin, kept);
  give_owned(source.pool);
  unread.owned = std::move(larger);
  unread.data = unread.owned.get();
  unread.begin = 0;
  unread.end = kept;
  unread.capacity = capacity;
  return true;
}

void InputBuffer::give_owned(BufferPool& pool) noexcept {
  if (unread_->owned != nullptr && unread_->capacity == BufferPool::kInputSize) {
    pool.give_input(std::move(unread_->owned));
  }
}

bool InputBuffer::settle(const BufferSource& source) {
  if (unread_ == nullptr) return true;
  // What follows a long message moves to a small buffer if it fits.
  const bool is_too_large =
      unread_->capacity > BufferPool::kInputSize && size() <= BufferPool::kInputSize;
  const bool is_kept = empty() || (holds_memory() && !is_too_large) || own(source, size());
  if (empty() || !is_kept) disown(source.pool);
  return is_kept;
}

void InputBuffer::disown(BufferPool& pool) noexcept {
  give_owned(pool);
  pool.give_unread(std::move(unread_));
}

}  // namespace sluice
