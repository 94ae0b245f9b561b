#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace sluice::bench {

// The requests of the load, as bytes. Bodies follow docs/streaming.md and MCP 2026-07-28
// (Streamable HTTP, "Sending Messages").

/// POST /mcp of a tools/call with everything that revision asks for. `arguments` is JSON text.
std::string tool_call_request(std::string_view tool, std::string_view arguments);

/// The JSON of `run` that starts a stream.
std::string run_message(std::int64_t count, std::int64_t interval_us);
/// The JSON of `run` that polls one, for at most `max_chunks` if that is not 0.
std::string poll_message(std::string_view stream_id, std::int64_t from_seq, std::int64_t wait_ms,
                         std::int64_t max_chunks);

std::string post_request(std::string_view path, std::string_view body);
std::string event_stream_request(std::string_view path);
std::string upgrade_request(std::string_view path);

/// A masked text frame (RFC 6455, section 5.3; the mask is zero, which is as good as any other
/// between two programs of one machine).
std::string websocket_text(std::string_view text);

}  // namespace sluice::bench
