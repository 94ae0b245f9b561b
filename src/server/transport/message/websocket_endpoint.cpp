#include "server/transport/message/websocket_endpoint.hpp"

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "auth/kept_key.hpp"
#include "server/transport/message/message_connection.hpp"

namespace sluice {
namespace {

/// The subprotocol that the official clients offer.
constexpr std::string_view kSubprotocol = "mcp";

const PushedChunkEncoder& frame_encoder() {
  static const PushedChunkEncoder encoder(websocket_framing());
  return encoder;
}

/// One WebSocket as the transport of a MessageConnection.
class WebSocketMessages final : public WebSocketHandler, public MessageOutput {
 public:
  WebSocketMessages(std::shared_ptr<MessageConnection> connection, KeptKey key)
      : connection_(std::move(connection)), key_(std::move(key)) {}

  void open(WebSocketSessionPtr session) {
    session_ = std::move(session);
    connection_->attach(*this);
  }

  // WebSocketHandler
  bool on_message(std::string_view text) override {
    if (ends_without_key()) return true;
    Executor::Task handled = when_handled();
    return connection_->on_message(text, handled);
  }
  bool on_kept_message(std::string text) override {
    if (ends_without_key()) return true;
    Executor::Task handled = when_handled();
    return connection_->on_kept_message(std::move(text), handled);
  }
  void on_drain() override { connection_->on_drain(); }
  void on_close(int /*code*/) override { connection_->on_close(); }

  // MessageOutput
  bool send(std::string message) override { return session_->send_text(message); }
  bool send_framed(std::string_view messages) override { return session_->send_frames(messages); }
  bool send_framed(const Bytes& messages) override { return session_->send_frames(messages); }
  void flush() override { session_->flush(); }
  bool push_framed(std::string_view messages) override { return session_->push_frames(messages); }

 private:
  /// Closes the connection if its caller's key has been removed. Returns whether it has.
  bool ends_without_key() {
    if (key_.is_valid(connection_->principal().id)) return false;
    static constexpr int kPolicyViolation = 1008;
    session_->close(kPolicyViolation, KeptKey::kRemoved);
    return true;
  }
  Executor::Task when_handled() {
    return [this] { session_->resume_input(); };
  }

  std::shared_ptr<MessageConnection> connection_;
  KeptKey key_;
  WebSocketSessionPtr session_;
};

}  // namespace

void WebSocketEndpoint::open(const HttpRequest& request, HttpExchange& exchange,
                             const WebSocketOptions& options, const Principal& principal,
                             std::vector<RequestField> fields) {
  auto handler = std::make_unique<WebSocketMessages>(
      std::make_shared<MessageConnection>(*service_, principal, frame_encoder(), std::move(fields)),
      KeptKey(*service_->access, request));
  WebSocketMessages* const opened = handler.get();
  WebSocketOptions chosen = options;
  // Clients that offer subprotocols refuse a server that takes none of them.
  if (request.lists(KnownHeader::sec_websocket_protocol, kSubprotocol)) {
    chosen.subprotocol = kSubprotocol;
  }
  WebSocketSessionPtr session = exchange.upgrade_websocket(request, chosen, std::move(handler));
  if (session) opened->open(std::move(session));
}

}  // namespace sluice
