#pragma once

#include <memory>
#include <string>

#include "server/calls/pending_request.hpp"
#include "server/streams/stream_service.hpp"

namespace sluice {

/// Answers `call` with an existing stream of its caller, from the oldest chunk that is kept: sends
/// the deltas as progress, and the whole text as the result. The end of the call does not affect
/// the stream. If the stream cannot be found, the call is answered with that error.
void follow_stream(StreamService& streams, const std::string& stream_id,
                   const std::shared_ptr<PendingRequest>& call);

}  // namespace sluice
