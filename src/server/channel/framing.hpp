#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace sluice {

/// How a transport wraps one JSON message in its byte stream. The caller calls begin(), appends the
/// message to `out`, and calls end(). Stateless and shared by all connections.
class Framing {
 public:
  virtual ~Framing() = default;
  /// Returns the mark that end() needs to find the start of the message.
  virtual std::size_t begin(std::string& out) const = 0;
  virtual void end(std::string& out, std::size_t mark) const = 0;
};

/// An SSE event with the message as its data (WHATWG HTML, 9.2). The message must not contain line
/// breaks.
const Framing& sse_framing();

/// One unmasked, uncompressed WebSocket text frame (RFC 6455, section 5.2).
const Framing& websocket_framing();

/// A line of its own (2026-07-28, stdio). The message must not contain line breaks.
const Framing& line_framing();

}  // namespace sluice
