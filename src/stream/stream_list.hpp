#pragma once

#include <unordered_map>
#include <utility>

namespace sluice {

class ChunkStream;
class MemoryShare;

/// A stream's link in a StreamList.
struct StreamLink {
  ChunkStream* older = nullptr;
  ChunkStream* newer = nullptr;
};

/// Streams in the order in which they were added. It is an intrusive ring, and the list points to
/// the newest stream. It owns no stream; `kLink` returns the link that a stream keeps for this
/// list. Belongs to the loop of its streams.
template <StreamLink& (*kLink)(ChunkStream&)>
class StreamList {
 public:
  /// Makes `stream` the newest. It must not be in any list that uses this link.
  void push(ChunkStream& stream) {
    ChunkStream& newest = newest_ == nullptr ? stream : *newest_;
    ChunkStream& oldest = newest_ == nullptr ? stream : *kLink(newest).newer;
    kLink(stream) = {.older = &newest, .newer = &oldest};
    kLink(newest).newer = &stream;
    kLink(oldest).older = &stream;
    newest_ = &stream;
  }
  void remove(ChunkStream& stream) {
    const StreamLink link = std::exchange(kLink(stream), {});
    if (newest_ == &stream) newest_ = link.older == &stream ? nullptr : link.older;
    if (newest_ == nullptr) return;
    kLink(*link.older).newer = link.newer;
    kLink(*link.newer).older = link.older;
  }

  // These return null if there is no such stream.
  [[nodiscard]] ChunkStream* newest() const { return newest_; }
  [[nodiscard]] ChunkStream* oldest() const {
    return newest_ == nullptr ? nullptr : kLink(*newest_).newer;
  }
  [[nodiscard]] ChunkStream* older_than(ChunkStream& stream) const {
    return &stream == oldest() ? nullptr : kLink(stream).older;
  }

 private:
  ChunkStream* newest_ = nullptr;
};

/// One StreamList per client that has streams in it. A client is identified by its memory share.
template <StreamLink& (*kLink)(ChunkStream&)>
class ClientStreams {
 public:
  using List = StreamList<kLink>;

  void push(const MemoryShare& client, ChunkStream& stream) { lists_[&client].push(stream); }
  void remove(const MemoryShare& client, ChunkStream& stream) {
    const auto at = lists_.find(&client);
    at->second.remove(stream);
    if (at->second.newest() == nullptr) lists_.erase(at);
  }
  [[nodiscard]] List of(const MemoryShare& client) const {
    const auto at = lists_.find(&client);
    return at == lists_.end() ? List() : at->second;
  }
  /// The list of an arbitrary client; empty only if all are.
  [[nodiscard]] List of_any() const { return lists_.empty() ? List() : lists_.begin()->second; }

 private:
  std::unordered_map<const MemoryShare*, List> lists_;
};

}  // namespace sluice
