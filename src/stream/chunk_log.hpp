#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "core/client_memory.hpp"

namespace sluice {

/// The number of a chunk in its stream, from 0.
using Seq = std::uint64_t;

/// What a chunk holds. `message` is a whole JSON-RPC message as it is; `end` closes the stream and
/// carries no text.
enum class ChunkKind : std::uint8_t { text, reasoning, tool_call, message, end };

/// One chunk as it is kept: its text already escaped as the inside of a JSON string, so that no
/// reader pays for that again; but for a message. Valid until the log is next changed.
struct Chunk {
  Seq seq = 0;
  ChunkKind kind = ChunkKind::text;
  std::string_view escaped;
};

/// The kept chunks of one stream: append at the back, release at the front, read anywhere.
///
/// Text lies in segments of up to 16 KiB, each with an index that grows towards it from the far
/// end; a chunk costs its bytes and 4 more, and the room kept for later ones is at most 8 bytes for
/// each one there is. Memory is taken from a client's share. Finding a chunk is a binary search
/// over segments, reading on from there is sequential. Belongs to one loop.
class ChunkLog {
 public:
  explicit ChunkLog(std::shared_ptr<MemoryShare> share) : share_(std::move(share)) {}
  ChunkLog(const ChunkLog&) = delete;
  ChunkLog& operator=(const ChunkLog&) = delete;
  ~ChunkLog();

  /// Appends a chunk of at most kMaxChunkBytes of escaped text. False if it is longer or the budget
  /// has no memory for it; then nothing has changed.
  bool append(ChunkKind kind, std::string_view escaped);

  /// Appends the chunk that closes the stream. It always finds room, if need be beyond the budget:
  /// it is what tells readers that memory ran out.
  void append_end();

  /// Frees the memory of chunks below `seq` as far as whole segments allow; they can no longer be
  /// read in any case.
  void release_below(Seq seq);
  /// Releases every chunk and all memory.
  void clear();

  [[nodiscard]] MemoryShare& share() const { return *share_; }
  [[nodiscard]] const std::shared_ptr<MemoryShare>& share_handle() const { return share_; }

  /// The oldest kept chunk; equal to next() when none is kept.
  [[nodiscard]] Seq first() const { return first_; }
  /// The number the next chunk gets.
  [[nodiscard]] Seq next() const { return next_; }
  [[nodiscard]] std::size_t size() const { return static_cast<std::size_t>(next_ - first_); }
  /// Escaped text of the kept chunks.
  [[nodiscard]] std::size_t bytes() const { return bytes_; }
  /// Memory held for them, drawn from the budget.
  [[nodiscard]] std::size_t memory() const { return memory_; }

  /// Calls `visit(const Chunk&)` for chunks from `from` (at least first()) on until it returns
  /// false or there is none left. Returns the number of the first chunk not accepted.
  template <class Visit>
  Seq read(Seq from, Visit&& visit) const {
    for (std::size_t s = segment_of(from); s < segments_.size() && from < next_; ++s) {
      const Segment& segment = segments_[s];
      for (auto i = static_cast<std::uint32_t>(from - segment.base); i < segment.count; ++i) {
        if (!visit(segment.chunk(i))) return from;
        ++from;
      }
    }
    return from;
  }

  static constexpr std::size_t kMaxChunkBytes = std::size_t{64} << 20U;
  /// The most memory that one append() of `bytes` may ask of the budget.
  static constexpr std::size_t memory_for(std::size_t bytes) { return bytes + kLargestSegment; }

 private:
  static constexpr std::size_t kLargestSegment = std::size_t{16} << 10U;

  /// Text fills `data` from the front, one index entry a chunk fills it from the back.
  struct Segment {
    Seq base = 0;
    std::uint32_t count = 0;
    std::uint32_t used = 0;
    std::uint32_t capacity = 0;
    std::unique_ptr<char[]> data;

    [[nodiscard]] bool fits(std::size_t bytes) const;
    void append(ChunkKind kind, std::string_view text);
    void resize(std::size_t new_capacity);
    [[nodiscard]] std::uint32_t entry(std::uint32_t index) const;
    /// Where the text of chunk `index` starts; with `count`, where the last one ends.
    [[nodiscard]] std::uint32_t start(std::uint32_t index) const;
    [[nodiscard]] Chunk chunk(std::uint32_t index) const;
  };

  /// What has to be allocated before a chunk of `bytes` can be added.
  struct Need {
    std::size_t memory = 0;    // more than now, from the budget
    std::size_t capacity = 0;  // of the last segment afterwards; 0: it has room
    bool new_segment = false;
  };

  [[nodiscard]] Need need_for(std::size_t bytes, std::size_t slack) const;
  [[nodiscard]] std::size_t slack() const;
  void provide(const Need& need);
  void trim_last();
  void add(ChunkKind kind, std::string_view escaped);
  [[nodiscard]] std::size_t segment_of(Seq seq) const;

  std::shared_ptr<MemoryShare> share_;
  std::vector<Segment> segments_;
  std::size_t head_ = 0;  // segments before it are empty shells
  Seq first_ = 0;
  Seq next_ = 0;
  std::size_t bytes_ = 0;
  std::size_t memory_ = 0;
};

}  // namespace sluice
