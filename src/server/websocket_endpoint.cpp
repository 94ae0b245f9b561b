#include "server/websocket_endpoint.hpp"

#include <memory>
#include <utility>

#include "server/message_connection.hpp"

namespace sluice {
namespace {

const PushedChunkEncoder& frame_encoder() {
  static const PushedChunkEncoder encoder(websocket_framing());
  return encoder;
}

class Output final : public MessageOutput {
 public:
  explicit Output(WebSocketSessionPtr session) : session_(std::move(session)) {}
  void send(std::string_view message) override { session_->send_text(message); }
  bool send_framed(std::string_view messages) override { return session_->send_frames(messages); }
  bool send_framed(const Bytes& messages) override { return session_->send_frames(messages); }
  void flush() override { session_->flush(); }

 private:
  WebSocketSessionPtr session_;
};

class Handler final : public WebSocketHandler {
 public:
  explicit Handler(std::shared_ptr<MessageConnection> connection)
      : connection_(std::move(connection)) {}
  void on_message(std::string_view text) override { connection_->on_message(text); }
  void on_drain() override { connection_->on_drain(); }
  void on_close(int /*code*/) override { connection_->on_close(); }

 private:
  std::shared_ptr<MessageConnection> connection_;
};

}  // namespace

void WebSocketEndpoint::open(const HttpRequest& request, HttpExchange& exchange,
                             const WebSocketOptions& options, const std::string& principal) {
  const auto connection =
      std::make_shared<MessageConnection>(*service_, principal, frame_encoder());
  WebSocketSessionPtr session =
      exchange.upgrade_websocket(request, options, std::make_unique<Handler>(connection));
  if (session) connection->attach(std::make_unique<Output>(std::move(session)));
}

}  // namespace sluice
