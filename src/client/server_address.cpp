#include "client/server_address.hpp"

#include <string_view>
#include <utility>

namespace sluice {

Url ServerAddress::url_of(const std::string& target) const {
  return with_target(base, base.target + target);
}

Result<ServerAddress> make_server_address(const std::string& url, std::string api_key,
                                          const TlsClientOptions& tls) {
  auto base = parse_url(url);
  if (!base) return std::unexpected(std::move(base.error()));
  if (base->is_websocket()) {
    return fail(400, url + ": give the server's http or https URL; the client adds /ws itself");
  }
  if (base->target.find('?') != std::string::npos) {
    return fail(400, url + ": a server's URL must not have a query; remove it");
  }
  constexpr std::string_view kEndpoint = "/mcp";
  while (base->target.ends_with('/')) base->target.pop_back();
  if (base->target.ends_with(kEndpoint)) {
    base->target.resize(base->target.size() - kEndpoint.size());
  }
  ServerAddress address{.base = *std::move(base),
                        .tls = nullptr,
                        .api_key = std::move(api_key),
                        .proxies = environment_proxies()};
  if (auto proxy = address.proxies->proxy_for(address.base); !proxy) {
    return std::unexpected(std::move(proxy.error()));
  }
  if (address.base.is_tls()) {
    auto context = TlsContext::client(tls);
    if (!context) return std::unexpected(std::move(context.error()));
    address.tls = *std::move(context);
  }
  return address;
}

}  // namespace sluice
