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

/// Whether a Sec-WebSocket-Key is one: 16 bytes in Base64 (section 4.2.1). The bits behind them may
/// be any.
bool is_websocket_key(std::string_view key);

/// Sec-WebSocket-Accept for a Sec-WebSocket-Key (section 4.2.2).
std::string websocket_accept_key(std::string_view key);

/// The Sec-WebSocket-Extensions value to answer an offer of permessage-deflate with (RFC 7692):
/// without context takeover on either side. Nothing if the client offers none that is sound and can
/// be met.
std::optional<std::string> negotiate_deflate(std::string_view offers);

/// Appends one final frame. A client gives the key to mask it with.
void append_websocket_frame(std::string& out, WebSocketOpcode opcode, std::string_view payload,
                            bool compressed = false, std::optional<std::uint32_t> mask = {});

/// Appends a close frame; `reason` is cut to the 123 bytes it may have.
void append_websocket_close(std::string& out, int code, std::string_view reason,
                            std::optional<std::uint32_t> mask = {});

/// Whether a close frame may carry `code` (section 7.4 and the IANA registry).
bool is_sendable_close_code(int code);

/// What a decoder finds.
class WebSocketEvents {
 public:
  virtual ~WebSocketEvents() = default;
  /// A whole message; text is valid UTF-8. The view is valid during the call.
  virtual void on_message(WebSocketOpcode opcode, std::string_view payload) = 0;
  /// The same, of one that has been put together of parts.
  virtual void on_joined_message(WebSocketOpcode opcode, std::string payload) {
    on_message(opcode, payload);
  }
  virtual void on_ping(std::string_view payload) = 0;
  virtual void on_pong(std::string_view payload) = 0;
  /// The peer closes, with 1005 if it gave no code.
  virtual void on_close(int code, std::string_view reason) = 0;
  /// A frame, or a step of expanding a compressed message, has cost as much as so many bytes of a
  /// request, beyond its own bytes.
  virtual void on_work(std::size_t /*cost*/) {}
  /// Asked between frames and between such steps: false, and the decoder keeps the rest until it is
  /// fed again.
  [[nodiscard]] virtual bool wants_more() const { return true; }
};

/// Decodes frames that come in pieces of any size. What has come of a message is unmasked and
/// checked at once, so that the end of a long one does not keep a loop. Bounded by `max_message`;
/// keeps no memory between messages. What follows a compressed message waits until that has been
/// expanded. After an error or a close frame it ignores what follows.
class WebSocketDecoder {
 public:
  enum class Role : std::uint8_t { server, client };
  WebSocketDecoder(Role role, std::size_t max_message, bool deflate)
      : max_message_(max_message), role_(role), deflate_(deflate) {}

  /// Takes bytes, which it unmasks in place, and reports what they complete. The error's code is
  /// the close code to send: 1002 for a broken protocol, 1007 for broken data, 1009 for a message
  /// beyond the limit.
  Result<void> feed(std::span<char> bytes, WebSocketEvents& events);
  /// Forgets what it holds, and ignores what follows. Not from within an event.
  void stop();
  /// Memory that it keeps for what is not whole, or not wanted yet.
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
  /// The header at the start of `bytes`; nothing if it is not there whole.
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
    std::string bytes;                        // that have not been looked at
    std::optional<Header> frame;              // one that is not there whole, of what is missing
    std::string message;                      // so far, or what is being expanded
    std::size_t checked = 0;                  // bytes of the text that are whole characters
    std::optional<MessageInflater> inflater;  // of a message that is whole
  };
  Partial& partial();
  [[nodiscard]] bool is_within_frame() const { return partial_ != nullptr && partial_->frame; }
  [[nodiscard]] bool is_expanding() const { return partial_ != nullptr && partial_->inflater; }

  std::unique_ptr<Partial> partial_;  // if there is anything in it
  std::size_t max_message_;
  Role role_;
  bool deflate_;
  bool fragmented_ = false;
  bool compressed_ = false;  // as opcode_
  bool ended_ = false;
  WebSocketOpcode opcode_ = WebSocketOpcode::text;  // of the message that is there in part
};

}  // namespace sluice
