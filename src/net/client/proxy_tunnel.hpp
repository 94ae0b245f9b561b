#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/error.hpp"
#include "net/client/proxy_settings.hpp"
#include "net/http/http_reply_parser.hpp"
#include "net/http/url.hpp"

namespace sluice {

/// The error (502) if the proxy itself wrote this reply. Nothing: the server did, as far as can be
/// seen, because HTTP does not say who wrote a reply; a 407 and Squid's own field are recognized.
/// Of a 407, the error says how to give credentials, or why those it got were refused.
std::optional<Error> proxy_error(const ProxyServer& proxy, int status, HeaderFields reply);

/// Asks a proxy for a connection to a server (CONNECT: RFC 9110, section 9.3.6). Does no I/O: who
/// has the connection to the proxy sends request(), and feeds what comes until the tunnel is open.
class ProxyTunnel final : private HttpReplySink {
 public:
  /// To the host and the port of `server`.
  ProxyTunnel(const Url& server, ProxyServer proxy);

  /// What to send to the proxy. Has its credentials in it. Error 400: the host is none.
  [[nodiscard]] Result<std::string> request() const;
  /// Takes what the proxy has sent. Error 502: it opens no tunnel, and what it has answered. After
  /// an error the tunnel cannot be used.
  Result<void> feed(std::string_view bytes);
  /// Whether the bytes that follow are the server's.
  [[nodiscard]] bool is_open() const { return is_open_; }

  static constexpr std::size_t kMaxHead = std::size_t{64} << 10U;  // bytes of the reply

 private:
  bool on_head(int status, std::span<const HeaderField> headers) override;
  bool on_body(std::string_view /*bytes*/) override { return false; }
  /// "The proxy ... does not connect to mcp.example:443".
  [[nodiscard]] std::string refusal() const;

  Url server_;
  ProxyServer proxy_;
  HttpReplyParser parser_;
  std::optional<Error> problem_;
  bool is_open_ = false;
};

}  // namespace sluice
