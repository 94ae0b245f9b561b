#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/error.hpp"
#include "net/http/compression.hpp"

namespace sluice {

// The WebSocket protocol (RFC 6455) without I/O, for both ends.

enum class WebSocketOpcode : std::uint8_t {
  continuation = 0,
  text = 1,
  binary = 2,
  close = 8,
  ping = 9,
  pong = 10,
};

/// Whether `key` is a valid Sec-WebSocket-Key: 16 bytes in Base64 (section 4.2.1). The unused bits
/// at the end may have any value.
bool is_websocket_key(std::string_view key);

/// Sec-WebSocket-Accept for a Sec-WebSocket-Key (section 4.2.2).
std::string websocket_accept_key(std::string_view key);

/// The Sec-WebSocket-Extensions value that accepts an offer of permessage-deflate (RFC 7692),
/// without context takeover on either side. Nothing if no offer is valid and acceptable.
std::optional<std::string> negotiate_deflate(std::string_view offers);

/// Appends one final frame. A client must give a `mask`.
void append_websocket_frame(std::string& out, WebSocketOpcode opcode, std::string_view payload,
                            bool compressed = false, std::optional<std::uint32_t> mask = {});

/// Appends a close frame. `reason` is cut to the 123 bytes that it may have.
void append_websocket_close(std::string& out, int code, std::string_view reason,
                            std::optional<std::uint32_t> mask = {});

/// Whether a close frame may carry `code` (section 7.4 and the IANA registry).
bool is_sendable_close_code(int code);

/// Receives what a decoder finds.
class WebSocketEvents {
 public:
  virtual ~WebSocketEvents() = default;
  /// A whole message; text is valid UTF-8. The view is valid during the call.
  virtual void on_message(WebSocketOpcode opcode, std::string_view payload) = 0;
  /// The same, for a message that was put together from parts.
  virtual void on_joined_message(WebSocketOpcode opcode, std::string payload) {
    on_message(opcode, payload);
  }
  virtual void on_ping(std::string_view payload) = 0;
  virtual void on_pong(std::string_view payload) = 0;
  /// The peer has sent a close frame. `code` is 1005 if it gave none.
  virtual void on_close(int code, std::string_view reason) = 0;
  /// The cost of a frame, or of a step of expanding a compressed message, in addition to its bytes;
  /// in units of WorkLimits.
  virtual void on_work(std::size_t /*cost*/) {}
  /// Called between frames and between such steps. If it returns false, the decoder keeps the rest
  /// until it is fed again.
  [[nodiscard]] virtual bool wants_more() const { return true; }
};

/// Decodes frames that arrive in pieces of any size. Each piece of a message is unmasked and
/// checked as it arrives, so that the end of a long message does not occupy the loop. Bounded by
/// `max_message`; keeps no memory between messages. What follows a compressed message waits until
/// that has been expanded. After an error or a close frame, ignores what follows.
class WebSocketDecoder {
 public:
  enum class Role : std::uint8_t { server, client };
  WebSocketDecoder(Role role, std::size_t max_message, bool deflate)
      : max_message_(max_message), role_(role), deflate_(deflate) {}

  /// Takes bytes, which it unmasks in place, and reports what they complete. The error's code is
  /// the close code to send: 1002 for a protocol error, 1007 for invalid data, 1009 for a message
  /// beyond the limit.
  Result<void> feed(std::span<char> bytes, WebSocketEvents& events);
  /// Drops what it holds, and ignores what follows. Not from within an event.
  void stop();
  /// Memory for what is incomplete or not wanted yet, in bytes.
  [[nodiscard]] std::size_t held_bytes() const;

 private:
  struct Header {
    bool final = false;
    bool compressed = false;
    WebSocketOpcode opcode = WebSocketOpcode::continuation;
    bool masked = false;
    std::uint8_t mask[4] = {};
    std::size_t size = 0;      // of the header
    std::uint64_t length = 0;  // of the payload
  };
  /// The header at the start of `bytes`; nothing if it is not complete.
  Result<std::optional<Header>> parse_header(std::string_view bytes) const;
  Result<void> check_header(const Header& header) const;
  Result<void> take_frame(const Header& header, std::span<char> payload, WebSocketEvents& events);
  Result<void> take_control(const Header& header, std::string_view payload,
                            WebSocketEvents& events);
  Result<void> take_message(WebSocketOpcode opcode, bool compressed, std::string_view payload,
                            WebSocketEvents& events);
  void begin_frame(const Header& header);
  Result<void> take_piece(std::span<char> piece, WebSocketEvents& events);
  Result<void> check_text(std::string_view text, bool is_whole);
  Result<void> end_message(WebSocketEvents& events);
  Result<void> expand_some(WebSocketEvents& events);

  struct Partial {
    std::string bytes;                        // not decoded yet
    std::optional<Header> frame;              // the incomplete one; `length` is what is missing
    std::string message;                      // so far, or what is being expanded
    std::size_t checked = 0;                  // bytes of the text that are known to be valid
    std::optional<MessageInflater> inflater;  // of a complete message
  };
  Partial& partial();
  [[nodiscard]] bool is_within_frame() const { return partial_ != nullptr && partial_->frame; }
  [[nodiscard]] bool is_expanding() const { return partial_ != nullptr && partial_->inflater; }

  std::unique_ptr<Partial> partial_;  // null while there is nothing in it
  std::size_t max_message_;
  Role role_;
  bool deflate_;
  bool fragmented_ = false;
  bool compressed_ = false;  // as opcode_
  bool ended_ = false;
  WebSocketOpcode opcode_ = WebSocketOpcode::text;  // of the incomplete message
};

}  // namespace sluice
