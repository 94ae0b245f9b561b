#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "core/clock.hpp"
#include "core/error.hpp"
#include "net/client/proxy_settings.hpp"
#include "net/client/proxy_tunnel.hpp"
#include "net/http/url.hpp"
#include "net/io/queued_memory.hpp"
#include "net/io/socket_io.hpp"
#include "net/io/tls.hpp"
#include "net/loop/address_lookup.hpp"
#include "net/loop/descriptor.hpp"
#include "net/loop/event_loop.hpp"

namespace sluice {

/// Opens the way to the server of a URL: a non-blocking stream socket that is connected, or will
/// be. For servers that are not reached by TCP to the host and port that the URL names.
using Dial = std::function<Result<Descriptor>(const Url&)>;

/// The way to a server: by default TCP to the host and port of its URL.
struct ConnectionRoute {
  Dial dial = {};                         // instead of TCP
  std::optional<ProxyServer> proxy = {};  // TCP leads to this
  bool is_tunnelled = false;              // by CONNECT; else the proxy reads the requests
};

/// The route to `url`: `dial`, if there is one; else the proxy that `proxies` names, which may be
/// null. Error: as of ProxySettings::proxy_for().
Result<ConnectionRoute> route_to(const Url& url, const Dial& dial, const ProxySettings* proxies,
                                 bool is_tunnelled);

/// A client's connection: looks up the server or its proxy, connects, opens a tunnel, does TLS with
/// the server, and moves bytes both ways. Calls
/// its owner for every event, but never from within a call to the connection. Belongs to the loop,
/// which must outlive it.
class ClientConnection final : public std::enable_shared_from_this<ClientConnection>,
                               private EventLoop::Watcher,
                               private Executor::TurnHook {
 public:
  /// Receives the events of a connection. Each function may do anything with the connection.
  class Owner {
   public:
    virtual ~Owner() = default;
    /// The connection stands, with its tunnel and TLS.
    virtual void on_established() {}
    /// The socket has accepted all that was written.
    virtual void on_drained() {}
    /// Bytes have arrived. They may be overwritten, and are valid during the call.
    virtual void on_bytes(std::span<char> bytes) = 0;
    /// The server sends nothing more.
    virtual void on_end() = 0;
    /// Code 502, 504 for a timeout, or 400 if no address may be connected to. The connection is
    /// closed.
    virtual void on_failure(const Error& error) = 0;
  };

  ClientConnection(EventLoop& loop, const Url& url, std::shared_ptr<TlsContext> tls,
                   ConnectionRoute route = {});
  ~ClientConnection() override { close(); }
  ClientConnection(const ClientConnection&) = delete;
  ClientConnection& operator=(const ClientConnection&) = delete;

  /// Connects only to addresses for which `may_connect` returns true; empty: to all. A proxy looks
  /// up names itself, so an address is then judged only if it is the URL's host.
  void restrict_to(std::function<bool(const Endpoint&)> may_connect) {
    may_connect_ = std::move(may_connect);
  }
  /// Starts to connect, and fails after `timeout`. Call once.
  void connect(Duration timeout);
  /// Whether requests to `url` by `route` may use it: to the same origin, by the same proxy.
  /// Connections of different dials must not be mixed.
  [[nodiscard]] bool leads_to(const Url& url, const ConnectionRoute& route) const;
  /// Null: the connection closes when anything arrives.
  void set_owner(Owner* owner) { owner_ = owner; }
  /// Sends `bytes` at the end of the loop's turn at the latest, once the connection is established.
  /// `memory` is kept until the socket has accepted them.
  void write(std::string bytes, std::shared_ptr<void> memory = nullptr);
  /// What arrives is acknowledged at once from now on (TCP_QUICKACK, tcp(7)), until something else
  /// is sent.
  void acknowledge_at_once();
  /// While it is paused, nothing is read, so the kernel makes the server wait. The owner may still
  /// get the bytes of the current call, and hears of an end only afterwards.
  void pause(bool is_paused);
  /// Bytes that the socket has not accepted yet.
  [[nodiscard]] std::size_t queued_bytes() const { return waiting_.size() + out_.size() - sent_; }
  /// Closes the connection at once, behind what the socket accepts of the last writes. The owner is
  /// not called any more.
  void close();
  [[nodiscard]] bool is_open() const { return !closed_; }

 private:
  void on_ready(std::uint32_t events) override;
  void on_turn_end() override;
  void dial();
  void look_up(const std::string& host, std::uint16_t port);
  /// False if it fails because none of them may be connected to.
  bool keep_allowed(Endpoints& endpoints);
  void try_all(Endpoints endpoints);
  void try_next();
  void await_connection();
  /// Tries the next endpoint, after the current one has failed with `error` (errno).
  void give_up_endpoint(int error);
  void on_connected();
  /// Takes what the proxy sends before the tunnel is open. False if it failed.
  bool open_tunnel(std::string_view bytes);
  /// Whom the connection is made to, for messages.
  [[nodiscard]] std::string peer() const;
  void check_established();
  void pump();
  void pump_later();
  void read();
  /// Whether nothing is to be read.
  [[nodiscard]] bool is_held() const { return is_paused_ && established_; }
  /// Gives the owner what was read, until its time is over. False if nothing more is to be read in
  /// this turn; the rest waits in `unread_`.
  bool pass(std::span<char> bytes, TimePoint until);
  /// False if it failed.
  bool flush();
  /// Flushes, and tells the owner if that was all.
  void send_rest();
  void fail_with(int code, const std::string& what);
  void fail_later(int code, const std::string& what);

  EventLoop* loop_;
  Url url_;
  std::shared_ptr<TlsContext> tls_;
  ConnectionRoute route_;
  Owner* owner_ = nullptr;
  std::function<bool(const Endpoint&)> may_connect_;
  AddressLookup lookup_;
  Descriptor socket_;
  std::optional<SocketIo> io_;  // once TCP is connected
  Endpoints endpoints_;
  std::size_t next_endpoint_ = 0;
  std::string last_error_;             // of the endpoints tried
  std::optional<ProxyTunnel> tunnel_;  // until it is open
  std::string waiting_;                // output, for the tunnel
  std::string unread_;                 // input that its owner had no time for
  std::string out_;
  std::size_t sent_ = 0;    // of out_
  std::uint64_t left_ = 0;  // bytes that the socket has accepted
  QueuedMemory memory_;     // of those that it has not
  TimePoint deadline_{};    // of connecting
  Executor::TimerId timer_ = 0;
  Executor::TimerId endpoint_timer_ = 0;
  bool writable_ = true;      // as far as is known
  bool peer_ended_ = false;   // as the kernel has reported; it does so once
  bool input_ended_ = false;  // read() has returned the end
  bool established_ = false;
  bool is_paused_ = false;
  bool pumps_later_ = false;  // it has had its time in this turn
  bool closed_ = false;
};

}  // namespace sluice
