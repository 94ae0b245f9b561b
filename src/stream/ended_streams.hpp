#pragma once

#include <cstddef>
#include <unordered_map>

#include "core/ranking.hpp"
#include "stream/stream_list.hpp"

namespace sluice {

/// The ended streams of one loop, in the order in which they make room for others: first those that
/// nobody would miss, then those of the client that leaves most unread; of each, the oldest.
/// Belongs to the loop of its streams.
class EndedStreams {
 public:
  static StreamLink& link_of(ChunkStream& stream);
  using List = StreamList<&link_of>;
  /// A stream's place.
  struct Position {
    List* list = nullptr;
    StreamLink link;
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
    std::size_t size = 0;
    RankKey rank;
  };

  List read_;
  std::unordered_map<const MemoryShare*, Client> clients_;  // by what names each
  Ranking<Client> ranking_;
};

}  // namespace sluice
