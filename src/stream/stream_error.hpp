#pragma once

#include <expected>
#include <string>

#include "core/error.hpp"

namespace sluice {

// The stream extension's own JSON-RPC error codes (docs/streaming.md), the same in every era.

/// No stream of that id belongs to the caller.
inline constexpr int kStreamNotFound = -32001;
/// The stream was there, and is gone by its expiry.
inline constexpr int kStreamExpired = -32005;
/// The stream cannot do that in its state: a gap below the kept chunks, a position ahead of it, a
/// reader that stalled.
inline constexpr int kStreamInvalidState = -32006;
/// A limit is reached: streams of one client, or memory of all streams.
inline constexpr int kStreamLimit = -32010;

/// That error, which the log tells of too.
std::unexpected<Error> over_limit(std::string message);

}  // namespace sluice
