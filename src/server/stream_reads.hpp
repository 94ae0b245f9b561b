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

/// Reads a stream of this loop for a poll: acknowledges what is below `poll.from`, then calls
/// `respond` with the result's JSON text or an error - at once if there is something to return or
/// no time to wait, else when something arrives or the time is over. Returns a handle that keeps a
/// waiting poll alive, or null.
using PollAnswer = std::move_only_function<void(Result<std::string>)>;
std::shared_ptr<PendingPoll> poll_stream(StreamManager& streams, const RunPoll& poll,
                                         const std::string& principal, PollAnswer respond);

/// Collects a stream's text until its end, then calls `respond` with the result of a `run` that
/// does not stream, and forgets the stream. Destroying the handle before cancels the stream.
class WholeRun;
using WholeAnswer = std::move_only_function<void(Result<std::string>)>;
std::shared_ptr<WholeRun> collect_stream(StreamManager& streams, std::shared_ptr<Stream> stream,
                                         WholeAnswer respond);

}  // namespace sluice
