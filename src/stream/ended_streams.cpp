#include "stream/ended_streams.hpp"

#include <utility>

#include "stream/stream.hpp"

namespace sluice {

void EndedStreams::put(ChunkStream& stream) {
  Link& link = stream.ending_->link;
  const bool is_read = stream.evictable();
  if (!is_read && link.list != nullptr && link.list != &read_) return;
  remove(stream);
  const MemoryShare* const share = &stream.log_.share();
  Client* const client = is_read ? nullptr : &clients_.try_emplace(share, share).first->second;
  link.list = is_read ? &read_ : client;
  link.older = std::exchange(link.list->newest, &stream);
  (link.older == nullptr ? link.list->oldest : link.older->ending_->link.newer) = &stream;
  ++link.list->size;
  if (client != nullptr) ranking_.set(*client, client->size);
}

void EndedStreams::remove(ChunkStream& stream) {
  const Link link = std::exchange(stream.ending_->link, {});
  if (link.list == nullptr) return;
  (link.older == nullptr ? link.list->oldest : link.older->ending_->link.newer) = link.newer;
  (link.newer == nullptr ? link.list->newest : link.newer->ending_->link.older) = link.older;
  --link.list->size;
  if (link.list == &read_) return;
  Client& client = static_cast<Client&>(*link.list);
  ranking_.set(client, client.size);
  if (client.size == 0) clients_.erase(client.share);
}

ChunkStream* EndedStreams::next() const {
  if (read_.oldest != nullptr) return read_.oldest;
  const Client* const client = ranking_.most();
  return client == nullptr ? nullptr : client->oldest;
}

}  // namespace sluice
