#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "core/client_memory.hpp"
#include "core/error.hpp"
#include "stream/stream_manager.hpp"

namespace sluice {

/// Memory of `principal` for `what` a call keeps when its request has been handled, of about so
/// many bytes. Little costs nothing. kLimitReached when the client has not so much.
Result<MemoryHold> hold_for_call(const StreamManager& streams, const std::string& principal,
                                 std::size_t bytes, std::string_view what);

}  // namespace sluice
