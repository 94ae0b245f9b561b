#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "core/sharing/client_memory.hpp"
#include "net/connection/connection.hpp"
#include "net/http/http_exchange.hpp"
#include "net/server/http_server.hpp"
#include "net/websocket/websocket.hpp"

namespace sluice {

struct HttpServerOptions;

/// A connection that has become a WebSocket: frames in both directions, pings, and the closing
/// handshake. Belongs to its connection's loop.
class ServerWebSocket final : public WebSocketSession,
                              private ConnectionProtocol,
                              private WebSocketEvents {
 public:
  /// `server` must outlive the session.
  ServerWebSocket(Connection& connection, const HttpServerOptions& server,
                  const WebSocketOptions& options, bool deflate,
                  std::unique_ptr<WebSocketHandler> handler);

  /// The session as the protocol that the connection uses from now on.
  [[nodiscard]] ConnectionProtocolPtr as_protocol();

  bool send_text(std::string_view text) override;
  bool send_frames(const Bytes& frames) override;
  bool send_frames(std::string_view frames) override;
  bool push_frames(std::string_view frames) override;
  void ping(std::string_view payload) override;
  void resume_input() override;
  void close(int code, std::string_view reason) override;
  void flush() override;
  [[nodiscard]] bool is_open() const override { return connection_ && !close_sent_; }
  [[nodiscard]] std::size_t queued_bytes() const override;
  [[nodiscard]] Duration stalled_for() const override;
  [[nodiscard]] Executor& executor() override { return *executor_; }

 private:
  bool on_input(InputBuffer& input) override;
  [[nodiscard]] bool holds_input() const override { return is_paused_; }
  [[nodiscard]] bool wants_input(const InputBuffer& input) const override;
  void on_no_memory() override;
  void on_input_end() override;
  void on_drain() override;
  [[nodiscard]] bool outlives_output() const override { return false; }
  void on_tick(TimePoint now) override;
  void on_shutdown() override;
  [[nodiscard]] bool is_idle() const override { return false; }
  void on_worker(ConnectionWorker& /*worker*/) override {}
  void on_end() override;
  void release() override { release_reference(); }

  void on_message(WebSocketOpcode opcode, std::string_view payload) override;
  void on_joined_message(WebSocketOpcode opcode, std::string payload) override;
  void on_ping(std::string_view payload) override;
  void on_pong(std::string_view payload) override;
  void on_close(int code, std::string_view reason) override;
  void on_work(std::size_t cost) override;
  [[nodiscard]] bool wants_more() const override;
  template <class OnText>
  void take_message(WebSocketOpcode opcode, std::string_view payload, const OnText& on_text);
  bool send_frame(WebSocketOpcode opcode, std::string_view payload, bool compressed);
  void end();
  void tell_closed(int code);

  RefPtr<Connection> connection_;  // null once lost
  Executor* executor_;
  const HttpServerOptions* server_;
  std::unique_ptr<WebSocketHandler> handler_;  // null once told of the end
  WebSocketDecoder decoder_;
  std::size_t deflate_threshold_;  // 0: nothing is compressed
  CoarseHold hold_;                // of what the decoder holds
  TimePoint heard_at_;
  TimePoint partial_at_{};  // when the incomplete message began
  TimePoint close_sent_at_;
  int close_code_ = 1006;
  std::uint8_t unanswered_pings_ = 0;
  bool input_paused_ = false;  // by the handler
  bool is_paused_ = false;     // the decoder may hold complete messages
  TimePoint paused_at_{};      // when input was decoded last
  bool close_sent_ = false;
};

}  // namespace sluice
