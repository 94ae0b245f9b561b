#include "stream/chunk_log.hpp"

#include <algorithm>
#include <cstring>

namespace sluice {
namespace {

constexpr std::size_t kEntryBytes = sizeof(std::uint32_t);
constexpr std::size_t kFirstSegment = 256;
constexpr std::size_t kLargestSegment = std::size_t{16} << 10U;
constexpr std::size_t kReusedSegment = 4096;
constexpr std::size_t kGrowth = 4;

// An index entry: the end of the chunk's text in the low bits, its kind above them.
constexpr std::uint32_t kKindShift = 30;
constexpr std::uint32_t kEndMask = (std::uint32_t{1} << kKindShift) - 1;

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

std::uint32_t ChunkLog::Segment::entry(std::uint32_t index) const {
  std::uint32_t packed = 0;
  std::memcpy(&packed, data.get() + capacity - (index + std::size_t{1}) * kEntryBytes, kEntryBytes);
  return packed;
}

Chunk ChunkLog::Segment::chunk(std::uint32_t index) const {
  const std::uint32_t start = index == 0 ? 0 : entry(index - 1) & kEndMask;
  const std::uint32_t packed = entry(index);
  return {base + index, static_cast<ChunkKind>(packed >> kKindShift),
          std::string_view(data.get() + start, (packed & kEndMask) - start)};
}

ChunkLog::~ChunkLog() {
  budget_->release(memory_);
}

bool ChunkLog::append(ChunkKind kind, std::string_view escaped) {
  if (escaped.size() > kMaxChunkBytes) return false;
  if (const std::size_t capacity = new_segment_for(escaped.size()); capacity > 0) {
    if (!budget_->try_acquire(capacity + sizeof(Segment))) return false;
    add_segment(capacity);
  }
  add(kind, escaped);
  return true;
}

void ChunkLog::append_end() {
  if (const std::size_t capacity = new_segment_for(0); capacity > 0) {
    budget_->acquire_beyond_limit(capacity + sizeof(Segment));
    add_segment(capacity);
  }
  add(ChunkKind::end, {});
}

std::size_t ChunkLog::new_segment_for(std::size_t bytes) const {
  if (segments_.empty()) return std::max(kFirstSegment, bytes + kEntryBytes);
  if (segments_.back()->fits(bytes)) return 0;
  return std::max(std::min<std::size_t>(segments_.back()->capacity * kGrowth, kLargestSegment),
                  bytes + kEntryBytes);
}

void ChunkLog::add_segment(std::size_t capacity) {
  segments_.push_back(std::make_unique<Segment>(next_, static_cast<std::uint32_t>(capacity)));
  memory_ += capacity + sizeof(Segment);
}

void ChunkLog::add(ChunkKind kind, std::string_view escaped) {
  segments_.back()->append(kind, escaped);
  bytes_ += escaped.size();
  ++next_;
}

void ChunkLog::release_below(Seq seq) {
  seq = std::min(seq, next_);
  if (seq <= first_) return;
  read(first_, [&](const Chunk& chunk) {
    if (chunk.seq >= seq) return false;
    bytes_ -= chunk.escaped.size();
    return true;
  });
  first_ = seq;
  std::size_t gone = 0;
  while (gone < segments_.size() && segments_[gone]->base + segments_[gone]->count <= first_) {
    ++gone;
  }
  // A small last segment is used again: a reader that keeps up costs its writer no allocation.
  if (gone == segments_.size() && gone > 0 && segments_.back()->capacity <= kReusedSegment) {
    Segment& last = *segments_.back();
    last.base = next_;
    last.count = 0;
    last.used = 0;
    --gone;
  }
  std::size_t freed = 0;
  for (std::size_t i = 0; i < gone; ++i) freed += segments_[i]->capacity + sizeof(Segment);
  // Erasing moves one pointer for every 16 KiB that stay, once for every 16 KiB that go.
  segments_.erase(segments_.begin(), segments_.begin() + static_cast<std::ptrdiff_t>(gone));
  memory_ -= freed;
  budget_->release(freed);
}

std::size_t ChunkLog::segment_of(Seq seq) const {
  const auto after = std::ranges::upper_bound(
      segments_, seq, {}, [](const std::unique_ptr<Segment>& segment) { return segment->base; });
  return after == segments_.begin() ? 0 : static_cast<std::size_t>(after - segments_.begin()) - 1;
}

}  // namespace sluice
