#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <sys/uio.h>
#include <vector>

#include "core/bytes.hpp"
#include "core/clock.hpp"
#include "core/sharing/client_memory.hpp"
#include "net/connection/input_buffer.hpp"

namespace sluice {

/// The maximum number of parts in one writev(2).
inline constexpr std::size_t kWritevParts = 16;
/// Shared blocks up to this size are cheaper to copy than to send as a part of their own.
inline constexpr std::size_t kCopiedBlock = 1024;
/// Text of at least this size is moved instead of copied: a copy would touch many fresh pages.
inline constexpr std::size_t kTakenText = std::size_t{64} << 10U;

/// Limits of the output that waits on one connection, in bytes.
struct OutputLimits {
  std::size_t high_water = std::size_t{256} << 10U;  // above it, senders are told to wait
  std::size_t low_water = std::size_t{64} << 10U;    // at it, they are told to go on
  /// If more than this waits, nothing can be added and the connection is given up. A message may be
  /// longer: long messages that wait are not counted for those that follow.
  std::size_t max_queued = std::size_t{4} << 20U;
  Duration stall_timeout = std::chrono::seconds(30);  // for a peer that takes nothing; 0: no limit
};

/// The state of an OutputStage that is not empty.
struct UnsentOutput {
  struct Block {
    Bytes bytes;
    std::size_t offset;
    std::size_t size;
    std::size_t own;  // memory in bytes if it is text of this stage, or 0
  };
  /// A message longer than max_queued.
  struct LongMessage {
    std::size_t end;  // its offset in the unsent bytes
    std::size_t size;
  };

  [[nodiscard]] std::size_t size() const { return in_blocks + text.size() - text_sent; }

  std::vector<Block> blocks;
  std::size_t first_block = 0;  // those before it have been sent
  std::size_t in_blocks = 0;
  std::size_t own_in_blocks = 0;  // memory in bytes of text that is now in blocks
  std::string text;               // sent after the blocks
  std::size_t text_sent = 0;
  std::size_t noted = 0;  // bytes of size() in whole messages
  std::vector<LongMessage> long_messages;
  CoarseHold hold;
};

/// The output queue of a connection: text that is appended in place, and blocks that connections
/// share, in order. Tells senders when to wait. Holds almost no memory while empty; its text is
/// counted in the source's share. While it is empty, the pool may be replaced by another. Belongs
/// to the pool's loop.
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

  /// Whether anything may be added. If not, the peer does not keep up, and the connection should be
  /// given up.
  [[nodiscard]] bool has_capacity() const {
    return unsent_ == nullptr || unsent_->size() <= limits_->max_queued + in_long();
  }
  /// Whether the share did not suffice for what waits. If that is so after an attempt to send it,
  /// the connection should be given up.
  [[nodiscard]] bool is_over_share() const { return over_share_; }
  /// The string that the text of a message is appended to. Append only, then call added() or
  /// note_message(). Valid until the next call. If appending throws, the incomplete message is
  /// dropped.
  std::string& text(BufferPool& pool) {
    drop_unfinished();
    std::string& text = unsent(pool).text;
    if (text.capacity() < kMinText) text.reserve(kTextCapacity);
    return text;
  }
  /// Queues `size` bytes of `bytes` from `offset` as a whole message, without a copy. If there is
  /// no memory, throws std::bad_alloc and queues nothing. added() must follow.
  void share(BufferPool& pool, const Bytes& bytes, std::size_t offset, std::size_t size);
  /// Appends `rest`, the end of the message that text() has begun, and may leave other memory in
  /// it. `rest` is not copied if it is long or no text waits. added() must follow.
  void take(BufferPool& pool, std::string&& rest);
  /// Marks what was added since the last call as one whole message.
  void note_message() noexcept;
  /// Drops what was added since then.
  void drop_unfinished() noexcept {
    if (unsent_ == nullptr) return;
    const std::size_t unfinished = unsent_->size() - unsent_->noted;
    if (unfinished != 0) unsent_->text.resize(unsent_->text.size() - unfinished);
  }
  /// As note_message(). Returns false if the sender must wait until is_drained().
  bool added(const BufferSource& source);

  /// Whether senders were told to wait.
  [[nodiscard]] bool is_full() const { return full_; }
  /// Whether senders that were told to wait may go on. Returns true once.
  bool is_drained();

  /// Points `parts` at the first bytes. Returns how many parts it used; `total` is their size.
  std::size_t gather(std::span<iovec> parts, std::size_t& total) const;
  /// Drops bytes that have been sent, and frees memory that is then empty.
  void consume(const BufferSource& source, std::size_t bytes) noexcept;
  /// Drops all bytes. is_drained() then lets waiting senders go on.
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
  std::unique_ptr<UnsentOutput> unsent_;  // null while empty
  bool full_ = false;
  bool over_share_ = false;
};

}  // namespace sluice
