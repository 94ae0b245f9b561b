#pragma once

#include <memory>
#include <optional>
#include <string>

#include "server/streams/stream_service.hpp"

namespace sluice {

struct RemoteSubscriptionRequest {
  std::string stream_id;
  std::string principal;
  std::optional<Seq> from;
  std::size_t window = 0;
  const ChunkEncoder* encoder = nullptr;
  bool shareable = true;
};

/// Subscribes a reader on loop `here` to a stream on `shard`'s loop. The cursor stays on the
/// stream's loop and posts its blocks to `here`, at most about 32 KiB ahead of what the reader's
/// sink has taken. `answer` runs on `here`.
void subscribe_remote(RemoteSubscriptionRequest request, StreamShard shard, Executor& here,
                      std::unique_ptr<BlockSink> sink, StreamService::Subscribed answer);

}  // namespace sluice
