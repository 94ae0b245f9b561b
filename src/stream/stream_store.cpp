#include "stream/stream_store.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <span>
#include <utility>

#include "core/crypto/random.hpp"

namespace sluice {
namespace {

std::uint64_t random_key() {
  std::uint64_t key = 0;
  random_bytes(std::as_writable_bytes(std::span(&key, 1)));
  return key;
}

}  // namespace

StreamStore::StreamStore()
    : streams_(16, Hash{random_key()}), tombstones_(16, Hash{random_key()}) {}

std::size_t StreamStore::Hash::operator()(std::string_view id) const {
  // The hash is keyed so that a caller cannot choose ids that fall into one bucket.
  std::uint64_t hash = key ^ id.size();
  while (!id.empty()) {
    std::uint64_t word = 0;
    const std::size_t size = std::min(id.size(), sizeof word);
    std::memcpy(&word, id.data(), size);
    hash = (hash ^ word) * 0x9E3779B97F4A7C15U;
    hash ^= hash >> 32U;
    id.remove_prefix(size);
  }
  return hash;
}

std::size_t StreamStore::Hash::operator()(const std::shared_ptr<ChunkStream>& stream) const {
  return (*this)(stream->id());
}

bool StreamStore::contains(std::string_view id) const {
  return streams_.contains(id) || tombstones_.contains(id);
}

void StreamStore::insert(std::shared_ptr<ChunkStream> stream) {
  streams_.insert(std::move(stream));
}

StreamStore::Found StreamStore::find(std::string_view id, std::string_view principal) const {
  if (const auto found = streams_.find(id); found != streams_.end()) {
    if ((*found)->principal() != principal) return {};
    return {Presence::present, *found};
  }
  if (const auto found = tombstones_.find(id); found != tombstones_.end()) {
    if (found->second.principal != principal) return {};
    return {Presence::expired, nullptr};
  }
  return {};
}

void StreamStore::erase(std::string_view id) {
  // `id` may point into the stream itself, so the stream must outlive the erasure of its entry.
  if (const auto found = streams_.find(id); found != streams_.end()) {
    const std::shared_ptr<ChunkStream> keep = *found;
    streams_.erase(found);
  }
}

void StreamStore::leave_tombstone(const ChunkStream& stream, TimePoint until) {
  const StreamId id = stream.id();
  try {
    burial_order_.push_back(id);
    tombstones_.insert_or_assign(id, Tombstone{stream.principal(), until});
  } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch)
  }
  while (burial_order_.size() > kMaxTombstones) {
    tombstones_.erase(burial_order_.front());
    burial_order_.pop_front();
  }
  erase(id);
}

void StreamStore::sweep_tombstones(TimePoint now) {
  while (!burial_order_.empty()) {
    const auto oldest = tombstones_.find(burial_order_.front());
    if (oldest != tombstones_.end()) {
      if (oldest->second.until > now) return;
      tombstones_.erase(oldest);
    }
    burial_order_.pop_front();
  }
}

}  // namespace sluice
