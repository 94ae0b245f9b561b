#include "client/api/open_link.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>

#include "client/authorization/authorizer.hpp"
#include "client/authorization/telling_authorizer.hpp"
#include "client/link/http_fallback_link.hpp"
#include "client/link/http_link.hpp"
#include "client/link/line_link.hpp"
#include "client/link/sse_link.hpp"
#include "client/link/traced_link.hpp"
#include "client/link/websocket_link.hpp"
#include "core/text/secrets.hpp"
#include "core/text/text.hpp"
#include "net/client/proxy_settings.hpp"
#include "net/http/status_codes.hpp"
#include "net/http/url.hpp"
#include "net/loop/unix_socket.hpp"

namespace sluice {
namespace {

constexpr std::string_view kUnixScheme = "unix:";
constexpr std::string_view kHttpUnixScheme = "http+unix:";
constexpr std::string_view kDefaultEndpoint = "/mcp";

/// The bytes of a field name (RFC 9110, section 5.6.2).
bool is_field_name(std::string_view name) {
  static constexpr std::string_view kSigns = "!#$%&'*+-.^_`|~";
  return !name.empty() && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           kSigns.find(c) != std::string_view::npos;
  });
}

/// Whether the value cannot become another line of the head.
bool is_one_line(std::string_view value) {
  return value.find_first_of(std::string_view("\r\n\0", 3)) == std::string_view::npos;
}

/// Whether the field frames messages of HTTP (RFC 9112) or begins a WebSocket (RFC 6455). Two of
/// them could make a server and a proxy see different requests.
bool is_framing(std::string_view name) {
  static constexpr std::array<std::string_view, 5> kFields = {
      "host", "connection", "content-length", "transfer-encoding", "upgrade"};
  return std::ranges::find(kFields, name) != kFields.end() || name.starts_with("sec-websocket-");
}

/// Whether links write the field themselves.
bool is_written_by_links(std::string_view name) {
  static constexpr std::array<std::string_view, 7> kFields = {
      "accept",         "content-type", "last-event-id", "mcp-protocol-version",
      "mcp-session-id", "mcp-method",   "mcp-name"};
  return std::ranges::find(kFields, name) != kFields.end();
}

/// A time as the clients below have it, to whom 0 is no time at all.
Duration limit_of(Duration given) {
  return given > Duration::zero() ? at_most_forever(given) : kForever;
}

/// Where HTTP requests go, and the socket that leads there if it is not that of the URL.
struct HttpPlace {
  Url url;
  Dial dial = {};
};

Result<HttpPlace> http_place(const std::string& text) {
  if (!text.starts_with(kHttpUnixScheme)) {
    Result<Url> url = parse_url(text);
    if (!url) return std::unexpected(std::move(url.error()));
    return HttpPlace{.url = *std::move(url)};
  }
  const std::string_view rest = std::string_view(text).substr(kHttpUnixScheme.size());
  const auto hash = rest.find('#');
  std::string path(rest.substr(0, hash));
  if (path.empty()) return fail(kBadRequest, "http+unix: needs the path of a socket behind it");
  const std::string_view target =
      hash == std::string_view::npos ? kDefaultEndpoint : rest.substr(hash + 1);
  if (!target.starts_with('/')) {
    return fail(kBadRequest, "http+unix: the path of HTTP requests, behind #, begins with a slash");
  }
  // The host only appears in the Host field.
  Result<Url> url = parse_url("http://localhost" + std::string(target));
  if (!url) return std::unexpected(std::move(url.error()));
  return HttpPlace{.url = *std::move(url), .dial = [path = std::move(path)](const Url& /*url*/) {
                     return connect_unix_socket(path);
                   }};
}

std::unique_ptr<ServerLink> open_http_link(EventLoop& loop, const LinkPlace& place, HttpPlace http,
                                           HttpHeaderList headers, std::shared_ptr<TlsContext> tls,
                                           std::shared_ptr<const ProxySettings> proxies,
                                           std::shared_ptr<RequestAuthorizer> authorizer,
                                           const std::shared_ptr<KnownSecrets>& secrets) {
  HttpClientOptions client{.dial = std::move(http.dial),
                           .proxies = std::move(proxies),
                           .tls = std::move(tls),
                           .connect_timeout = limit_of(place.connect_timeout),
                           .tap = http_tap(place.on_traffic, secrets)};
  if (authorizer) {
    client.may_connect = [authorizer](const Endpoint& endpoint) {
      authorizer->on_address(endpoint);
      return true;
    };
  }
  if (place.http_transport == HttpTransport::sse) {
    return std::make_unique<SseLink>(loop, SseLinkOptions{.url = std::move(http.url),
                                                          .headers = std::move(headers),
                                                          .http = std::move(client),
                                                          .authorizer = std::move(authorizer)});
  }
  HttpLinkOptions options{.url = std::move(http.url),
                          .headers = std::move(headers),
                          .http = std::move(client),
                          .authorizer = std::move(authorizer)};
  if (place.http_transport == HttpTransport::streamable) {
    return std::make_unique<HttpLink>(loop, std::move(options));
  }
  return std::make_unique<HttpFallbackLink>(loop, std::move(options));
}

}  // namespace

