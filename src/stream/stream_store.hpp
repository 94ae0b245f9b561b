#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "core/clock.hpp"
#include "core/crypto/random.hpp"
#include "stream/stream.hpp"
#include "stream/stream_id.hpp"

namespace sluice {

/// Holds the streams of one loop in memory by id, and the ids that expired recently. A lookup
/// computes a keyed hash and compares in constant time, so that its duration tells nothing about
/// ids to a caller who guesses them. Belongs to one loop.
class StreamStore {
 public:
  StreamStore();

  enum class Presence : std::uint8_t { absent, present, expired };
  struct Found {
    Presence presence = Presence::absent;
    std::shared_ptr<ChunkStream> stream;  // set if present
  };

  /// Whether a stream or a tombstone has this id.
  [[nodiscard]] bool contains(std::string_view id) const;
  void insert(std::shared_ptr<ChunkStream> stream);
  /// Finds only streams and tombstones of `principal`.
  [[nodiscard]] Found find(std::string_view id, std::string_view principal) const;
  void erase(std::string_view id);
  /// Replaces a stream with a tombstone that lasts until `until`. There are at most kMaxTombstones;
  /// beyond that the oldest is forgotten. A tombstone for which there is no memory is left out.
  void leave_tombstone(const ChunkStream& stream, TimePoint until);
  /// Forgets tombstones that have expired at `now`.
  void sweep_tombstones(TimePoint now);

  [[nodiscard]] std::size_t size() const { return streams_.size(); }
  [[nodiscard]] std::size_t tombstones() const { return tombstones_.size(); }
  template <class Visit>
  void for_each(Visit&& visit) const {
    for (const auto& stream : streams_) visit(*stream);
  }

  static constexpr std::size_t kMaxTombstones = 65536;

 private:
  struct Hash {
    using is_transparent = void;
    std::uint64_t key;
    std::size_t operator()(std::string_view id) const;
    std::size_t operator()(const std::shared_ptr<ChunkStream>& stream) const;
  };
  struct Equal {
    using is_transparent = void;
    template <class A, class B>
    bool operator()(const A& a, const B& b) const {
      return constant_time_equal(id_of(a), id_of(b));
    }
    static std::string_view id_of(std::string_view id) { return id; }
    static std::string_view id_of(const std::shared_ptr<ChunkStream>& stream) {
      return stream->id();
    }
  };
  struct Tombstone {
    std::string principal;
    TimePoint until;
  };

  std::unordered_set<std::shared_ptr<ChunkStream>, Hash, Equal> streams_;
  std::unordered_map<StreamId, Tombstone, Hash, Equal> tombstones_;
  std::deque<StreamId> burial_order_;
};

}  // namespace sluice
