#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <sys/uio.h>
#include <vector>

#include "core/bytes.hpp"
#include "net/input_buffer.hpp"

namespace sluice {

/// Parts of one writev(2).
inline constexpr std::size_t kWritevParts = 16;
/// Shared blocks up to this size are cheaper to copy than to send as a part of their own.
inline constexpr std::size_t kCopiedBlock = 1024;

/// Bytes that wait to be sent, in order: text that is appended in place, and blocks shared with
/// other connections. Holds next to no memory while empty. Belongs to the pool's loop.
class OutputQueue {
 public:
  /// The pool must outlive every call but the destructor.
  explicit OutputQueue(BufferPool& pool) : pool_(&pool) {}

  /// Borrows from that pool from now on.
  void use(BufferPool& pool) { pool_ = &pool; }
  ~OutputQueue() = default;
  OutputQueue(const OutputQueue&) = delete;
  OutputQueue& operator=(const OutputQueue&) = delete;

  /// Unsent bytes.
  [[nodiscard]] std::size_t size() const { return in_blocks_ + text_.size() - text_sent_; }
  [[nodiscard]] bool empty() const { return size() == 0; }

  /// What text is appended to. Append only; valid until the next call.
  std::string& text() {
    if (text_.capacity() < kMinText) text_ = pool_->take_text();
    return text_;
  }
  /// Queues `size` bytes of `bytes` from `offset` without copying them.
  void share(const Bytes& bytes, std::size_t offset, std::size_t size);

  /// Points `parts` at the first bytes. Returns how many parts it used; `total` is their size.
  std::size_t gather(std::span<iovec> parts, std::size_t& total) const;
  /// Drops bytes that have been sent, and gives memory back that is left empty.
  void consume(std::size_t bytes);
  void clear();

 private:
  static constexpr std::size_t kMinText = 64;

  struct Block {
    Bytes bytes;
    std::size_t offset;
    std::size_t size;
  };

  BufferPool* pool_;
  std::vector<Block> blocks_;
  std::size_t first_block_ = 0;  // those before it have been sent
  std::size_t in_blocks_ = 0;
  std::string text_;  // behind the blocks
  std::size_t text_sent_ = 0;
};

}  // namespace sluice
