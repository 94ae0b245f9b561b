#pragma once

namespace sluice {

// The error codes of the stream methods (docs/streaming.md), the same in every era. Clients of
// these methods rely on them, although MCP has since reserved the range that contains them
// (2026-07-28, Base Protocol, Error Codes).

/// The caller has no stream with that id.
inline constexpr int kStreamNotFound = -32001;
/// The stream existed and has expired.
inline constexpr int kStreamExpired = -32005;
/// The stream's state does not allow the request: a position below the kept chunks (a gap) or ahead
/// of the stream, or a reader that stalled.
inline constexpr int kStreamInvalidState = -32006;

}  // namespace sluice
