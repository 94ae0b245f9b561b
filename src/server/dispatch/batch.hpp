#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "server/dispatch/dispatcher.hpp"
#include "server/dispatch/service.hpp"
#include "server/dispatch/shared_reply.hpp"

namespace sluice {

/// Dispatches one message of a batch, as Dispatcher::dispatch() does. May outlive the request that
/// carried the batch.
using BatchedDispatch = std::function<Outcome(
    const Message& message, const MirroredHeaders* headers, Caller& caller, std::string& out)>;

/// Handles a batch (JSON-RPC 2.0, section 6; 2025-03-26, Base Protocol, Batching): dispatches its
/// messages in order and answers them with one reply. `parsed` is the batch if it has been parsed
/// already, else null. `headers` is as for negotiate(). If the revision has no batches or the text
/// is not a valid batch, `out` gets a single error. A message that cannot be handled is answered
/// with an error among the other responses. A batch that exceeds its part of a turn continues in
/// later turns. Only then is `handled` moved from; it runs after the last message has been handled,
/// unless the caller has gone by then.
Outcome handle_batch(std::string_view text, LongMessage* parsed, const MirroredHeaders* headers,
                     Service& service, Caller& caller, SharedReply::Form form,
                     BatchedDispatch dispatch, Executor::Task& handled, std::string& out);

}  // namespace sluice
