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

/// What a proxy that was asked for a server's reply has answered itself, as an error of code 502.
/// Of a 407, how to give it credentials, or why it does not take those it got. Nothing: the reply
/// is the server's, as far as can be seen. HTTP has no sign of that; that of Squid is known.
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