Result<HttpHeaderList> own_headers(const HttpHeaderList& given) {
  HttpHeaderList headers;
  for (const auto& [name, value] : given) {
    const std::string lower = to_lower(name);
    if (!is_field_name(name) || is_framing(lower) || !is_one_line(value)) {
      return fail(kBadRequest, "\"" + name + "\" is no header field that can be sent");
    }
    if (!is_written_by_links(lower)) headers.emplace_back(name, value);
  }
  return headers;
}

std::vector<std::string> secrets_of(const LinkPlace& place) {
  std::vector<std::string> secrets = secrets_in_url(place.url);
  for (const auto& [name, value] : place.headers) {
    std::ranges::move(secrets_in_header(name, value), std::back_inserter(secrets));
  }
  return secrets;
}

Result<std::unique_ptr<ServerLink>> open_link(EventLoop& loop, const LinkPlace& place) {
  Result<HttpHeaderList> headers = own_headers(place.headers);
  if (!headers) return std::unexpected(std::move(headers.error()));
  if (place.url.starts_with(kUnixScheme)) {
    const std::string path = place.url.substr(kUnixScheme.size());
    if (path.empty()) return fail(kBadRequest, "unix: needs the path of a socket behind it");
    return traced(std::make_unique<LineLink>(loop, connect_unix(path)), "unix", place.on_traffic);
  }
  Result<HttpPlace> http = http_place(place.url);
  if (!http) return std::unexpected(std::move(http.error()));
  std::shared_ptr<TlsContext> tls;
  if (http->url.is_tls()) {
    auto context = TlsContext::client({.ca_file = place.ca_file});
    if (!context) return std::unexpected(std::move(context.error()));
    tls = *std::move(context);
  }
  std::shared_ptr<const ProxySettings> proxies;
  if (place.uses_environment_proxies && !http->dial) {
    proxies = environment_proxies();
    if (auto proxy = proxies->proxy_for(http->url); !proxy) {
      return std::unexpected(std::move(proxy.error()));
    }
  }
  const std::shared_ptr<KnownSecrets> secrets =
      place.secrets != nullptr ? place.secrets : std::make_shared<KnownSecrets>(secrets_of(place));
  std::shared_ptr<RequestAuthorizer> authorizer;
  // Whoever may open a socket of this machine needs no authorization.
  if (place.authorization && !http->dial) {
    authorizer = telling_authorizer(make_authorizer(loop, http->url, *place.authorization, tls,
                                                    proxies, http_tap(place.on_traffic, secrets)),
                                    secrets);
  }
  if (http->url.is_websocket()) {
    WebSocketLinkOptions options{.url = std::move(http->url), .headers = *std::move(headers)};
    options.authorizer = std::move(authorizer);
    options.socket.tls = std::move(tls);
    options.socket.proxies = std::move(proxies);
    options.socket.connect_timeout = limit_of(place.connect_timeout);
    return traced(std::make_unique<WebSocketLink>(loop, std::move(options)), "websocket",
                  place.on_traffic, secrets);
  }
  return traced(open_http_link(loop, place, *std::move(http), *std::move(headers), std::move(tls),
                               std::move(proxies), std::move(authorizer), secrets),
                "http", place.on_traffic, secrets);
}

Result<std::unique_ptr<ServerLink>> open_link(EventLoop& loop, const ServerCommand& command,
                                              const OnTraffic& on_traffic) {
  if (command.arguments.empty()) return fail(kBadRequest, "The command of a server is empty");
  auto lines = start_child(loop, {.arguments = command.arguments,
                                  .environment = command.environment,
                                  .directory = command.directory,
                                  .discards_errors = command.discards_errors});
  return traced(std::make_unique<LineLink>(loop, std::move(lines)), "stdio", on_traffic);
}

}  // namespace sluice
