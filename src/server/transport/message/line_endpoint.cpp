#include "server/transport/message/line_endpoint.hpp"

#include <string>
#include <utility>

#include "rpc/error_codes.hpp"
#include "server/transport/message/message_connection.hpp"

namespace sluice {
namespace {

const PushedChunkEncoder& line_encoder() {
  static const PushedChunkEncoder encoder(line_framing());
  return encoder;
}

/// Several may have the same address, as over HTTP.
Principal principal_of(const LinePeer& peer) {
  if (const auto* const address = std::get_if<PeerAddress>(&peer)) {
    return {.id = address->to_string(), .isolated = false};
  }
  return {.id = "uid:" + std::to_string(std::get<uid_t>(peer))};
}

/// One connection of lines as the transport of a MessageConnection.
class LineMessages final : public LineHandler, public MessageOutput {
 public:
  LineMessages(std::shared_ptr<MessageConnection> connection, LineProtocolPtr session,
               std::size_t max_line)
      : connection_(std::move(connection)), session_(std::move(session)), max_line_(max_line) {
    connection_->attach(*this);
  }

  // LineHandler
  bool on_line(std::string_view line) override {
    Executor::Task handled = [this] { session_->resume_input(); };
    return connection_->on_message(line, handled);
  }
  void on_long_line() override {
    connection_->refuse(
        {kInvalidRequest,
         "Invalid Request: the message is longer than " + std::to_string(max_line_) + " bytes",
         {}});
  }
  void on_other_protocol() override {
    connection_->refuse({kParseError,
                         "Parse error: this port takes JSON-RPC, one message per line, and no HTTP",
                         {}});
    session_->close();
  }
  void on_drain() override { connection_->on_drain(); }
  void on_input_end() override {
    connection_->when_idle([session = session_] { session->close(); });
  }
  void on_close() override { connection_->on_close(); }

  // MessageOutput
  bool send(std::string message) override {
    message.push_back('\n');
    return session_->take(std::move(message));
  }
  bool send_framed(std::string_view messages) override { return session_->send(messages); }
  bool send_framed(const Bytes& messages) override { return session_->send(messages); }
  void flush() override { session_->flush(); }
  bool push_framed(std::string_view messages) override {
    const LineProtocolPtr session = session_;
    const bool writable = session->send(messages);
    session->flush();
    return writable;
  }

 private:
  std::shared_ptr<MessageConnection> connection_;
  LineProtocolPtr session_;
  std::size_t max_line_;
};

}  // namespace

std::unique_ptr<LineHandler> LineEndpoint::open(LineProtocolPtr session, const LinePeer& peer) {
  Principal principal = principal_of(peer);
  session->charge_to(service_->memory_of(principal.id));
  auto connection =
      std::make_shared<MessageConnection>(*service_, std::move(principal), line_encoder());
  return std::make_unique<LineMessages>(std::move(connection), std::move(session), max_line_);
}

}  // namespace sluice
