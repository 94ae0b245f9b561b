#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "core/error.hpp"
#include "core/sharing/client_memory.hpp"
#include "stream/stream_manager.hpp"

namespace sluice {

/// Takes about `bytes` from the memory share of `principal`, for data that a call keeps after its
/// request has been handled. `what` names the data in the error message. Up to CoarseHold::kFree
/// bytes are not counted. Error: kLimitReached if the share does not have them.
Result<MemoryHold> hold_for_call(const StreamManager& streams, const std::string& principal,
                                 std::size_t bytes, std::string_view what);
/// The same for what may be many in one call or none: all of `bytes` are counted.
Result<MemoryHold> hold_all(std::shared_ptr<MemoryShare> share, std::size_t bytes,
                            std::string_view what);

/// What a message takes besides its text while it waits for a server behind a proxy.
inline constexpr std::size_t kQueuedMessage = 512;

}  // namespace sluice
