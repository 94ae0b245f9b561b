#include "net/server_websocket.hpp"

#include <utility>

#include "net/compression.hpp"

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

ServerWebSocket::ServerWebSocket(Connection& connection, const WebSocketOptions& options,
                                 bool deflate, std::unique_ptr<WebSocketHandler> handler)
    : connection_(&connection),
      executor_(&connection.worker().loop),
      handler_(std::move(handler)),
      decoder_(WebSocketDecoder::Role::server, options.max_message, deflate),
      deflate_threshold_(deflate ? options.deflate_threshold : 0),
      heard_at_(connection.worker().coarse_now()) {}

void ServerWebSocket::feed(std::span<char> bytes) {
  if (!connection_) return;
  heard_at_ = connection_->worker().coarse_now();
  unanswered_pings_ = 0;
  decode(bytes);
}

void ServerWebSocket::decode(std::span<char> bytes) {
  const RefPtr<ServerWebSocket> keep(this);
  if (const Result<void> fed = decoder_.feed(bytes, *this); !fed) {
    close(fed.error().code, fed.error().message);
    end();
  }
  if (!connection_) return;
  const bool is_whole = decoder_.held_bytes() == 0 || !wants_more();
  if (is_whole) {
    partial_at_ = {};
  } else if (partial_at_ == TimePoint{}) {
    partial_at_ = heard_at_;
  }
  if (!share_.hold(connection_->worker().buffers.budget(), decoder_.held_bytes())) {
    close(kTryAgainLater, "The server holds as much as it may");
    end();
  }
}

void ServerWebSocket::drained() {
  const RefPtr<ServerWebSocket> keep(this);
  if (handler_ != nullptr && !close_sent_) handler_->on_drain();
  // What waited for the peer to read.
  if (connection_ && wants_more()) decode({});
}

bool ServerWebSocket::wants_more() const {
  return connection_ && !connection_->is_output_full();
}

void ServerWebSocket::lost() {
  share_.release(connection_->worker().buffers.budget());
  connection_ = nullptr;
  tell_closed(close_code_);
}

void ServerWebSocket::input_ended() {
  const RefPtr<ServerWebSocket> keep(this);
  close_sent_ = true;
  end();
}

void ServerWebSocket::tell_closed(int code) {
  if (const std::unique_ptr<WebSocketHandler> handler = std::move(handler_)) {
    handler->on_close(code);
  }
}

void ServerWebSocket::tick(TimePoint now) {
  const HttpServerOptions& options = connection_->worker().options;
  if (!close_sent_ && partial_at_ != TimePoint{} && now - partial_at_ >= options.request_timeout) {
    ServerCounters::add(connection_->worker().counters.timeouts);
    close(kPolicyViolation, "The message took too long to arrive");
    end();
    return;
  }
  // A peer that does not read is not read from: its pongs are not seen.
  if (connection_->is_output_full()) heard_at_ = now;
  const Duration interval = options.ping_interval;
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
  ServerCounters::add(connection_->worker().counters.timeouts);
  connection_->give_up();
}

bool ServerWebSocket::send_text(std::string_view text) {
  if (!is_open() || !connection_->may_send()) return true;
  if (deflate_threshold_ > 0 && text.size() >= deflate_threshold_) {
    std::string compressed;
    deflate_message(text, compressed);
    if (compressed.size() < text.size()) {
      return send_frame(WebSocketOpcode::text, compressed, true);
    }
  }
  return send_frame(WebSocketOpcode::text, text, false);
}

bool ServerWebSocket::send_frames(const Bytes& frames) {
  if (!is_open() || !connection_->may_send()) return true;
  connection_->queue(frames, 0, frames.size());
  return connection_->added();
}

bool ServerWebSocket::send_frames(std::string_view frames) {
  if (!is_open() || !connection_->may_send()) return true;
  connection_->output().append(frames);
  return connection_->added();
}

bool ServerWebSocket::push_frames(std::string_view frames) {
  return !is_open() || connection_->send_now(frames);
}

void ServerWebSocket::ping(std::string_view payload) {
  if (is_open() && connection_->may_send()) send_frame(WebSocketOpcode::ping, payload, false);
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
  partial_at_ = {};
  if (close_sent_ || handler_ == nullptr) return;
  if (opcode == WebSocketOpcode::text) {
    handler_->on_message(payload);
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

/// The conversation is over; what is queued still leaves.
void ServerWebSocket::end() {
  if (connection_) connection_->close_after_flush();
  tell_closed(close_code_);
}

}  // namespace sluice
