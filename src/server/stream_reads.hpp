#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "protocol/stream_params.hpp"
#include "stream/stream_manager.hpp"

namespace sluice {

/// A poll that waits for chunks. Destroying the last handle forgets it.
class PendingPoll;

/// Finds the stream of this loop that `poll` reads and acknowledges what is below `poll.from`,
/// which is set to the oldest kept chunk if it is not.
Result<std::shared_ptr<ChunkStream>> begin_poll(StreamManager& streams, RunPoll& poll,
                                                const std::string& principal);

/// Appends the result's JSON text if there is something to return or no time to wait.
bool answer_poll(std::string& out, ChunkStream& stream, const RunPoll& poll);

/// Calls `respond` with the result's JSON text or an error when something arrives or the time is
/// over; for a poll that could not be answered at once. The handle keeps it alive.
using PollAnswer = std::move_only_function<void(Result<std::string>)>;
std::shared_ptr<PendingPoll> wait_for_chunks(std::shared_ptr<ChunkStream> stream,
                                             const RunPoll& poll, PollAnswer respond);

/// Collects a stream's text until its end, then calls `respond` with the result of a `run` that
/// does not stream, and forgets the stream. Destroying the handle before cancels the stream.
class WholeRun;
using WholeAnswer = std::move_only_function<void(Result<std::string>)>;
std::shared_ptr<WholeRun> collect_stream(StreamManager& streams,
                                         std::shared_ptr<ChunkStream> stream, WholeAnswer respond);

}  // namespace sluice
