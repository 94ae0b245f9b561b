#include "net/server/server_websocket.hpp"

#include <utility>

#include "net/http/compression.hpp"

namespace sluice {
namespace {

constexpr int kLost = 1006;
constexpr int kUnsupportedData = 1003;
constexpr int kPolicyViolation = 1008;
constexpr int kTryAgainLater = 1013;
constexpr std::uint8_t kMaxUnansweredPings = 2;
/// How long a peer may take to answer our close frame.
constexpr Duration kCloseTimeout = std::chrono::seconds(5);

}  // namespace

ServerWebSocket::ServerWebSocket(Connection& connection, const HttpServerOptions& server,
                                 const WebSocketOptions& options, bool deflate,
                                 std::unique_ptr<WebSocketHandler> handler)
    : connection_(&connection),
      executor_(&connection.worker().loop),
      server_(&server),
      handler_(std::move(handler)),
      decoder_(WebSocketDecoder::Role::server, options.max_message, deflate),
      deflate_threshold_(deflate ? options.deflate_threshold : 0),
      heard_at_(connection.worker().coarse_now()) {}

ConnectionProtocolPtr ServerWebSocket::as_protocol() {
  add_reference();
  return ConnectionProtocolPtr(this);
}

bool ServerWebSocket::wants_input(const InputBuffer& /*input*/) const {
  return !input_paused_ && !connection_->is_output_full();
}

bool ServerWebSocket::on_input(InputBuffer& input) {
  if (input_paused_) return false;
  if (!input.empty()) {
    heard_at_ = connection_->worker().coarse_now();
    unanswered_pings_ = 0;
  }
  if (const Result<void> fed = decoder_.feed(input.bytes(), *this); !fed) {
    close(fed.error().code, fed.error().message);
    end();
  }
  input.clear();
  if (!hold_.hold(connection_->memory(), decoder_.held_bytes())) {
    decoder_.stop();
    hold_.release();
    close(kTryAgainLater, "The server is out of memory for buffers");
    end();
  }
  const TimePoint now = connection_->worker().coarse_now();
  if (decoder_.held_bytes() == 0) {
    partial_at_ = {};
  } else if (partial_at_ == TimePoint{}) {
    partial_at_ = heard_at_;
  } else if (is_paused_) {
    // The time for which the server read nothing does not count.
    partial_at_ += now - paused_at_;
  }
  is_paused_ = decoder_.held_bytes() > 0 && !wants_more();
  paused_at_ = now;
  return is_paused_ && !input_paused_;
}

void ServerWebSocket::on_drain() {
  if (handler_ != nullptr && !close_sent_) handler_->on_drain();
}

bool ServerWebSocket::wants_more() const {
  // A message has just been handled. Whether another one may be depends on the time that it took.
  connection_->end_step();
  return connection_->is_open() && !input_paused_ && !connection_->is_output_full() &&
         connection_->may_work();
}

void ServerWebSocket::on_work(std::size_t cost) {
  connection_->worked(cost);
}

void ServerWebSocket::on_no_memory() {
  connection_->give_up();
}

void ServerWebSocket::on_end() {
  const RefPtr<Connection> connection = std::exchange(connection_, nullptr);
  ServerCounters::subtract(connection->worker().counters.websockets);
  hold_.release();
  tell_closed(close_code_);
}

/// The peer has closed its side without the closing handshake. What is queued is still sent.
void ServerWebSocket::on_input_end() {
  close_sent_ = true;
  end();
}

void ServerWebSocket::on_shutdown() {
  close(1001, "the server is shutting down");
}

void ServerWebSocket::tell_closed(int code) {
  if (const std::unique_ptr<WebSocketHandler> handler = std::move(handler_)) {
    handler->on_close(code);
  }
}

/// Pings an idle peer and gives up a silent one.
void ServerWebSocket::on_tick(TimePoint now) {
  // While a peer does not read, nothing is read from it: neither its pongs nor the rest of a
  // message.
  if (connection_->is_output_full()) {
    heard_at_ = now;
    if (partial_at_ != TimePoint{}) partial_at_ = now;
  }
  if (!close_sent_ && !is_paused_ && partial_at_ != TimePoint{} &&
      now - partial_at_ >= server_->request_timeout) {
    connection_->note_timeout("a message");
    close(kPolicyViolation, "The message took too long to arrive");
    end();
    return;
  }
  const Duration interval = server_->ping_interval;
  bool is_dead = close_sent_ && now - close_sent_at_ >= kCloseTimeout;
  if (!close_sent_ && interval != Duration{} &&
      now - heard_at_ >= interval * (unanswered_pings_ + 1)) {
    is_dead = unanswered_pings_ >= kMaxUnansweredPings;
    if (!is_dead) {
      ++unanswered_pings_;
      ping({});
    }
  }
  if (!is_dead) return;
  connection_->note_timeout("a pong or its close");
  connection_->give_up();
}

bool ServerWebSocket::send_text(std::string_view text) {
  if (!is_open() || !connection_->may_send()) return true;
  // Nothing can be sent before a message is complete, so a long one is not compressed in steps, but
  // sent as it is.
  if (deflate_threshold_ > 0 && text.size() >= deflate_threshold_ &&
      text.size() <= kCompressedAtOnce) {
    std::string compressed;
    deflate_message(text, compressed);
    connection_->worked(text.size() * kCompressionCost);
    if (compressed.size() < text.size()) {
      return send_frame(WebSocketOpcode::text, compressed, true);
    }
  }
  return send_frame(WebSocketOpcode::text, text, false);
}

bool ServerWebSocket::send_frames(const Bytes& frames) {
  if (!is_open()) return true;
  if (!connection_->may_send()) return !connection_->is_over();
  connection_->queue(frames, 0, frames.size());
  return connection_->added();
}

bool ServerWebSocket::send_frames(std::string_view frames) {
  if (!is_open()) return true;
  if (!connection_->may_send()) return !connection_->is_over();
  connection_->output().append(frames);
  return connection_->added();
}

bool ServerWebSocket::push_frames(std::string_view frames) {
  return !is_open() || connection_->send_now(frames);
}

void ServerWebSocket::ping(std::string_view payload) {
  if (is_open() && connection_->may_send()) send_frame(WebSocketOpcode::ping, payload, false);
}

void ServerWebSocket::resume_input() {
  input_paused_ = false;
  if (connection_) connection_->resume_later();
}

void ServerWebSocket::close(int code, std::string_view reason) {
  if (!is_open()) return;
  if (connection_->may_send()) {
    append_websocket_close(connection_->output(), code, reason);
    connection_->added();
  }
  close_sent_ = true;
  close_sent_at_ = connection_->worker().coarse_now();
  if (close_code_ == kLost) close_code_ = code;
}

void ServerWebSocket::flush() {
  if (connection_) connection_->flush();
}

std::size_t ServerWebSocket::queued_bytes() const {
  return connection_ ? connection_->queued_bytes() : 0;
}

Duration ServerWebSocket::stalled_for() const {
  return connection_ ? connection_->stalled_for() : Duration{};
}

bool ServerWebSocket::send_frame(WebSocketOpcode opcode, std::string_view payload,
                                 bool compressed) {
  append_websocket_frame(connection_->output(), opcode, payload, compressed);
  return connection_->added();
}

void ServerWebSocket::on_message(WebSocketOpcode opcode, std::string_view payload) {
  connection_->worked(payload.size());
  take_message(opcode, payload, [&] { return handler_->on_message(payload); });
}

void ServerWebSocket::on_joined_message(WebSocketOpcode opcode, std::string payload) {
  take_message(opcode, payload, [&] { return handler_->on_kept_message(std::move(payload)); });
}

template <class OnText>
void ServerWebSocket::take_message(WebSocketOpcode opcode, std::string_view payload,
                                   const OnText& on_text) {
  partial_at_ = {};
  connection_->worked(kMessageCost);
  if (close_sent_ || handler_ == nullptr) return;
  if (opcode == WebSocketOpcode::text) {
    input_paused_ = !on_text();
  } else if (!handler_->on_binary(payload)) {
    close(kUnsupportedData, "Send text messages");
  }
}

void ServerWebSocket::on_ping(std::string_view payload) {
  if (is_open() && connection_->may_send()) send_frame(WebSocketOpcode::pong, payload, false);
}

void ServerWebSocket::on_pong(std::string_view /*payload*/) {}

void ServerWebSocket::on_close(int code, std::string_view /*reason*/) {
  close_code_ = code;
  close(code, {});
  end();
}

/// Ends the session. What is queued is still sent.
void ServerWebSocket::end() {
  if (connection_) connection_->close_after_flush();
  tell_closed(close_code_);
}

}  // namespace sluice
