#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "core/sharing/client_memory.hpp"

namespace sluice {

/// The sequence number of a chunk in its stream, counted from 0.
using Seq = std::uint64_t;

/// What a chunk holds. `tool_call` is a JSON object, `members` are those of one without its braces,
/// and `message` is a complete JSON-RPC message; they are stored unchanged. `end` closes the stream
/// and has no text.
enum class ChunkKind : std::uint8_t { text, reasoning, tool_call, members, message, end };

/// One stored chunk. Its text is already escaped as the inside of a JSON string, so that no reader
/// has to escape it again; JSON is stored as it is. Valid until the log is next modified.
struct Chunk {
  Seq seq = 0;
  ChunkKind kind = ChunkKind::text;
  std::string_view escaped;
};

/// The stored chunks of one stream: chunks are appended at the back, released at the front and read
/// anywhere.
///
/// Text is stored in segments of up to 16 KiB. Each segment has an index that grows from its end
/// towards the text. A chunk costs its bytes plus 4; at most 8 bytes per stored chunk are reserved
/// for later ones. The memory is charged to a client's share. Finding a chunk is a binary search
/// over the segments; reading on from there is sequential. Belongs to one loop.
class ChunkLog {
 public:
  explicit ChunkLog(std::shared_ptr<MemoryShare> share) : share_(std::move(share)) {}
  ChunkLog(const ChunkLog&) = delete;
  ChunkLog& operator=(const ChunkLog&) = delete;
  ~ChunkLog();

  /// Appends a chunk of at most kMaxChunkBytes of escaped text. Returns false, and changes nothing,
  /// if the text is longer or the budget has no memory for it.
  bool append(ChunkKind kind, std::string_view escaped);

  /// Appends the chunk that closes the stream. It always succeeds, if necessary beyond the budget,
  /// because it is what tells readers that memory ran out.
  void append_end();

  /// Makes the chunks below `seq` unreadable. Their memory is freed in whole segments only, so some
  /// of it may be freed later.
  void release_below(Seq seq);
  /// Releases all chunks and all memory.
  void clear();

  [[nodiscard]] MemoryShare& share() const { return *share_; }
  [[nodiscard]] const std::shared_ptr<MemoryShare>& share_handle() const { return share_; }

  /// The oldest stored chunk; equal to next() if there is none.
  [[nodiscard]] Seq first() const { return first_; }
  /// The number that the next chunk will get.
  [[nodiscard]] Seq next() const { return next_; }
  [[nodiscard]] std::size_t size() const { return static_cast<std::size_t>(next_ - first_); }
  /// Bytes of escaped text in the stored chunks.
  [[nodiscard]] std::size_t bytes() const { return bytes_; }
  /// Bytes of memory that the log has taken from the budget.
  [[nodiscard]] std::size_t memory() const { return memory_; }

  /// Calls `visit(const Chunk&)` for each chunk from `from` (at least first()) until it returns
  /// false or no chunk is left. Returns the number of the first chunk that was not accepted.
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
  /// The most memory, in bytes, that one append() of `bytes` can take from the budget.
  static constexpr std::size_t memory_for(std::size_t bytes) { return bytes + kLargestSegment; }

 private:
  static constexpr std::size_t kLargestSegment = std::size_t{16} << 10U;

  /// Text fills `data` from the front; the index, one entry per chunk, fills it from the back.
  struct Segment {
    // Bit-fields, because each stream has a segment. 48 bits number a million chunks a second for
    // eight years.
    Seq base : 48 = 0;
    Seq count : 16 = 0;  // a segment has room for 4,096 chunks at most
    std::uint32_t used = 0;
    std::uint32_t capacity = 0;
    std::unique_ptr<char[]> data;

    [[nodiscard]] bool fits(std::size_t bytes) const;
    void append(ChunkKind kind, std::string_view text);
    void resize(std::size_t new_capacity);
    [[nodiscard]] std::uint32_t entry(std::uint32_t index) const;
    /// Where the text of chunk `index` starts. For `count` it is where the last text ends.
    [[nodiscard]] std::uint32_t start(std::uint32_t index) const;
    [[nodiscard]] Chunk chunk(std::uint32_t index) const;
  };

  /// What has to be allocated before a chunk of `bytes` can be added.
  struct Need {
    std::size_t memory = 0;    // bytes to take from the budget
    std::size_t capacity = 0;  // the last segment's new capacity; 0: the chunk already fits
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
  std::size_t head_ = 0;  // segments before it have released their data
  Seq first_ = 0;
  Seq next_ = 0;
  std::size_t bytes_ = 0;
  std::size_t memory_ = 0;
};

}  // namespace sluice
