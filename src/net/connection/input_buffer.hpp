#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "core/client_memory.hpp"

namespace sluice {

struct UnreadInput;
struct UnsentOutput;

/// Reads in a row, so that one busy peer does not keep the loop to itself.
inline constexpr int kReadsInARow = 4;

/// Memory that the connections of one loop take turns with, so that an idle connection holds none
/// and a busy one allocates none. Belongs to its loop.
class BufferPool {
 public:
  BufferPool();
  ~BufferPool();
  BufferPool(const BufferPool&) = delete;
  BufferPool& operator=(const BufferPool&) = delete;

  static constexpr std::size_t kInputSize = 4096;
  static constexpr std::size_t kScratchSize = std::size_t{64} << 10U;

  /// What one connection at a time reads into, until its handler returns.
  [[nodiscard]] std::span<char> scratch();

  /// A buffer of kInputSize bytes.
  [[nodiscard]] std::unique_ptr<char[]> take_input();
  void give_input(std::unique_ptr<char[]> buffer) noexcept;

  /// For an InputBuffer that has none.
  [[nodiscard]] std::unique_ptr<UnreadInput> take_unread();
  void give_unread(std::unique_ptr<UnreadInput> unread) noexcept;

  /// For an OutputStage that has none; empty.
  [[nodiscard]] std::unique_ptr<UnsentOutput> take_unsent();
  /// It has to be empty. Large ones are freed.
  void give_unsent(std::unique_ptr<UnsentOutput> unsent) noexcept;

 private:
  std::unique_ptr<char[]> scratch_;
  std::vector<std::unique_ptr<char[]>> inputs_;
  std::vector<std::unique_ptr<UnreadInput>> unread_;
  std::vector<std::unique_ptr<UnsentOutput>> unsent_;
};

/// Where a connection's buffers take their memory from: what is small from the pool of its loop,
/// and what is large is counted in its client's share; null: there is no limit.
struct BufferSource {
  BufferPool& pool;
  const std::shared_ptr<MemoryShare>& share;
};

/// What an InputBuffer has while there is something in it.
struct UnreadInput {
  char* data = nullptr;  // owned or the scratch
  std::unique_ptr<char[]> owned;
  CoarseHold hold;
  std::size_t begin = 0;
  std::size_t end = 0;
  std::size_t capacity = 0;
};

/// Bytes that a connection has received and not yet handled. Borrows the pool's scratch during one
/// event, and owns memory only for what must be kept between events. The pool may be another one
/// after each settle(). Belongs to the pool's loop.
class InputBuffer {
 public:
  InputBuffer() = default;
  ~InputBuffer() = default;
  InputBuffer(const InputBuffer&) = delete;
  InputBuffer& operator=(const InputBuffer&) = delete;

  [[nodiscard]] std::size_t size() const {
    return unread_ == nullptr ? 0 : unread_->end - unread_->begin;
  }
  [[nodiscard]] bool empty() const { return size() == 0; }
  [[nodiscard]] bool holds_memory() const {
    return unread_ != nullptr && unread_->owned != nullptr;
  }
  [[nodiscard]] std::span<char> bytes() const {
    if (unread_ == nullptr) return {};
    return {unread_->data + unread_->begin, size()};
  }
  [[nodiscard]] std::string_view view() const { return {bytes().data(), size()}; }

  /// Room behind the bytes; none if the share is used up. It may be the pool's scratch: settle()
  /// must follow within the same event.
  std::span<char> writable_space(const BufferSource& source);
  /// Says that `bytes` of the room have been filled.
  void commit(std::size_t bytes) { unread_->end += bytes; }
  /// Drops bytes from the front.
  void consume(std::size_t bytes);
  /// Drops what is behind the first `size` bytes.
  void truncate(std::size_t size) {
    if (unread_ != nullptr) unread_->end = unread_->begin + size;
  }
  void clear() {
    if (unread_ != nullptr) unread_->begin = unread_->end = 0;
  }

  /// Moves what is left out of the scratch, and gives back owned memory that has nothing in it.
  /// False if the share is used up: then what was left is lost.
  [[nodiscard]] bool settle(const BufferSource& source);

 private:
  bool own(const BufferSource& source, std::size_t capacity);
  void give_owned(BufferPool& pool) noexcept;
  void disown(BufferPool& pool) noexcept;

  std::unique_ptr<UnreadInput> unread_;  // null while there is nothing, between events
};

}  // namespace sluice
