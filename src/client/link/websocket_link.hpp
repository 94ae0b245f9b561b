#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "client/link/paused_requests.hpp"
#include "client/link/request_authorizer.hpp"
#include "client/session/contract/server_link.hpp"
#include "net/client/websocket_client.hpp"
#include "net/http/url.hpp"
#include "net/loop/event_loop.hpp"

namespace sluice {

struct WebSocketLinkOptions {
  Url url;                      // ws, wss, http or https
  HttpHeaderList headers = {};  // sent with the handshake
  /// With the limits of the other links.
  WebSocketClientOptions socket = {.max_message = std::size_t{64} << 20U,
                                   .max_queued = std::size_t{64} << 20U};
  std::shared_ptr<RequestAuthorizer> authorizer =
      {};  // of the handshake; null: it is sent as it is
};

/// Messages over a WebSocket, one in each text message. This transport is an extension of Sluice.
class WebSocketLink final : public ServerLink {
 public:
  WebSocketLink(EventLoop& loop, WebSocketLinkOptions options);
  ~WebSocketLink() override;
  WebSocketLink(const WebSocketLink&) = delete;
  WebSocketLink& operator=(const WebSocketLink&) = delete;

  void open(Owner& owner) override;
  /// What is sent before the connection is open waits for that. Errors: kBusy beyond
  /// WebSocketClientOptions::max_queued, kLostConnection once the connection is over.
  Result<void> send(OutgoingMessage message) override;
  bool drop(const RequestId& /*id*/) override { return false; }
  void pause(const RequestId& id, bool is_paused) override;
  [[nodiscard]] bool shares_connection() const override { return true; }
  bool reopen() override;
  /// Waits until the server has taken what was sent, which the closing handshake shows, or a
  /// second.
  void close(std::function<void()> done) override;

 private:
  void connect();
  void authorize();
  void on_authorized(Result<RequestAuthorization> made);
  void on_refused(const HttpReplyHead& reply);
  void lose(const Error& why);
  void on_open();
  void on_message(WebSocketOpcode kind, std::string_view text);
  void on_end(const Error& why);

  EventLoop* loop_;
  WebSocketLinkOptions options_;
  Owner* owner_ = nullptr;
  bool is_over_ = true;                      // before open() and after the connection
  std::unique_ptr<WebSocketClient> socket_;  // null until the handshake, and once it is over
  std::uint64_t credential_ = 0;             // that the handshake was sent with
  int attempts_ = 0;                         // at the handshake
  bool is_refused_ = false;                  // the authorizer deals with that
  /// Whether this exists, for callbacks.
  std::shared_ptr<const bool> alive_ = std::make_shared<const bool>(true);
  PausedRequests paused_;
  struct Waiting {
    std::string text;
    std::shared_ptr<void> memory;
  };
  std::vector<Waiting> waiting_;  // until the connection is open
  std::size_t waiting_bytes_ = 0;
  std::function<void()> on_closed_;  // set while it is being closed
};

}  // namespace sluice
