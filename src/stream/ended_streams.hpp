#pragma once

#include <cstddef>
#include <unordered_map>

#include "core/sharing/ranking.hpp"
#include "stream/stream_list.hpp"

namespace sluice {

/// The ended streams of one loop, in the order in which they are evicted: first those that a
/// reader has read to the end and that have no reader now, then those of the client with the most
/// unread streams. Within each group the oldest goes first. Belongs to the loop of its streams.
class EndedStreams {
 public:
  static StreamLink& link_of(ChunkStream& stream);
  using List = StreamList<&link_of>;
  /// The list that a stream is in, and its link there.
  struct Position {
    List* list = nullptr;
    StreamLink link;
  };

  /// Moves `stream`, which must have ended, to the list it belongs to now. Among the streams that
  /// have been read it becomes the newest. If there is no memory for that, throws std::bad_alloc,
  /// and the stream is in no list.
  void put(ChunkStream& stream);
  void remove(ChunkStream& stream);
  /// The stream to evict next, or null if there is none.
  [[nodiscard]] ChunkStream* next() const;

 private:
  /// The unread streams of one client.
  struct Client : List {
    explicit Client(const MemoryShare* its_share) : share(its_share) {}
    const MemoryShare* share;
    std::size_t size = 0;
    RankKey rank;
  };

  /// The list of the client, which is about to get another stream.
  Client& with_one_more(const MemoryShare& share);

  List read_;
  std::unordered_map<const MemoryShare*, Client> clients_;  // by the client's memory share
  Ranking<Client> ranking_;
};

}  // namespace sluice
