#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "fault_server.hpp"
#include "net/websocket/websocket.hpp"

namespace sluice::faults {

/// The server's end of a WebSocket whose handshake is over.
class FaultServer::Socket final : private WebSocketEvents {
 public:
  Socket(FaultServer& server, std::size_t connection)
      : server_(&server),
        connection_(connection),
        decoder_(WebSocketDecoder::Role::server, std::size_t{1} << 20U, false) {}

  void feed(std::string_view bytes) {
    std::string own(bytes);
    if (!decoder_.feed(own, *this)) server_->complain("the client sends frames that are none");
  }

 private:
  void on_message(WebSocketOpcode /*opcode*/, std::string_view payload) override {
    server_->take_message(connection_, payload);
  }
  void on_ping(std::string_view payload) override {
    std::string pong;
    append_websocket_frame(pong, WebSocketOpcode::pong, payload);
    server_->send(connection_, std::move(pong));
  }
  void on_pong(std::string_view /*payload*/) override {}
  void on_close(int code, std::string_view /*reason*/) override {
    std::string close;
    append_websocket_close(close, code == 1005 ? 1000 : code, {});
    server_->send(connection_, std::move(close));
    server_->end(connection_, Step::Kind::end);
  }

  FaultServer* server_;
  std::size_t connection_;
  WebSocketDecoder decoder_;
};

}  // namespace sluice::faults
