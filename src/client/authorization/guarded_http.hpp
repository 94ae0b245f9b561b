#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "client/authorization/oauth_http.hpp"
#include "net/http/url.hpp"
#include "net/loop/address_kind.hpp"
#include "net/loop/event_loop.hpp"

namespace sluice {

struct GuardedHttpOptions {
  Url server;  // the MCP server
  bool allow_private_addresses = false;
  std::shared_ptr<TlsContext> tls = {};
  std::shared_ptr<const ProxySettings> proxies = {};  // null: none
  Duration timeout = std::chrono::seconds(20);        // of one request with its redirects
  int max_redirects = 3;
  HttpTap tap = {};
};

/// The requests of authorization, guarded against servers that would use this client to reach what
/// only it can reach (Security Best Practices, Server-Side Request Forgery):
/// - A place that a server has named must be at a global address, or at one of the kind that all
///   addresses of the MCP server are, such as the loopback. The addresses are judged that are
///   connected to, on both sides: a name may mean another one each time that it is looked up. Only
///   while the MCP server has not been connected to, it is looked up for this alone.
/// - A proxy looks up names itself, so only an address that stands in the URL is judged then. An
///   MCP server behind a proxy counts as global, unless its URL has an address.
/// - It must be https, except on this machine, or if the MCP server itself has no TLS.
/// - Size, time and redirects are limited, and no redirect leaves TLS.
class GuardedHttp final : public OauthHttp {
 public:
  GuardedHttp(EventLoop& loop, GuardedHttpOptions options);
  ~GuardedHttp() override;
  GuardedHttp(const GuardedHttp&) = delete;
  GuardedHttp& operator=(const GuardedHttp&) = delete;

  void send(OauthRequest request, Done done) override;
  void server_is_at(const Endpoint& endpoint) override;

  static constexpr std::size_t kMaxRequests = 100;  // under way

 private:
  class Exchange;

  void look_up_server(std::function<void()> then);
  [[nodiscard]] bool may_connect(const Endpoint& endpoint) const;
  /// Why the URL must not be asked, or an empty text.
  [[nodiscard]] std::string refusal(const Url& url) const;

  EventLoop* loop_;
  GuardedHttpOptions options_;
  std::unique_ptr<HttpClient> guarded_;  // for what servers name
  std::unique_ptr<HttpClient> trusted_;  // for what the user names
  /// Of the MCP server's addresses: as those have seen it who connect to it, or else as it is
  /// looked up here.
  std::optional<AddressKind> seen_kind_;
  AddressKind looked_up_kind_ = AddressKind::global;
  bool is_looked_up_ = false;
  AddressLookup lookup_;
  std::vector<std::function<void()>> waiting_;  // for that
  std::uint64_t last_number_ = 0;
  std::map<std::uint64_t, std::shared_ptr<Exchange>> exchanges_;
};

}  // namespace sluice
