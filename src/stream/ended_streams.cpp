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
  list = is_read ? &read_ : &with_one_more(stream.log_.share());
  list->push(stream);
}

EndedStreams::Client& EndedStreams::with_one_more(const MemoryShare& share) {
  Client& client = clients_.try_emplace(&share, &share).first->second;
  try {
    ranking_.set(client, client.size + 1);
  } catch (...) {
    // There is no memory for a client that is new.
    clients_.erase(&share);
    throw;
  }
  ++client.size;
  return client;
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
