#pragma once

#include <functional>
#include <memory>
#include <string>

#include "stream/stream_manager.hpp"

namespace sluice {

/// Collects a stream's text until its end, then calls `respond` with the result of a `run` that
/// does not stream, and forgets the stream. Destroying the handle before cancels the stream.
class CollectedRun;
using CollectedAnswer = std::move_only_function<void(Result<std::string>)>;
std::shared_ptr<CollectedRun> collect_stream(StreamManager& streams,
                                             std::shared_ptr<ChunkStream> stream,
                                             CollectedAnswer respond);

}  // namespace sluice
