#include "cli/remote/server_place.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "cli/login/authorization_flags.hpp"
#include "cli/options/exit_code.hpp"
#include "core/text/text.hpp"
#include "net/client/proxy_settings.hpp"

namespace sluice {
namespace {

HttpTransport transport_of(TransportHint hint) {
  if (hint == TransportHint::http) return HttpTransport::streamable;
  return hint == TransportHint::sse ? HttpTransport::sse : HttpTransport::any;
}

struct PlaceMaker {
  NamedValues headers;  // of the command line

  Result<ServerPlace> operator()(UrlTarget& target) {
    if (const auto proxy = environment_proxies()->proxy_for(target.url); !proxy) {
      return fail(kExitUsage, proxy.error().message);
    }
    auto joined = request_headers(std::move(target.headers), std::move(headers));
    if (!joined) return std::unexpected(std::move(joined.error()));
    LinkPlace place{.url = target.url.to_string(),
                    .http_transport = transport_of(target.transport),
                    .headers = *std::move(joined)};
    const bool has_header = std::ranges::any_of(place.headers, [](const auto& header) {
      return to_lower(header.first) == "authorization";
    });
    if (has_header) return place;
    auto made = stored_authorization(target.url);
    if (!made) return std::unexpected(std::move(made.error()));
    place.authorization = *std::move(made);
    return place;
  }
  Result<ServerPlace> operator()(UnixTarget& target) {
    if (!target.http_target.empty()) {
      auto joined = request_headers(std::move(target.headers), std::move(headers));
      if (!joined) return std::unexpected(std::move(joined.error()));
      return LinkPlace{.url = "http+unix:" + target.path + "#" + target.http_target,
                       .headers = *std::move(joined)};
    }
    if (!headers.empty()) return fail(kExitUsage, "--header: unix: has no HTTP headers");
    return LinkPlace{.url = "unix:" + target.path};
  }
  Result<ServerPlace> operator()(CommandTarget& target) {
    if (!headers.empty()) return fail(kExitUsage, "--header: a command has no HTTP headers");
    return ServerCommand{.arguments = std::move(target.arguments),
                         .environment = std::move(target.environment),
                         .directory = std::move(target.directory)};
  }
};

}  // namespace

Result<NamedValues> request_headers(NamedValues configured, NamedValues more) {
  for (auto& [name, value] : more) {
    std::erase_if(configured,
                  [&](const auto& one) { return to_lower(one.first) == to_lower(name); });
  }
  std::ranges::move(more, std::back_inserter(configured));
  auto allowed = own_headers(configured);
  if (!allowed) return fail(kExitUsage, std::move(allowed.error().message));
  return *std::move(allowed);
}

Result<ServerPlace> server_place(TargetPlace target, NamedValues headers) {
  return std::visit(PlaceMaker{std::move(headers)}, target);
}

}  // namespace sluice
