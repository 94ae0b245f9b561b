#include "stream/ended_streams.hpp"

#include <utility>

#include "stream/stream.hpp"

namespace sluice {

StreamLink& EndedStreams::link_of(ChunkStream& stream) {
  return stream.ending_->place.link;
}

void EndedStreams::put(ChunkStream& stream) {
  List*& list = stream.ending_->place.list;
  const bool is_read = stream.evictable();
  if (!is_read && list != nullptr && list != &read_) return;
  remove(stream);
  const MemoryShare* const share = &stream.log_.share();
  Client* const client = is_read ? nullptr : &clients_.try_emplace(share, share).first->second;
  list = is_read ? &read_ : client;
  list->push(stream);
  if (client != nullptr) ranking_.set(*client, ++client->size);
}

void EndedStreams::remove(ChunkStream& stream) {
  List* const list = std::exchange(stream.ending_->place.list, nullptr);
  if (list == nullptr) return;
  list->remove(stream);
  if (list == &read_) return;
  Client& client = static_cast<Client&>(*list);
  ranking_.set(client, --client.size);
  if (client.size == 0) clients_.erase(client.share);
}

ChunkStream* EndedStreams::next() const {
  if (read_.oldest() != nullptr) return read_.oldest();
  const Client* const client = ranking_.most();
  return client == nullptr ? nullptr : client->oldest();
}

}  // namespace sluice
