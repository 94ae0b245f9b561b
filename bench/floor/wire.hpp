#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace sluice::bench {

// Makes the bytes that sluice sends (docs/streaming.md) as cheaply as possible. The cost of making
// them properly is measured against this. Each function appends to `out`.

/// The form in which chunks are sent.
enum class Form : std::uint8_t {
  call,      // progress notifications of a tools/call, as events in HTTP chunks
  events,    // GET /streams/{id}, as events in HTTP chunks
  frames,    // WebSocket text frames
  elements,  // elements of a poll's `chunks`
};

/// Appends one chunk that was made at `stamp`, of monotonic_ns().
void append_chunk(std::string& out, Form form, std::int64_t number, std::int64_t count,
                  std::int64_t stamp);
/// Appends the end of a stream of `count` chunks: the result or the last chunk, and the end of the
/// body.
void append_end(std::string& out, Form form, std::int64_t count);

/// Appends the length line of an HTTP chunk of `length` bytes. The bytes and "\r\n" follow it.
void append_http_chunk_size(std::string& out, std::size_t length);

void append_event_stream_head(std::string& out);
void append_upgrade_reply(std::string& out);
void append_json_reply(std::string& out, std::string_view body);
/// The body that answers a `run` with stream:true.
std::string_view run_reply_body();
/// The parts of a poll's reply before and after the elements.
std::string_view poll_body_prefix();
std::string_view poll_body_suffix(bool has_more);

std::int64_t monotonic_ns();

}  // namespace sluice::bench
