#include "stream/chunk_log.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace sluice {
namespace {

constexpr std::size_t kEntryBytes = sizeof(std::uint32_t);
/// An emptied segment of up to this many bytes is kept for the next chunks.
constexpr std::size_t kReusedSegment = 2048;
/// Bytes to reserve for later chunks per stored chunk. The waste is therefore proportional to the
/// number of chunks, however long they are.
constexpr std::size_t kSlackPerChunk = 8;
constexpr std::size_t kLeastSlack = 16;

// An index entry holds the end of the chunk's text in the low bits and the chunk's kind in the high
// bits.
constexpr std::uint32_t kKindShift = 29;
constexpr std::uint32_t kEndMask = (std::uint32_t{1} << kKindShift) - 1;

/// How much fits into the block that glibc's malloc gives for `bytes`. All of it is used, because
/// it costs the same.
constexpr std::size_t block_for(std::size_t bytes) {
  constexpr std::size_t kHeader = 8;
  constexpr std::size_t kStep = 16;
  return (bytes + kHeader + kStep - 1) / kStep * kStep - kHeader;
}

}  // namespace

bool ChunkLog::Segment::fits(std::size_t bytes) const {
  return used + bytes + (count + std::size_t{1}) * kEntryBytes <= capacity;
}

void ChunkLog::Segment::append(ChunkKind kind, std::string_view text) {
  if (!text.empty()) std::memcpy(data.get() + used, text.data(), text.size());
  used += static_cast<std::uint32_t>(text.size());
  ++count;
  const std::uint32_t packed = used | (static_cast<std::uint32_t>(kind) << kKindShift);
  std::memcpy(data.get() + capacity - count * kEntryBytes, &packed, kEntryBytes);
}

void ChunkLog::Segment::resize(std::size_t new_capacity) {
  std::unique_ptr<char[]> moved(new char[new_capacity]);
  const std::size_t index = count * kEntryBytes;
  if (used > 0) std::memcpy(moved.get(), data.get(), used);
  if (index > 0) {
    std::memcpy(moved.get() + new_capacity - index, data.get() + capacity - index, index);
  }
  data = std::move(moved);
  capacity = static_cast<std::uint32_t>(new_capacity);
}

std::uint32_t ChunkLog::Segment::entry(std::uint32_t index) const {
  std::uint32_t packed = 0;
  std::memcpy(&packed, data.get() + capacity - (index + std::size_t{1}) * kEntryBytes, kEntryBytes);
  return packed;
}

std::uint32_t ChunkLog::Segment::start(std::uint32_t index) const {
  return index == 0 ? 0 : entry(index - 1) & kEndMask;
}

Chunk ChunkLog::Segment::chunk(std::uint32_t index) const {
  const std::uint32_t begin = start(index);
  const std::uint32_t packed = entry(index);
  return {base + index, static_cast<ChunkKind>(packed >> kKindShift),
          std::string_view(data.get() + begin, (packed & kEndMask) - begin)};
}

ChunkLog::~ChunkLog() {
  share_->release(memory_);
}

bool ChunkLog::append(ChunkKind kind, std::string_view escaped) {
  if (escaped.size() > kMaxChunkBytes) return false;
  if (Need need = need_for(escaped.size(), slack()); need.capacity > 0) {
    // When memory is short, nothing is reserved for later chunks: the rest is for chunks that exist
    // now, in any stream.
    if (share_->is_short(need.memory)) need = need_for(escaped.size(), 0);
    if (!share_->try_acquire(need.memory)) return false;
    provide(need);
  }
  add(kind, escaped);
  return true;
}

void ChunkLog::append_end() {
  // No chunk follows the end, so nothing is reserved.
  if (const Need need = need_for(0, 0); need.capacity > 0) {
    share_->acquire_beyond_limit(need.memory);
    provide(need);
  }
  add(ChunkKind::end, {});
}

