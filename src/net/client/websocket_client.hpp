#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string_view>

#include "core/clock.hpp"
#include "core/error.hpp"
#include "net/client/http_client.hpp"
#include "net/http/url.hpp"
#include "net/io/tls.hpp"
#include "net/loop/event_loop.hpp"
#include "net/websocket/websocket.hpp"

namespace sluice {

struct WebSocketClientOptions {
  Dial dial = {};                                       // empty: TCP
  std::shared_ptr<const ProxySettings> proxies = {};    // null: none; unused with `dial`
  std::shared_ptr<TlsContext> tls = {};                 // a client's context, for wss and https
  Duration connect_timeout = std::chrono::seconds(10);  // from the lookup to the handshake
  Duration idle_timeout = std::chrono::seconds(60);     // a ping is sent after half of it
  std::size_t max_message = 16U << 20U;
  std::size_t max_queued = 16U << 20U;  // bytes that wait to be sent
};

/// Called on the loop, never from within the client's functions; they may destroy the client. Each
/// may be empty.
struct WebSocketClientCallbacks {
  /// The head of a reply that refuses the handshake. on_end follows.
  std::function<void(const HttpReplyHead&)> on_refused = {};
  std::function<void()> on_open = {};
  std::function<void(WebSocketOpcode, std::string_view)> on_message = {};
  /// Called once, and last. The code is the close code of the server or of close(); or the HTTP
  /// status with which the server refused the handshake (4xx, 5xx); 400: the request cannot be sent
  /// as it is; 502: no connection or a broken one; 504: a timeout.
  std::function<void(const Error&)> on_end = {};
};

/// The client's end of a WebSocket (RFC 6455). Destroying it closes the connection. Belongs to the
/// loop.
class WebSocketClient {
 public:
  /// Connects to a ws, wss, http or https URL; `headers` are sent besides those of the handshake.
  WebSocketClient(EventLoop& loop, Url url, HttpHeaderList headers,
                  WebSocketClientCallbacks callbacks, WebSocketClientOptions options = {});
  ~WebSocketClient();
  WebSocketClient(const WebSocketClient&) = delete;
  WebSocketClient& operator=(const WebSocketClient&) = delete;

  /// False if it is not open, or more than max_queued bytes wait already. `memory` is kept until
  /// the text has left.
  bool send_text(std::string_view text, std::shared_ptr<void> memory = nullptr);
  /// Starts the closing handshake; on_end follows when the server has answered, or after a second.
  void close(int code = 1000, std::string_view reason = {});
  /// Reads nothing more while it is paused, and so answers no pings. Messages that have been read
  /// may still be passed on.
  void pause(bool is_paused);
  [[nodiscard]] bool is_open() const;

 private:
  class Session;
  std::shared_ptr<Session> session_;
};

}  // namespace sluice
