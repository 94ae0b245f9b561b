#pragma once

#include <expected>
#include <string>

#include "core/error.hpp"

namespace sluice {

// The error codes of the stream methods (docs/streaming.md), the same in every era. Their clients
// know them from before MCP closed the range that they are in (2026-07-28, Base Protocol, Error
// Codes).

/// No stream of that id belongs to the caller.
inline constexpr int kStreamNotFound = -32001;
/// The stream was there, and is gone by its expiry.
inline constexpr int kStreamExpired = -32005;
/// The stream cannot do that in its state: a gap below the kept chunks, a position ahead of it, a
/// reader that stalled.
inline constexpr int kStreamInvalidState = -32006;
/// kLimitReached, which the log tells of too.
std::unexpected<Error> over_limit(std::string message);

}  // namespace sluice
