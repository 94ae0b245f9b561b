#pragma once

#include <cstddef>
#include <unordered_map>

#include "core/ranking.hpp"

namespace sluice {

class ChunkStream;
class MemoryShare;

/// The ended streams of one loop, in the order in which they make room for others: first those that
/// nobody would miss, then those of the client that leaves most unread; of each, the oldest.
/// Belongs to the loop of its streams.
class EndedStreams {
 public:
  struct List {
    ChunkStream* oldest = nullptr;
    ChunkStream* newest = nullptr;
    std::size_t size = 0;
  };
  /// A stream's place.
  struct Link {
    List* list = nullptr;
    ChunkStream* older = nullptr;
    ChunkStream* newer = nullptr;
  };

  /// Puts `stream`, which has ended, where it belongs now: among those that have been read it
  /// becomes the newest.
  void put(ChunkStream& stream);
  void remove(ChunkStream& stream);
  /// The one that goes next, or null.
  [[nodiscard]] ChunkStream* next() const;

 private:
  /// What one client leaves unread.
  struct Client : List {
    explicit Client(const MemoryShare* its_share) : share(its_share) {}
    const MemoryShare* share;
    RankPlace rank;
  };

  List read_;
  std::unordered_map<const MemoryShare*, Client> clients_;  // by what names each
  Ranking<Client> ranking_;
};

}  // namespace sluice
