#include "net/client/websocket_client.hpp"

#include <array>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "core/crypto/random.hpp"
#include "core/text/base64.hpp"
#include "net/client/client_connection.hpp"
#include "net/http/http_reply_parser.hpp"
#include "net/http/http_types.hpp"
#include "net/http/request_head.hpp"
#include "net/http/status_codes.hpp"

namespace sluice {
namespace {

constexpr std::size_t kMaxHead = std::size_t{64} << 10U;
constexpr Duration kClosePatience = std::chrono::seconds(1);

/// An unpredictable masking key (RFC 6455, section 10.3), from a stock that saves system calls.
std::uint32_t random_mask() {
  thread_local std::array<std::uint32_t, 256> stock;
  thread_local std::size_t left = 0;
  if (left == 0) {
    random_bytes(std::as_writable_bytes(std::span(stock)));
    left = stock.size();
  }
  return stock[--left];
}

/// 16 random bytes in base64 (section 4.1).
std::string random_key() {
  std::array<char, 16> bytes{};
  random_bytes(std::as_writable_bytes(std::span(bytes)));
  std::string text;
  append_base64(text, {bytes.data(), bytes.size()});
  return text;
}

}  // namespace

class WebSocketClient::Session final : public std::enable_shared_from_this<Session>,
                                       private ClientConnection::Owner,
                                       private HttpReplySink,
                                       private WebSocketEvents {
 public:
  Session(EventLoop& loop, Url url, WebSocketClientCallbacks callbacks,
          WebSocketClientOptions options)
      : loop_(&loop),
        url_(std::move(url)),
        callbacks_(std::move(callbacks)),
        options_(std::move(options)),
        decoder_(WebSocketDecoder::Role::client, options_.max_message, false) {}

  void start(HttpHeaderList headers) {
    const std::string key = random_key();
    expected_accept_ = websocket_accept_key(key);
    headers.emplace_back("Connection", "Upgrade");
    headers.emplace_back("Upgrade", "websocket");
    headers.emplace_back("Sec-WebSocket-Version", "13");
    headers.emplace_back("Sec-WebSocket-Key", key);
    Result<std::string> head = make_request_head("GET", url_, headers);
    if (!head) {
      loop_->post(
          [self = shared_from_this(), why = head.error().message] { self->end(kBadRequest, why); });
      return;
    }
    Result<ConnectionRoute> route = route_to(url_, options_.dial, options_.proxies.get(), true);
    if (!route) {
      loop_->post([self = shared_from_this(), why = route.error().message] {
        self->end(kBadRequest, why);
      });
      return;
    }
    handshake_.emplace(static_cast<HttpReplySink&>(*this), kMaxHead, false);
    connection_ = std::make_shared<ClientConnection>(*loop_, url_, options_.tls, *std::move(route));
    connection_->set_owner(this);
    connection_->write(std::move(head->append("\r\n")));
    connection_->connect(options_.connect_timeout);
    arm_timer(options_.connect_timeout);
  }

  void drop() {
    if (state_ == State::open && !close_sent_) send_close(kGoingAway, {});
    release();
  }

  bool send(WebSocketOpcode opcode, std::string_view payload,
            std::shared_ptr<void> memory = nullptr) {
    if (!is_open() || connection_->queued_bytes() > options_.max_queued) return false;
    std::string frame;
    append_websocket_frame(frame, opcode, payload, false, random_mask());
    connection_->write(std::move(frame), std::move(memory));
    return true;
  }

  void close(int code, std::string_view reason) {
    if (!is_open()) return;
    close_code_ = code;
    close_reason_ = reason;
    send_close(code, reason);
    arm_timer(kClosePatience);
  }

  void pause(bool is_paused) {
    is_paused_ = is_paused;
    if (connection_ != nullptr) connection_->pause(is_paused);
  }

  [[nodiscard]] bool is_open() const { return state_ == State::open && !close_sent_; }

 private:
  enum class State : std::uint8_t { connecting, open, ended };

  // From the connection.
  void on_bytes(std::span<char> bytes) override {
    const auto self = shared_from_this();
    heard_at_ = loop_->clock().now();
    pinged_ = false;
    if (state_ == State::open) {
      decode(bytes);
      return;
    }
    if (const Result<void> fed = handshake_->feed({bytes.data(), bytes.size()}); !fed) {
      end(kBadGateway, fed.error().message);
      return;
    }
    if (state_ != State::connecting || !handshake_->done()) return;
    std::string rest(handshake_->rest());
    handshake_.reset();
    state_ = State::open;
    arm_timer(options_.idle_timeout / 2);
    if (callbacks_.on_open) callbacks_.on_open();
    if (state_ == State::open && !rest.empty()) decode(rest);
  }

  void on_end() override {
    const auto self = shared_from_this();
    if (close_sent_) {
      end(close_code_, close_reason_);
    } else {
      end(kBadGateway, url_.authority() + " closed the connection");
    }
  }

  void on_failure(const Error& error) override {
    const auto self = shared_from_this();
    end(error.code, error.message);
  }

  // From the handshake's reply (section 4.1).
  bool on_head(int status, std::span<const HeaderField> headers) override {
    const auto header = [fields = HeaderFields(headers)](std::string_view name) {
      return fields.value_of(name);
    };
    if (status != kSwitchingProtocols) {
      if (callbacks_.on_refused) callbacks_.on_refused({.status = status, .headers = headers});
      if (state_ != State::connecting) return false;
      std::string why = url_.authority() + " answers " + std::to_string(status) + " " +
                        std::string(reason_phrase(status)) + " instead of a WebSocket";
      if (status == kUpgradeRequired) why += "; a proxy in between must pass on Upgrade";
      end(status >= kBadRequest ? status : kBadGateway, why);
    } else if (!equals_ignoring_case(header("Upgrade"), "websocket") ||
               !list_has_token(header("Connection"), "upgrade") ||
               header("Sec-WebSocket-Accept") != expected_accept_) {
      end(kBadGateway, url_.authority() + " answers the WebSocket handshake wrongly");
    } else if (!header("Sec-WebSocket-Extensions").empty() ||
               !header("Sec-WebSocket-Protocol").empty()) {
      end(kBadGateway, url_.authority() + " chose an extension or protocol that was not offered");
    }
    return state_ == State::connecting;
  }
  bool on_body(std::string_view /*bytes*/) override { return false; }

  // From the decoder.
  void on_message(WebSocketOpcode opcode, std::string_view payload) override {
    if (state_ == State::open && callbacks_.on_message) callbacks_.on_message(opcode, payload);
  }
  void on_ping(std::string_view payload) override {
    if (!send(WebSocketOpcode::pong, payload) && is_open()) {
      end(kBadGateway, url_.authority() + " sends pings but takes nothing");
    }
  }
  void on_pong(std::string_view /*payload*/) override {}
  void on_close(int code, std::string_view reason) override {
    if (state_ != State::open) return;
    if (!close_sent_) send_close(code, {});
    end(code, reason.empty() ? "The server closed the WebSocket with code " + std::to_string(code)
                             : std::string(reason));
  }

  void decode(std::span<char> bytes) {
    const Result<void> fed = decoder_.feed(bytes, *this);
    if (fed || state_ != State::open) return;
    if (!close_sent_) send_close(fed.error().code, fed.error().message);
    end(fed.error().code, fed.error().message);
  }

  void send_close(int code, std::string_view reason) {
    close_sent_ = true;
    std::string frame;
    append_websocket_close(frame, code, reason, random_mask());
    connection_->write(std::move(frame));
  }

  void end(int code, std::string message) {
    if (state_ == State::ended) return;
    release();
    if (callbacks_.on_end) callbacks_.on_end({code, std::move(message)});
  }

  void release() {
    state_ = State::ended;
    loop_->cancel(std::exchange(timer_, 0));
    if (const auto connection = std::exchange(connection_, nullptr)) {
      connection->set_owner(nullptr);
      connection->close();
    }
  }

  void arm_timer(Duration wait) {
    loop_->cancel(timer_);
    timer_ = loop_->schedule_at(loop_->clock().now() + wait, [weak = weak_from_this()] {
      if (const auto self = weak.lock()) self->on_timer();
    });
  }

  void on_timer() {
    timer_ = 0;
    if (state_ == State::ended) return;
    if (state_ == State::connecting) {
      end(kGatewayTimeout, url_.authority() + " does not answer the WebSocket handshake");
    } else if (close_sent_) {
      end(close_code_, std::move(close_reason_));
    } else if (is_paused_) {
      // It cannot be heard whether the server is there.
      heard_at_ = loop_->clock().now();
      pinged_ = false;
      arm_timer(options_.idle_timeout / 2);
    } else if (pinged_) {
      end(kGatewayTimeout, url_.authority() + " sent nothing for too long");
    } else {
      const Duration half = options_.idle_timeout / 2;
      const Duration quiet = loop_->clock().now() - heard_at_;
      if (quiet < half) {
        arm_timer(half - quiet);
        return;
      }
      pinged_ = true;
      send(WebSocketOpcode::ping, {});
      arm_timer(half);
    }
  }

  EventLoop* loop_;
  Url url_;
  WebSocketClientCallbacks callbacks_;
  WebSocketClientOptions options_;
  std::shared_ptr<ClientConnection> connection_;  // null once ended
  std::optional<HttpReplyParser> handshake_;      // until it is over
  WebSocketDecoder decoder_;
  std::string expected_accept_;
  std::string close_reason_;  // of our own close
  int close_code_ = kNoStatus;
  TimePoint heard_at_{};
  Executor::TimerId timer_ = 0;
  State state_ = State::connecting;
  bool close_sent_ = false;
  bool is_paused_ = false;
  bool pinged_ = false;  // and nothing heard since
};

WebSocketClient::WebSocketClient(EventLoop& loop, Url url, HttpHeaderList headers,
                                 WebSocketClientCallbacks callbacks, WebSocketClientOptions options)
    : session_(std::make_shared<Session>(loop, std::move(url), std::move(callbacks),
                                         std::move(options))) {
  session_->start(std::move(headers));
}

WebSocketClient::~WebSocketClient() {
  session_->drop();
}

bool WebSocketClient::send_text(std::string_view text, std::shared_ptr<void> memory) {
  return session_->send(WebSocketOpcode::text, text, std::move(memory));
}

void WebSocketClient::close(int code, std::string_view reason) {
  session_->close(code, reason);
}

void WebSocketClient::pause(bool is_paused) {
  session_->pause(is_paused);
}

bool WebSocketClient::is_open() const {
  return session_->is_open();
}

}  // namespace sluice
