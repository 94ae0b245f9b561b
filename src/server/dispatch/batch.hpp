#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "server/dispatch/dispatcher.hpp"
#include "server/dispatch/service.hpp"
#include "server/dispatch/shared_reply.hpp"

namespace sluice {

/// Handles one message of a batch, as Dispatcher::dispatch() does. May live longer than its
/// request.
using BatchedDispatch = std::function<Outcome(
    const Message& message, const MirroredHeaders* headers, Caller& caller, std::string& out)>;

/// Handles a batch (JSON-RPC 2.0, section 6; 2025-03-26, Base Protocol, Batching), which may be
/// parsed already (else `parsed` is null): its messages one after the other, with one answer to
/// them all. `headers` as for negotiate(). In a revision without batches, and for what is none,
/// `out` becomes one error; a message that cannot be handled is answered by an error among the
/// others' responses. A batch that takes more than its part of a turn goes on in later ones: then
/// `handled`, which has been taken, runs when the last message has been handled, unless the caller
/// has gone.
Outcome handle_batch(std::string_view text, LongMessage* parsed, const MirroredHeaders* headers,
                     Service& service, Caller& caller, SharedReply::Form form,
                     BatchedDispatch dispatch, Executor::Task& handled, std::string& out);

}  // namespace sluice
