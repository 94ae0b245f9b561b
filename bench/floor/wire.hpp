#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace sluice::bench {

// The bytes that sluice sends (docs/streaming.md), made as cheaply as they can be: the cost of
// whoever makes them properly is measured against this. Each function appends to `out`.

/// How chunks travel.
enum class Form : std::uint8_t {
  call,      // progress notifications of a tools/call, as events in HTTP chunks
  events,    // GET /streams/{id}, as events in HTTP chunks
  frames,    // WebSocket text frames
  elements,  // of a poll's `chunks`
};

/// One chunk, stamped with the time of this call.
void append_chunk(std::string& out, Form form, std::int64_t number, std::int64_t count);
/// What ends a stream of `count` chunks: the result, or the last chunk, and the body's end.
void append_end(std::string& out, Form form, std::int64_t count);

/// The length line of an HTTP chunk of `length` bytes; it is followed by the bytes and "\r\n".
void append_http_chunk_size(std::string& out, std::size_t length);

void append_event_stream_head(std::string& out);
void append_upgrade_reply(std::string& out);
void append_json_reply(std::string& out, std::string_view body);
/// The body that answers a `run` with stream:true.
std::string_view run_reply_body();
/// What stands around the elements of a poll's reply.
std::string_view poll_body_prefix();
std::string_view poll_body_suffix(bool has_more);

std::int64_t monotonic_ns();

}  // namespace sluice::bench
