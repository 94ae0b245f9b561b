#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "engine/rkllm/abi/common.hpp"
#include "net/loop/descriptor.hpp"

namespace sluice::rkllm {

/// One call of a runtime's callback, as it goes to another process.
struct TokenRecord {
  enum class Kind : std::uint32_t { text, logits, hidden_states, figures };

  std::uint64_t run = 0;  // its number
  CallState state = CallState::normal;
  std::int32_t token_id = 0;
  Kind kind = Kind::text;     // of `bytes`: UTF-8 or a part of it, floats, or a PerfStat
  std::uint32_t columns = 0;  // of floats: how many a token has
  std::string_view bytes = {};
};

/// A bounded queue of records in memory that two processes share (memfd_create(2)). One thread
/// writes and one reads; neither waits for the other. Whoever finds the queue empty, or full, says
/// so, and is told by an eventfd(2) when that has changed. The reader trusts nothing in the memory:
/// the process that writes may have been damaged.
class TokenRing {
 public:
  /// What the processes share.
  struct Files {
    Descriptor memory;
    Descriptor filled;   // an eventfd: there is something to read
    Descriptor drained;  // an eventfd: there is room
  };

  /// For the reader. `bytes`: what the records take at most, a power of two. Error 500: the system
  /// has no memory or descriptors left.
  static Result<TokenRing> make(std::size_t bytes);
  /// For the writer: takes what make() has made. Error 422: it is something else.
  static Result<TokenRing> attach(Files files);
  TokenRing(TokenRing&& other) noexcept;
  TokenRing& operator=(TokenRing&&) = delete;
  ~TokenRing();

  [[nodiscard]] const Files& files() const { return files_; }
  [[nodiscard]] std::size_t capacity() const { return capacity_; }

  /// Returns false if there is no room for the record.
  bool write(const TokenRecord& record);
  /// Whether there is ever room for it.
  [[nodiscard]] bool can_hold(const TokenRecord& record) const;
  /// Waits until the reader has taken something since the last write() that returned false.
  void wait_for_room() const;

  /// The next record, whose bytes are valid until the next call; nothing, if there is none. Error:
  /// the memory is damaged.
  Result<std::optional<TokenRecord>> read();
  /// To be called when `filled` is ready. Then read() until there is nothing, and call
  /// may_rest().
  void clear_filled() const;
  /// The reader wants to be told of the next record. Returns false if there is one already.
  bool may_rest();

 private:
  struct Shared;
  TokenRing(Files files, void* memory, std::size_t capacity);

  [[nodiscard]] Shared& shared() const;
  void copy_in(std::uint64_t at, std::span<const std::byte> bytes) const;
  void copy_out(std::uint64_t at, std::span<std::byte> bytes) const;

  Files files_;
  void* memory_;  // null if moved from
  std::size_t capacity_;
  std::uint64_t at_ = 0;          // where this side goes on
  std::vector<std::byte> taken_;  // the bytes of the last record that was read
};

}  // namespace sluice::rkllm
