#include "client/api/open_link.hpp"

#include <algorithm>
#include <utility>

#include "client/authorization/authorizer.hpp"
#include "client/link/http_fallback_link.hpp"
#include "client/link/line_link.hpp"
#include "client/link/websocket_link.hpp"
#include "net/http/status_codes.hpp"
#include "net/http/url.hpp"

namespace sluice {
namespace {

constexpr std::string_view kUnixScheme = "unix:";

/// The bytes of a field name (RFC 9110, section 5.6.2).
bool is_field_name(std::string_view name) {
  static constexpr std::string_view kSigns = "!#$%&'*+-.^_`|~";
  return !name.empty() && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           kSigns.find(c) != std::string_view::npos;
  });
}

/// Whether the value cannot become another line of the head.
bool is_field_value(std::string_view value) {
  return value.find_first_of(std::string_view("\r\n\0", 3)) == std::string_view::npos;
}

}  // namespace

Result<std::unique_ptr<ServerLink>> open_link(EventLoop& loop, const LinkPlace& place) {
  for (const auto& [name, value] : place.headers) {
    if (!is_field_name(name) || !is_field_value(value)) {
      return fail(kBadRequest, "\"" + name + "\" is no header field that can be sent");
    }
  }
  if (place.url.starts_with(kUnixScheme)) {
    const std::string path = place.url.substr(kUnixScheme.size());
    if (path.empty()) return fail(kBadRequest, "unix: needs the path of a socket behind it");
    return std::make_unique<LineLink>(loop, connect_unix(path));
  }
  Result<Url> url = parse_url(place.url);
  if (!url) return std::unexpected(std::move(url.error()));
  std::shared_ptr<TlsContext> tls;
  if (url->is_tls()) {
    auto context = TlsContext::client({.ca_file = place.ca_file});
    if (!context) return std::unexpected(std::move(context.error()));
    tls = *std::move(context);
  }
  std::shared_ptr<RequestAuthorizer> authorizer;
  if (place.authorization) authorizer = make_authorizer(loop, *url, *place.authorization, tls);
  if (url->is_websocket()) {
    WebSocketLinkOptions options{.url = *std::move(url), .headers = place.headers};
    options.authorizer = std::move(authorizer);
    options.socket.tls = std::move(tls);
    return std::make_unique<WebSocketLink>(loop, std::move(options));
  }
  HttpLinkOptions options{.url = *std::move(url), .headers = place.headers};
  options.authorizer = std::move(authorizer);
  options.http.tls = std::move(tls);
  return std::make_unique<HttpFallbackLink>(loop, std::move(options));
}

Result<std::unique_ptr<ServerLink>> open_link(EventLoop& loop, const ServerCommand& command) {
  if (command.arguments.empty()) return fail(kBadRequest, "The command of a server is empty");
  return std::make_unique<LineLink>(
      loop, start_child(loop, {.arguments = command.arguments,
                               .environment = command.environment,
                               .directory = command.directory,
                               .discards_errors = command.discards_errors}));
}

}  // namespace sluice
