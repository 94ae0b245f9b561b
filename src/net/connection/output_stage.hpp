#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <sys/uio.h>
#include <vector>

#include "core/bytes.hpp"
#include "core/client_memory.hpp"
#include "core/clock.hpp"
#include "net/connection/input_buffer.hpp"

namespace sluice {

/// Parts of one writev(2).
inline constexpr std::size_t kWritevParts = 16;
/// Shared blocks up to this size are cheaper to copy than to send as a part of their own.
inline constexpr std::size_t kCopiedBlock = 1024;
/// Text from this size on is taken over: a copy would touch many fresh pages.
inline constexpr std::size_t kTakenText = std::size_t{64} << 10U;

/// What may wait to be sent on one connection, in bytes.
struct OutputLimits {
  std::size_t high_water = std::size_t{256} << 10U;  // above it, senders are told to wait
  std::size_t low_water = std::size_t{64} << 10U;    // at it, they are told to go on
  /// With more than this waiting, nothing can be added, and the peer is given up. Messages may be
  /// longer: those that wait do not count for what follows them.
  std::size_t max_queued = std::size_t{4} << 20U;
  Duration stall_timeout = std::chrono::seconds(30);  // a peer that takes nothing; 0: for ever
};

/// What an OutputStage has while something waits to be sent.
struct UnsentOutput {
  struct Block {
    Bytes bytes;
    std::size_t offset;
    std::size_t size;
    std::size_t own;  // bytes that it takes, if it is text of this stage
  };
  /// A message above the limit.
  struct LongMessage {
    std::size_t end;  // among the unsent bytes
    std::size_t size;
  };

  [[nodiscard]] std::size_t size() const { return in_blocks + text.size() - text_sent; }

  std::vector<Block> blocks;
  std::size_t first_block = 0;  // those before it have been sent
  std::size_t in_blocks = 0;
  std::size_t own_in_blocks = 0;  // bytes of memory, of text that blocks have taken over
  std::string text;               // behind the blocks
  std::size_t text_sent = 0;
  std::size_t noted = 0;  // of size(), what is whole messages
  std::vector<LongMessage> long_messages;
  CoarseHold hold;
};

/// Bytes that wait to be sent, in order: text that is appended in place, and blocks shared with
/// other connections. Knows when its senders must wait. Holds next to no memory while empty; its
/// text counts in the source's share. The pool may be another one while it is empty. Belongs to the
/// pool's loop.
class OutputStage {
 public:
  /// The limits must outlive every call.
  explicit OutputStage(const OutputLimits& limits) : limits_(&limits) {}
  ~OutputStage() = default;
  OutputStage(const OutputStage&) = delete;
  OutputStage& operator=(const OutputStage&) = delete;

  [[nodiscard]] const OutputLimits& limits() const { return *limits_; }
  /// Unsent bytes.
  [[nodiscard]] std::size_t size() const { return unsent_ == nullptr ? 0 : unsent_->size(); }
  [[nodiscard]] bool empty() const { return size() == 0; }

  /// Whether anything may be added. If not, the peer does not keep up: the connection is to be
  /// given up.
  [[nodiscard]] bool has_capacity() const {
    return unsent_ == nullptr || unsent_->size() <= limits_->max_queued + in_long();
  }
  /// Whether the share had no room for what waits. If it still waits after an attempt to send it,
  /// the connection is to be given up.
  [[nodiscard]] bool is_over_share() const { return over_share_; }
  /// What the text of a message is appended to. Append only, then call added() or note_message();
  /// valid until the next call. What failed in between, for want of memory, leaves nothing.
  std::string& text(BufferPool& pool) {
    drop_unfinished();
    std::string& text = unsent(pool).text;
    if (text.capacity() < kMinText) text.reserve(kTextCapacity);
    return text;
  }
  /// Queues `size` bytes of `bytes` from `offset`, a whole message, without a copy, or nothing at
  /// all and throws std::bad_alloc. added() must follow.
  void share(BufferPool& pool, const Bytes& bytes, std::size_t offset, std::size_t size);
  /// Ends the message that text() has begun with `rest`, which is not copied if it is long. added()
  /// must follow.
  void take(BufferPool& pool, std::string&& rest);
  /// Says that what has been added since the last call is one whole message.
  void note_message() noexcept;
  /// Drops what has been added since then.
  void drop_unfinished() noexcept {
    if (unsent_ == nullptr) return;
    const std::size_t unfinished = unsent_->size() - unsent_->noted;
    if (unfinished != 0) unsent_->text.resize(unsent_->text.size() - unfinished);
  }
  /// As note_message(). False: the sender must wait until is_drained().
  bool added(const BufferSource& source);

  /// Whether senders were told to wait.
  [[nodiscard]] bool is_full() const { return full_; }
  /// Whether senders that were told to wait may go on; true once.
  bool is_drained();

  /// Points `parts` at the first bytes. Returns how many parts it used; `total` is their size.
  std::size_t gather(std::span<iovec> parts, std::size_t& total) const;
  /// Drops bytes that have been sent, and gives memory back that is left empty.
  void consume(const BufferSource& source, std::size_t bytes) noexcept;
  /// Drops them all. Senders that wait may go on, as is_drained() says.
  void clear(BufferPool& pool) noexcept;

 private:
  static constexpr std::size_t kMinText = 64;
  static constexpr std::size_t kTextCapacity = 1024;

  UnsentOutput& unsent(BufferPool& pool) {
    if (unsent_ == nullptr) unsent_ = pool.take_unsent();
    return *unsent_;
  }
  static void add_block(UnsentOutput& unsent, UnsentOutput::Block block);
  /// Unsent bytes of long messages.
  [[nodiscard]] std::size_t in_long() const;
  void compact() noexcept;
  void draw(const std::shared_ptr<MemoryShare>& share);

  const OutputLimits* limits_;
  std::unique_ptr<UnsentOutput> unsent_;  // null while there is nothing
  bool full_ = false;
  bool over_share_ = false;
};

}  // namespace sluice
