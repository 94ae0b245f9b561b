#include "client/link/websocket_link.hpp"

#include <utility>

#include "client/link/authorized_http.hpp"
#include "client/link/nobody.hpp"
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
  is_over_ = false;
  attempts_ = 0;
  authorize();
}

void WebSocketLink::authorize() {
  is_refused_ = false;
  if (options_.authorizer == nullptr) return on_authorized(RequestAuthorization());
  options_.authorizer->authorize(
      "GET", options_.url,
      [this, alive = std::weak_ptr(alive_)](Result<RequestAuthorization> made) {
        if (!alive.expired()) on_authorized(std::move(made));
      });
}

void WebSocketLink::on_authorized(Result<RequestAuthorization> made) {
  if (is_over_) return;
  if (!made) {
    // The owner must not be called from within open() and reopen().
    loop_->post([this, alive = std::weak_ptr(alive_), why = made.error()] {
      if (!alive.expired()) lose(why);
    });
    return;
  }
  ++attempts_;
  credential_ = made->credential;
  HttpHeaderList headers = options_.headers;
  add_authorization(headers, std::move(made->headers));
  socket_ = std::make_unique<WebSocketClient>(
      *loop_, options_.url, std::move(headers),
      WebSocketClientCallbacks{
          .on_refused = [this](const HttpReplyHead& reply) { on_refused(reply); },
          .on_open = [this] { on_open(); },
          .on_message = [this](WebSocketOpcode kind,
                               std::string_view text) { on_message(kind, text); },
          .on_end = [this](const Error& why) { on_end(why); }},
      options_.socket);
}

void WebSocketLink::on_refused(const HttpReplyHead& reply) {
  if (options_.authorizer == nullptr || attempts_ >= AuthorizedHttp::kMaxAttempts) return;
  options_.authorizer->on_reply(reply);
  if (reply.status != kUnauthorized && reply.status != kForbidden) return;
  is_refused_ = options_.authorizer->on_refused(
      reply, credential_, [this, alive = std::weak_ptr(alive_)](Result<void> verdict) {
        if (alive.expired()) return;
        // The socket that was refused may call this function.
        loop_->post([this, alive, verdict = std::move(verdict)] {
          if (alive.expired() || is_over_) return;
          if (!verdict) return lose(verdict.error());
          authorize();
        });
      });
}

bool WebSocketLink::reopen() {
  if (is_over_) connect();
  return true;
}

Result<void> WebSocketLink::send(OutgoingMessage message) {
  if (is_over_) return fail(kLostConnection, "There is no connection to the server");
  const auto refused = [] {
    return fail(kBusy, "The server reads too slowly: too much waits to be sent to it");
  };
  if (socket_ != nullptr && socket_->is_open()) {
    if (!socket_->send_text(message.text, std::move(message.memory))) return refused();
    return {};
  }
  if (!waiting_.empty() && waiting_bytes_ + message.text.size() > options_.socket.max_queued) {
    return refused();
  }
  waiting_bytes_ += message.text.size();
  waiting_.push_back({.text = std::move(message.text), .memory = std::move(message.memory)});
  return {};
}

void WebSocketLink::pause(const RequestId& id, bool is_paused) {
  const bool is_any_paused = paused_.set(id, is_paused);
  if (socket_ != nullptr) socket_->pause(is_any_paused);
}

void WebSocketLink::on_open() {
  waiting_bytes_ = 0;
  for (Waiting& message : std::exchange(waiting_, {})) {
    const bool is_sent = socket_->send_text(message.text, std::move(message.memory));
    if (!is_sent) log_warning("a message to a server could not be sent", {});
  }
}

void WebSocketLink::on_message(WebSocketOpcode kind, std::string_view text) {
  if (kind == WebSocketOpcode::text) return owner_->on_message(text);
  owner_->on_unreadable(text, {kInternalServerError, "it is binary, and messages are text", {}});
}

void WebSocketLink::close(std::function<void()> done) {
  if (socket_ == nullptr || !socket_->is_open()) return done();
  owner_ = &nobody();
  on_closed_ = std::move(done);
  socket_->close();
}

void WebSocketLink::on_end(const Error& why) {
  // The callback may destroy this.
  if (const auto done = std::exchange(on_closed_, {})) return done();
  if (is_refused_) return;
  lose({why.code >= 400 && why.code < 500 ? why.code : kLostConnection, why.message, {}});
}

void WebSocketLink::lose(const Error& why) {
  // The error may belong to the socket.
  const Error reason = why;
  is_over_ = true;
  const std::unique_ptr<WebSocketClient> over = std::move(socket_);
  waiting_.clear();
  waiting_bytes_ = 0;
  owner_->on_lost(reason);
}

}  // namespace sluice
