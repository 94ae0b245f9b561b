#include "client/link/websocket_link.hpp"

#include <utility>

#include "core/log/log.hpp"
#include "net/http/status_codes.hpp"

namespace sluice {

WebSocketLink::WebSocketLink(EventLoop& loop, WebSocketLinkOptions options)
    : loop_(&loop), options_(std::move(options)) {}

WebSocketLink::~WebSocketLink() = default;

void WebSocketLink::open(Owner& owner) {
  owner_ = &owner;
  connect();
}

void WebSocketLink::connect() {
  socket_ = std::make_unique<WebSocketClient>(
      *loop_, options_.url, options_.headers,
      WebSocketClientCallbacks{
          .on_open = [this] { on_open(); },
          .on_message = [this](WebSocketOpcode kind,
                               std::string_view text) { on_message(kind, text); },
          .on_end = [this](const Error& why) { on_end(why); }},
      options_.socket);
}

bool WebSocketLink::reopen() {
  if (socket_ == nullptr) connect();
  return true;
}

Result<void> WebSocketLink::send(OutgoingMessage message) {
  if (socket_ == nullptr) return fail(kLostConnection, "There is no connection to the server");
  const auto refused = [] {
    return fail(kBusy, "The server reads too slowly: too much waits to be sent to it");
  };
  if (socket_->is_open()) {
    if (!socket_->send_text(message.text)) return refused();
    return {};
  }
  if (!waiting_.empty() && waiting_bytes_ + message.text.size() > options_.socket.max_queued) {
    return refused();
  }
  waiting_bytes_ += message.text.size();
  waiting_.push_back(std::move(message.text));
  return {};
}

void WebSocketLink::on_open() {
  waiting_bytes_ = 0;
  for (const std::string& text : std::exchange(waiting_, {})) {
    if (!socket_->send_text(text)) log_warning("a message to a server could not be sent", {});
  }
}

void WebSocketLink::on_message(WebSocketOpcode kind, std::string_view text) {
  if (kind == WebSocketOpcode::text) return owner_->on_message(text);
  owner_->on_unreadable(text, {kInternalServerError, "it is binary, and messages are text", {}});
}

void WebSocketLink::on_end(const Error& why) {
  // The error belongs to the socket.
  const std::string reason = why.message;

  const int code = why.code >= 400 && why.code < 500 ? why.code : kLostConnection;
  const std::unique_ptr<WebSocketClient> over = std::move(socket_);
  waiting_.clear();
  waiting_bytes_ = 0;
  owner_->on_lost({code, reason, {}});
}

}  // namespace sluice
