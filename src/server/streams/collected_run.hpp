#pragma once

#include <memory>

#include "rpc/message.hpp"
#include "server/channel/reply_channel.hpp"
#include "server/streams/stream_service.hpp"
#include "stream/stream_manager.hpp"

namespace sluice {

/// Collects the text of a stream of this loop until its end, and answers `request`, a `run` that
/// does not stream, with it: in a turn that has work left, when the caller has room. Then the
/// stream is forgotten, as it is when the caller leaves before. `mark` is held until it is
/// answered.
void answer_whole(StreamManager& streams, std::shared_ptr<ChunkStream> stream,
                  const Message& request, std::shared_ptr<ReplyChannel> channel,
                  std::shared_ptr<const void> mark);

}  // namespace sluice
