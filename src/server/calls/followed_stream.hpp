#pragma once

#include <memory>
#include <string>

#include "server/calls/pending_request.hpp"
#include "server/streams/stream_service.hpp"

namespace sluice {

/// Answers `call` with an existing stream of its caller, from the oldest kept chunk: the deltas as
/// progress, the whole text as the result. The stream goes on whatever becomes of the call. Errors
/// of finding it answer the call.
void follow_stream(StreamService& streams, const std::string& stream_id,
                   const std::shared_ptr<PendingRequest>& call);

}  // namespace sluice
