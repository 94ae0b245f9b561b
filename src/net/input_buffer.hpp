#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "core/memory_budget.hpp"

namespace sluice {

struct UnreadInput;
struct UnsentOutput;

/// Reads in a row, so that one busy peer does not keep the loop to itself.
inline constexpr int kReadsInARow = 4;

/// Memory that the connections of one loop take turns with, so that an idle connection holds none
/// and a busy one allocates none. Belongs to its loop.
class BufferPool {
 public:
  /// What is large draws on `budget`, which outlives the pool; null: there is no limit.
  explicit BufferPool(MemoryBudget* budget = nullptr);
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

  [[nodiscard]] MemoryBudget* budget() const { return budget_; }

 private:
  MemoryBudget* budget_;
  std::unique_ptr<char[]> scratch_;
  std::vector<std::unique_ptr<char[]>> inputs_;
  std::vector<std::unique_ptr<UnreadInput>> unread_;
  std::vector<std::unique_ptr<UnsentOutput>> unsent_;
};

/// What an InputBuffer has while there is something in it.
struct UnreadInput {
  char* data = nullptr;  // owned or the scratch
  std::unique_ptr<char[]> owned;
  BudgetShare share;
  std::size_t begin = 0;
  std::size_t end = 0;
  std::size_t capacity = 0;
};

/// Bytes that a connection has received and not yet handled. Borrows the pool's scratch during one
/// event, and owns memory only for what must be kept between events, which it draws on the pool's
/// budget; clear() and settle() it before it goes. Belongs to the pool's loop.
class InputBuffer {
 public:
  /// The pool must outlive every call but the destructor.
  explicit InputBuffer(BufferPool& pool) : pool_(&pool) {}
  ~InputBuffer() = default;
  InputBuffer(const InputBuffer&) = delete;
  InputBuffer& operator=(const InputBuffer&) = delete;

  /// Borrows from that pool, which draws on the same budget, from now on. Only between events.
  void use(BufferPool& pool) { pool_ = &pool; }

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

  /// Room behind the bytes; none if the budget is used up. It may be the pool's scratch: settle()
  /// must follow within the same event.
  std::span<char> room();
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
  /// False if the budget is used up: then what was left is lost.
  [[nodiscard]] bool settle();

 private:
  bool own(std::size_t capacity);
  void give_owned() noexcept;
  void disown() noexcept;

  BufferPool* pool_;
  std::unique_ptr<UnreadInput> unread_;  // null while there is nothing, between events
};

}  // namespace sluice
