#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/clock.hpp"
#include "core/error.hpp"
#include "core/unique_function.hpp"
#include "net/client/client_connection.hpp"
#include "net/client/proxy_settings.hpp"
#include "net/http/http_types.hpp"
#include "net/http/url.hpp"
#include "net/io/tls.hpp"
#include "net/loop/address_lookup.hpp"
#include "net/loop/event_loop.hpp"

namespace sluice {

using HttpHeaderList = std::vector<std::pair<std::string, std::string>>;

struct HttpClientRequest {
  std::string method = "GET";
  Url url;                      // http or https
  HttpHeaderList headers = {};  // besides Host, User-Agent, Connection and Content-Length
  std::string body = {};
  /// Whether the server may be silent for longer than HttpClientOptions::idle_timeout, because the
  /// caller decides how long it waits. That the server is gone is noticed all the same.
  bool is_patient = false;
  /// Whether the reply comes in small pieces, each of which is wanted at once. The kernel then does
  /// not delay its acknowledgements, for which a server with Nagle's algorithm (RFC 896) waits.
  bool is_trickle = false;
};

/// A reply's status and header fields. Views are valid during the callback.
struct HttpReplyHead {
  int status = 0;
  HeaderFields headers;

  /// The value of the first such field, or an empty view.
  [[nodiscard]] std::string_view header(std::string_view name) const {
    return headers.value_of(name);
  }
  /// The value of Retry-After (RFC 9110, section 10.2.3) if it is a number of seconds; at most 30.
  [[nodiscard]] std::optional<Duration> retry_after() const;
  /// Whether the body is a stream of events (WHATWG HTML, Server-sent events).
  [[nodiscard]] bool is_event_stream() const;
};

/// The events of a request: a connection that stands, a head, any number of pieces of the body
/// without their transfer coding, and the end; or a failure at any point. Each callback may be
/// empty. They are called on the client's loop, never from within send(). They may destroy the
/// call's handle and the client, and send again.
struct HttpReplyCallbacks {
  /// Called each time that the request is sent. From now on it is the server that is waited for.
  UniqueFunction<void()> on_connected = {};
  UniqueFunction<void(const HttpReplyHead&)> on_head = {};
  /// The head is there, and the whole request has left this process. A server may send the head
  /// before it has read the request, and end the reply without reading all of it: then this is not
  /// called.
  UniqueFunction<void()> on_sent = {};
  UniqueFunction<void(std::string_view)> on_body = {};
  UniqueFunction<void()> on_complete = {};
  /// Code 400: the request cannot be sent as it is, not to any of the host's addresses, or not by
  /// the proxy that the environment names; 502: no connection, one that the proxy refuses, a broken
  /// one or a broken reply; 504: a timeout.
  UniqueFunction<void(const Error&)> on_failure = {};
};

/// The callbacks that call the functions of these names of `receiver`, while that lives. A
/// receiver without on_connected() or on_sent() is not told of that.
template <class Receiver>
HttpReplyCallbacks callbacks_of(std::weak_ptr<Receiver> receiver) {
  // Each keeps no more than the pointer, so that it is stored without an allocation.
  HttpReplyCallbacks callbacks;
  if constexpr (requires { &Receiver::on_connected; }) {
    callbacks.on_connected = [receiver] {
      if (const auto self = receiver.lock()) self->on_connected();
    };
  }
  callbacks.on_head = [receiver](const HttpReplyHead& head) {
    if (const auto self = receiver.lock()) self->on_head(head);
  };
  if constexpr (requires { &Receiver::on_sent; }) {
    callbacks.on_sent = [receiver] {
      if (const auto self = receiver.lock()) self->on_sent();
    };
  }
  callbacks.on_body = [receiver](std::string_view bytes) {
    if (const auto self = receiver.lock()) self->on_body(bytes);
  };
  callbacks.on_complete = [receiver] {
    if (const auto self = receiver.lock()) self->on_complete();
  };
  callbacks.on_failure = [receiver = std::move(receiver)](const Error& why) {
    if (const auto self = receiver.lock()) self->on_failure(why);
  };
  return callbacks;
}

/// The head of a request that is sent, or of a reply that has come, for those who watch. Views are
/// valid during the call.
struct HttpHead {
  std::string_view method = {};  // of a request; empty: it is of a reply
  const Url* url = nullptr;      // of the request
  int status = 0;                // of a reply
  HeaderFields headers = {};
};
/// Is called on the client's loop, and must do nothing to the client.
using HttpTap = std::function<void(const HttpHead&)>;

struct HttpClientOptions {
  Dial dial = {};                                       // empty: TCP
  std::shared_ptr<const ProxySettings> proxies = {};    // null: none; unused with `dial`
  std::shared_ptr<TlsContext> tls = {};                 // a client's context, for https
  Duration connect_timeout = std::chrono::seconds(10);  // lookup, TCP, tunnel and TLS together
  Duration idle_timeout = std::chrono::seconds(90);     // without a byte from the server
  Duration keep_idle = std::chrono::seconds(4);         // how long an unused connection is kept
  std::size_t max_kept = 64;                            // unused connections
  std::size_t max_head = 64U << 10U;                    // bytes of a reply's head
  /// Which of the addresses that a name has may be connected to; empty: all. Guards against names
  /// that lead to places that only this machine can reach. A proxy looks up names itself, so only
  /// an address that stands in the URL is judged then.
  std::function<bool(const Endpoint&)> may_connect = {};
  HttpTap tap = {};  // is shown all heads
};

/// An HTTP/1.1 client (RFC 9112) that keeps connections for the next request. Follows no redirects
/// and keeps no cookies. Through a proxy, https has a tunnel, and http is asked of the proxy
/// itself. Belongs to the loop, which must outlive it.
class HttpClient {
 public:
  /// A request under way. Destroying it drops the request, and its connection with it.
  class Call {
   public:
    Call() = default;
    ~Call() { drop(); }
    Call(Call&& other) noexcept = default;
    Call& operator=(Call&& other) noexcept {
      if (this != &other) {
        drop();
        exchange_ = std::move(other.exchange_);
      }
      return *this;
    }
    void drop();
    /// Reads nothing more of the reply while it is paused. Some of it may still be passed on.
    void pause(bool is_paused);

   private:
    friend class HttpClient;
    class Exchange;
    explicit Call(std::shared_ptr<Exchange> exchange) : exchange_(std::move(exchange)) {}
    std::shared_ptr<Exchange> exchange_;
  };

  explicit HttpClient(EventLoop& loop, HttpClientOptions options = {});
  /// Closes the kept connections and drops the requests of send_aside(). Other calls continue.
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  [[nodiscard]] Call send(const HttpClientRequest& request, HttpReplyCallbacks callbacks);
  /// Sends a request whose reply is ignored. Drops the oldest such request if more than kMaxAside
  /// are under way.
  void send_aside(const HttpClientRequest& request);

  static constexpr std::size_t kMaxAside = 64;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace sluice
