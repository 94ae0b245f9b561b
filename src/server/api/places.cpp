#include "server/api/places.hpp"

#include <algorithm>
#include <memory>
#include <string_view>
#include <utility>

#include "auth/api_keys.hpp"
#include "net/loop/host_port.hpp"
#include "server/api/serve_limits.hpp"

namespace sluice {
namespace {

std::string usage(const command_line& line) {
  const std::string_view path = line.count > 0 ? line.arguments[0] : "server";
  const HostPort otherwise{.host = line.over_http.host, .port = line.over_http.port};
  return "Usage: " + std::string(path.substr(path.rfind('/') + 1)) +
         " [--listen HOST:PORT]... [--unix PATH] [--stdio]\n\n"
         "  --listen HOST:PORT  Serve HTTP there; port 0 takes any free one. Repeat for more "
         "places.\n"
         "                      Default if no option is given: " +
         to_text(otherwise) +
         "\n"
         "  --unix PATH         Serve a Unix domain socket\n"
         "  --stdio             Serve standard input and output\n"
         "  --help              Print this\n";
}

/// Adds the routes of a place. Two functions cannot be compared, so only one place may have some.
Result<void> add_routes(const std::vector<Route>& routes, Places& out) {
  if (routes.empty()) return {};
  if (!out.routes.empty()) {
    return fail(
        1, "All places of a server have the same routes: give them to one sluice::http{} only");
  }
  out.routes = routes;
  return {};
}

/// Adds the places that `line` names.
Result<void> read(const command_line& line, Places& out) {
  const auto wrong = [&](const std::string& what) {
    return fail(Places::kUsage, what + "\n" + usage(line));
  };
  for (int i = 1; i < line.count; ++i) {
    const std::string option = line.arguments[i];
    if (option == "--help") return fail(Places::kHelp, usage(line));
    if (option == "--stdio") {
      out.over_stdio = true;
      continue;
    }
    if (option != "--listen" && option != "--unix") return wrong(option + " is not an option.");
    if (i + 1 == line.count) return wrong(option + " needs a value.");
    const std::string value = line.arguments[++i];
    if (option == "--unix") {
      if (out.over_unix) return wrong("--unix can be given once.");
      out.over_unix = unix_socket{.path = value};
      continue;
    }
    auto place = parse_host_port(value);
    if (!place) {
      return wrong("--listen " + value + ": give HOST:PORT, such as 127.0.0.1:8080 or [::1]:8080.");
    }
    http there = line.over_http;
    there.host = std::move(place->host);
    there.port = place->port;
    out.over_http.push_back(std::move(there));
  }
  if (line.count <= 1) out.over_http.push_back(line.over_http);
  return add_routes(line.over_http.routes, out);
}

bool have_same_paths(const http& a, const http& b) {
  return a.path == b.path && a.websocket == b.websocket && a.sse == b.sse;
}

bool have_same_access(const http& a, const http& b) {
  const auto is_same_key = [](const ClientKey& one, const ClientKey& other) {
    return one.name == other.name && one.key == other.key;
  };
  return a.allowed_origins == b.allowed_origins && a.allowed_hosts == b.allowed_hosts &&
         a.trusted_proxies == b.trusted_proxies && a.authenticator == b.authenticator &&
         std::ranges::equal(a.keys, b.keys, is_same_key);
}

Result<void> check(const Places& places) {
  if (places.over_http.empty() && !places.over_unix && !places.over_stdio) {
    return fail(1, "There is nowhere to serve: pass http{}, unix_socket{.path = ...} or stdio{}");
  }
  for (const http& place : places.over_http) {
    if (place.authenticator != nullptr && !place.keys.empty()) {
      return fail(1, "Give the server keys or an authenticator, not both");
    }
    if (!have_same_access(place, places.over_http.front())) {
      return fail(1,
                  "All places of a server have the same keys, authenticator, allowed origins, "
                  "allowed hosts and trusted proxies: give them to each sluice::http{}");
    }
    if (!have_same_paths(place, places.over_http.front())) {
      return fail(1,
                  "All places of a server have the same path and transports: give them to each "
                  "sluice::http{}");
    }
  }
  return {};
}

Result<AccessPolicy::Options> access_of(const http& place) {
  AccessPolicy::Options out;
  out.authenticator = place.authenticator;
  if (!place.keys.empty()) {
    std::vector<std::pair<std::string, std::string>> keys;
    for (const ClientKey& key : place.keys) {
      if (key.name.empty() || !ApiKeys::is_key(key.key)) {
        return fail(1, "API key '" + key.name + "': it needs a name, and " +
                           std::string(ApiKeys::kKeyRule));
      }
      for (const auto& [name, secret] : keys) {
        if (secret != key.key) continue;
        return fail(1, "API keys '" + name + "' and '" + key.name +
                           "' are the same: nobody could tell who is calling");
      }
      keys.emplace_back(key.name, key.key);
    }
    out.authenticator = std::make_shared<ApiKeys>(keys);
  }
  out.allowed_origins = place.allowed_origins;
  out.allowed_hosts = place.allowed_hosts;
  Result<TrustedProxies> proxies =
      TrustedProxies::make(place.trusted_proxies, TrustedProxies::Field::x_forwarded_for);
  if (!proxies) return std::unexpected(std::move(proxies.error()));
  out.proxies = *std::move(proxies);
  return out;
}

}  // namespace

Result<Places> Places::make(std::initializer_list<detail::Place> places) {
  using Kind = detail::Place::Kind;
  Places out;
  bool has_options = false;
  bool has_command_line = false;
  Result<void> step;
  for (const detail::Place& place : places) {
    switch (place.kind) {
      case Kind::none:
        break;
      case Kind::http:
        out.over_http.push_back(*static_cast<const http*>(place.value));
        step = add_routes(out.over_http.back().routes, out);
        break;
      case Kind::unix_socket:
        if (out.over_unix) step = fail(1, "A server has at most one sluice::unix_socket{}");
        out.over_unix = *static_cast<const unix_socket*>(place.value);
        break;
      case Kind::stdio:
        if (out.over_stdio) step = fail(1, "A server has at most one sluice::stdio{}");
        out.over_stdio = true;
        break;
      case Kind::options:
        if (std::exchange(has_options, true)) step = fail(1, "Give ServeOptions once");
        out.options = *static_cast<const ServeOptions*>(place.value);
        break;
      case Kind::command_line:
        step = std::exchange(has_command_line, true)
                   ? fail(1, "Give sluice::command_line once")
                   : read(*static_cast<const command_line*>(place.value), out);
        break;
    }
    if (!step) return std::unexpected(std::move(step.error()));
  }
  if (step = check(out); !step) return std::unexpected(std::move(step.error()));
  return out;
}

Result<ServerHostOptions> Places::host_options() const {
  ServerHostOptions out;
  if (Result<void> set = set_limits(options, out); !set) {
    return std::unexpected(std::move(set.error()));
  }
  for (const http& place : over_http) {
    ListeningPlace there{.at = {.host = place.host, .port = place.port}};
    if (place.tls_certificate.empty() && !place.tls_key.empty()) {
      return fail(1, "tls_key needs a tls_certificate: without it there is no TLS");
    }
    if (!place.tls_certificate.empty()) {
      Result<std::shared_ptr<TlsContext>> tls =
          TlsContext::server(place.tls_certificate, place.tls_key);
      if (!tls) return std::unexpected(std::move(tls.error()));
      there.tls = *std::move(tls);
    }
    out.tcp.push_back(std::move(there));
  }
  if (!over_http.empty()) {
    const http& first = over_http.front();
    out.paths = {
        .mcp = first.path, .websocket = first.websocket, .sse = first.sse, .routes = routes};
    Result<AccessPolicy::Options> access = access_of(over_http.front());
    if (!access) return std::unexpected(std::move(access.error()));
    out.access = *std::move(access);
  }
  if (over_unix) {
    if (over_unix->path.empty()) return fail(1, "unix_socket needs a path");
    if (over_unix->path.contains('\0')) return fail(1, "The path of a unix_socket has a zero byte");
    out.unix_path = over_unix->path;
    out.unix_mode = static_cast<mode_t>(over_unix->mode);
  }
  return out;
}

}  // namespace sluice