std::size_t ChunkLog::slack() const {
  return std::clamp(size() * kSlackPerChunk, kLeastSlack, kLargestSegment);
}

ChunkLog::Need ChunkLog::need_for(std::size_t bytes, std::size_t slack) const {
  if (!segments_.empty()) {
    const Segment& last = segments_.back();
    if (last.fits(bytes)) return {};
    const std::size_t needed = last.used + bytes + (last.count + std::size_t{1}) * kEntryBytes;
    if (needed <= kLargestSegment) {
      const std::size_t capacity = std::min(block_for(needed + slack), kLargestSegment);
      return {.memory = capacity - last.capacity, .capacity = capacity, .new_segment = false};
    }
  }
  const std::size_t needed = bytes + kEntryBytes;
  const std::size_t capacity =
      std::max(needed, std::min(block_for(needed + slack), kLargestSegment));
  return {.memory = capacity + sizeof(Segment), .capacity = capacity, .new_segment = true};
}

void ChunkLog::provide(const Need& need) {
  // Count the memory first: if an allocation throws, the destructor returns it.
  memory_ += need.memory;
  if (need.new_segment) {
    trim_last();
    segments_.push_back(Segment{.base = next_, .data = {}});
  }
  segments_.back().resize(need.capacity);
}

void ChunkLog::trim_last() {
  if (segments_.empty()) return;
  Segment& last = segments_.back();
  const std::size_t needed = last.used + last.count * kEntryBytes;
  const std::size_t unused = last.capacity - needed;
  // A long chunk that did not fit leaves the end of the segment unused. Copying the segment pays
  // off only if much is unused per chunk.
  if (unused <= last.count * kSlackPerChunk) return;
  last.resize(needed);
  memory_ -= unused;
  share_->release(unused);
}

void ChunkLog::add(ChunkKind kind, std::string_view escaped) {
  segments_.back().append(kind, escaped);
  bytes_ += escaped.size();
  ++next_;
}

void ChunkLog::release_below(Seq seq) {
  seq = std::min(seq, next_);
  if (seq <= first_) return;
  std::size_t freed = 0;
  while (head_ < segments_.size()) {
    Segment& segment = segments_[head_];
    const auto from = static_cast<std::uint32_t>(first_ - segment.base);
    const auto to = static_cast<std::uint32_t>(std::min<Seq>(seq - segment.base, segment.count));
    bytes_ -= segment.start(to) - segment.start(from);
    first_ = segment.base + to;
    if (to < segment.count) break;
    if (head_ + 1 == segments_.size() && segment.capacity <= kReusedSegment) {
      // Reuse the segment: while the reader keeps up, the writer needs no allocation.
      segment.base = next_;
      segment.count = 0;
      segment.used = 0;
      break;
    }
    freed += segment.capacity + sizeof(Segment);
    segment.data.reset();
    ++head_;
  }
  // Erase released segments only when they are half of the vector, so that each segment is moved
  // about once.
  if (head_ * 2 >= segments_.size()) {
    segments_.erase(segments_.begin(), segments_.begin() + static_cast<std::ptrdiff_t>(head_));
    head_ = 0;
    if (segments_.empty()) segments_.shrink_to_fit();
  }
  memory_ -= freed;
  share_->release(freed);
}

void ChunkLog::clear() {
  first_ = next_;
  bytes_ = 0;
  head_ = 0;
  segments_.clear();
  segments_.shrink_to_fit();
  share_->release(std::exchange(memory_, 0));
}

std::size_t ChunkLog::segment_of(Seq seq) const {
  const auto live = segments_.begin() + static_cast<std::ptrdiff_t>(head_);
  const auto after = std::ranges::upper_bound(
      live, segments_.end(), seq, {}, [](const Segment& segment) -> Seq { return segment.base; });
  return static_cast<std::size_t>((after == live ? live : after - 1) - segments_.begin());
}

}  // namespace sluice
