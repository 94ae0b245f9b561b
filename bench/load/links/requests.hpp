#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "protocol/revision.hpp"

namespace sluice::bench {

// The load generator's requests as bytes. Bodies follow docs/streaming.md and the revisions of MCP
// (Transports; Lifecycle, "Initialization").

/// The JSON of `initialize` with id 0, and of the notification that follows its answer.
std::string initialize_message(const Revision& revision);
std::string_view initialized_message();
/// The JSON of a tools/call with the `_meta` that `revision` requires. `arguments` is JSON text.
std::string tool_call_message(const Revision& revision, std::size_t id, std::string_view tool,
                              std::string_view arguments);

/// A POST to /mcp with `message` and all headers that `revision` requires. `tool` is the tool of a
/// tools/call, otherwise empty. `session` may be empty.
std::string mcp_request(const Revision& revision, std::string_view session, std::string_view tool,
                        std::string_view message);
/// A POST to /mcp with a tools/call in the newest revision.
std::string tool_call_request(std::string_view tool, std::string_view arguments);
/// GET /mcp: the event stream of a session.
std::string listen_request(const Revision& revision, std::string_view session);

/// The JSON of `run` that starts a stream.
std::string run_message(std::int64_t count, std::int64_t interval_us);
/// The JSON of `run` that polls a stream, for at most `max_chunks` chunks unless that is 0.
std::string poll_message(std::string_view stream_id, std::int64_t from_seq, std::int64_t wait_ms,
                         std::int64_t max_chunks);

std::string post_request(std::string_view path, std::string_view body);
std::string event_stream_request(std::string_view path);
std::string upgrade_request(std::string_view path);

/// A masked text frame (RFC 6455, section 5.3). The mask is zero, which makes no difference between
/// two programs on one machine.
std::string websocket_text(std::string_view text);
std::string websocket_pong(std::string_view payload);

}  // namespace sluice::bench
