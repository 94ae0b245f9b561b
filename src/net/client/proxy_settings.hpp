#pragma once

#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "net/http/url.hpp"

namespace sluice {

/// An HTTP proxy that a variable of the environment names.
struct ProxyServer {
  std::string host;  // as in a Url
  std::uint16_t port = 0;
  std::string credentials = {};  // the value of Proxy-Authorization; empty: none. Never show it.
  std::string variable;          // that names it, such as "HTTPS_PROXY"

  /// "proxy cache.example:3128 (HTTPS_PROXY)", for messages.
  [[nodiscard]] std::string label() const;
};

/// Finds a variable of the environment, as std::getenv does.
using EnvironmentLookup = std::function<const char*(const char* name)>;

/// Which servers are reached by which proxy, as curl reads it from the environment (curl(1),
/// ENVIRONMENT). Immutable, so thread-safe.
class ProxySettings {
 public:
  /// Without proxies.
  ProxySettings() = default;
  /// Reads http_proxy, https_proxy, all_proxy and no_proxy. The name in lower case comes before
  /// that in upper case, and an empty variable counts as not set. In a CGI program, which has
  /// REQUEST_METHOD, HTTP_PROXY is ignored: a request could set it (httpoxy).
  explicit ProxySettings(const EnvironmentLookup& look_up);

  /// The proxy for requests to `url`; nothing: none. This machine is never reached by one. Error
  /// 400: the variable that decides holds something that cannot be used, and what.
  [[nodiscard]] Result<std::optional<ProxyServer>> proxy_for(const Url& url) const;

 private:
  /// An entry of no_proxy. All members that are set must fit.
  struct Exception {
    std::string name = {};     // of a host or a domain, in lower case
    std::string address = {};  // of 4 or 16 bytes
    unsigned bits = 0;         // how many of them, from the first
    std::uint16_t port = 0;    // 0: any
  };
  static Result<Exception> parse_exception(std::string_view text);
  static Result<std::vector<Exception>> parse_exceptions(const std::string& variable,
                                                         std::string_view list);
  static bool is_covered(const Exception& exception, const Url& url, std::string_view address);

  Result<std::optional<ProxyServer>> plain_ = std::nullopt;   // for http and ws
  Result<std::optional<ProxyServer>> secure_ = std::nullopt;  // for https and wss
  Result<std::vector<Exception>> exceptions_ = std::vector<Exception>();
};

/// The settings in this process' environment as it is now, which no other thread may change
/// meanwhile.
std::shared_ptr<const ProxySettings> environment_proxies();

}  // namespace sluice
