#pragma once

#include <memory>

#include "rpc/message.hpp"
#include "server/channel/reply_channel.hpp"
#include "server/streams/stream_service.hpp"
#include "stream/stream_manager.hpp"

namespace sluice {

/// Answers `request`, a `run` that does not stream, with the whole text of a stream of this loop.
/// The answer is made after the stream has ended, in a turn that has work left, when the caller can
/// take it. The stream is discarded when it has ended or the caller leaves. `mark` is held until
/// the request is answered.
void answer_whole(StreamManager& streams, std::shared_ptr<ChunkStream> stream,
                  const Message& request, std::shared_ptr<ReplyChannel> channel,
                  std::shared_ptr<const void> mark);

}  // namespace sluice
