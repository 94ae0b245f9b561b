#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "core/memory_budget.hpp"
#include "net/connection.hpp"
#include "net/http_exchange.hpp"
#include "net/websocket.hpp"

namespace sluice {

/// A connection that has become a WebSocket: frames in both directions, pings, and the closing
/// handshake. Belongs to its connection's loop.
class ServerWebSocket final : public WebSocketSession, private WebSocketEvents {
 public:
  ServerWebSocket(Connection& connection, const WebSocketOptions& options, bool deflate,
                  std::unique_ptr<WebSocketHandler> handler);

  void feed(std::span<char> bytes);
  void drained();
  void lost();
  /// The peer has closed its side without the closing handshake. What is queued still leaves.
  void input_ended();
  /// Pings an idle peer and gives up a silent one.
  void tick(TimePoint now);

  bool send_text(std::string_view text) override;
  bool send_frames(const Bytes& frames) override;
  bool send_frames(std::string_view frames) override;
  bool push_frames(std::string_view frames) override;
  void ping(std::string_view payload) override;
  void close(int code, std::string_view reason) override;
  void flush() override;
  [[nodiscard]] bool is_open() const override { return connection_ && !close_sent_; }
  [[nodiscard]] std::size_t queued_bytes() const override;
  [[nodiscard]] Duration stalled_for() const override;
  [[nodiscard]] Executor& executor() override { return *executor_; }

 private:
  void on_message(WebSocketOpcode opcode, std::string_view payload) override;
  void on_ping(std::string_view payload) override;
  void on_pong(std::string_view payload) override;
  void on_close(int code, std::string_view reason) override;
  [[nodiscard]] bool wants_more() const override;
  void decode(std::span<char> bytes);
  bool send_frame(WebSocketOpcode opcode, std::string_view payload, bool compressed);
  void end();
  void tell_closed(int code);

  RefPtr<Connection> connection_;  // null once lost
  Executor* executor_;
  std::unique_ptr<WebSocketHandler> handler_;  // null once told of the end
  WebSocketDecoder decoder_;
  std::size_t deflate_threshold_;  // 0: nothing is compressed
  BudgetShare share_;              // of what the decoder holds
  TimePoint heard_at_;
  TimePoint partial_at_{};  // since when a message is there in part
  TimePoint close_sent_at_;
  int close_code_ = 1006;
  std::uint8_t unanswered_pings_ = 0;
  bool close_sent_ = false;
};

}  // namespace sluice
