#pragma once

namespace sluice {

// MCP 2026-07-28, Base Protocol, Error Codes.
inline constexpr int kHeaderMismatch = -32020;
inline constexpr int kMissingClientCapability = -32021;
inline constexpr int kUnsupportedProtocolVersion = -32022;

// MCP up to 2025-11-25, Resources, Error Handling.
inline constexpr int kResourceNotFound = -32002;

// MCP 2025-11-25 only, Elicitation, URL Elicitation Required Error.
inline constexpr int kUrlElicitationRequired = -32042;

}  // namespace sluice
