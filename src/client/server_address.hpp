#pragma once

#include <memory>
#include <string>

#include "core/error.hpp"
#include "net/client/proxy_settings.hpp"
#include "net/http/url.hpp"
#include "net/io/tls.hpp"

namespace sluice {

/// Where a server is and how to connect to it.
struct ServerAddress {
  Url base;                         // http or https; its target is a path without a trailing slash
  std::shared_ptr<TlsContext> tls;  // set if `base` is https
  std::string api_key;              // sent as a bearer token; may be empty
  std::shared_ptr<const ProxySettings> proxies = {};  // null: none

  /// The URL of `target`, which begins with '/', relative to the base.
  [[nodiscard]] Url url_of(const std::string& target) const;
};

/// Makes an address from a URL that a user typed: "http://host:8080", "https://host/prefix", or
/// either with the endpoint /mcp; with the proxies of the environment. Errors say what is wrong
/// with the URL or with these.
Result<ServerAddress> make_server_address(const std::string& url, std::string api_key,
                                          const TlsClientOptions& tls);

}  // namespace sluice
