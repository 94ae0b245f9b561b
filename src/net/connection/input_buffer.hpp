#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "core/sharing/client_memory.hpp"

namespace sluice {

struct UnreadInput;
struct UnsentOutput;

/// Reads from one connection in a row. The limit keeps a busy peer from occupying the loop.
inline constexpr int kReadsInARow = 4;

/// Buffers that the connections of one loop share, so that an idle connection holds no memory and a
/// busy one allocates none. Belongs to its loop.
class BufferPool {
 public:
  BufferPool();
  ~BufferPool();
  BufferPool(const BufferPool&) = delete;
  BufferPool& operator=(const BufferPool&) = delete;

  static constexpr std::size_t kInputSize = 4096;
  static constexpr std::size_t kScratchSize = std::size_t{64} << 10U;

  /// The buffer that one connection at a time reads into, until its handler returns.
  [[nodiscard]] std::span<char> scratch();

  /// A buffer of kInputSize bytes.
  [[nodiscard]] std::unique_ptr<char[]> take_input();
  void give_input(std::unique_ptr<char[]> buffer) noexcept;

  /// For an InputBuffer that has none.
  [[nodiscard]] std::unique_ptr<UnreadInput> take_unread();
  void give_unread(std::unique_ptr<UnreadInput> unread) noexcept;

  /// For an OutputStage that has none; empty.
  [[nodiscard]] std::unique_ptr<UnsentOutput> take_unsent();
  /// `unsent` must be empty. Large ones are freed.
  void give_unsent(std::unique_ptr<UnsentOutput> unsent) noexcept;

 private:
  std::unique_ptr<char[]> scratch_;
  std::vector<std::unique_ptr<char[]>> inputs_;
  std::vector<std::unique_ptr<UnreadInput>> unread_;
  std::vector<std::unique_ptr<UnsentOutput>> unsent_;
};

/// Where a connection's buffers get their memory from. Small buffers come from the pool of the
/// loop; large ones are counted in the client's share. A null share means that there is no limit.
struct BufferSource {
  BufferPool& pool;
  const std::shared_ptr<MemoryShare>& share;
};

/// The state of an InputBuffer that is not empty.
struct UnreadInput {
  char* data = nullptr;  // the owned buffer or the pool's scratch
  std::unique_ptr<char[]> owned;
  CoarseHold hold;
  std::size_t begin = 0;
  std::size_t end = 0;
  std::size_t capacity = 0;
};

/// Bytes that a connection has received and not yet handled. Borrows the pool's scratch during one
/// event, and owns memory only for what must be kept between events. After settle(), the pool may
/// be replaced by another. Belongs to the pool's loop.
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

  /// Free space after the bytes; empty if the share is used up. It may be the pool's scratch, so
  /// settle() must follow within the same event.
  std::span<char> writable_space(const BufferSource& source);
  /// Adds the first `bytes` of the free space, which have been filled.
  void commit(std::size_t bytes) { unread_->end += bytes; }
  /// Drops bytes from the front.
  void consume(std::size_t bytes);
  /// Drops everything after the first `size` bytes.
  void truncate(std::size_t size) {
    if (unread_ != nullptr) unread_->end = unread_->begin + size;
  }
  void clear() {
    if (unread_ != nullptr) unread_->begin = unread_->end = 0;
  }

  /// Moves the remaining bytes out of the scratch, and gives back owned memory that is empty.
  /// Returns false if the share is used up; then the remaining bytes are dropped.
  [[nodiscard]] bool settle(const BufferSource& source);

 private:
  bool own(const BufferSource& source, std::size_t capacity);
  void give_owned(BufferPool& pool) noexcept;
  void disown(BufferPool& pool) noexcept;

  std::unique_ptr<UnreadInput> unread_;  // null while empty, between events
};

}  // namespace sluice
