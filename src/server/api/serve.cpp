// sluice/serve.hpp.

#include "sluice/serve.hpp"

#include <expected>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "auth/api_keys.hpp"
#include "core/log.hpp"
#include "net/transport/descriptor_io.hpp"
#include "server/api/server_state.hpp"
#include "server/host/server_host.hpp"
#include "server/host/shutdown_signals.hpp"

namespace sluice {
namespace {

/// The arguments of one serve().
struct Places {
  std::optional<http> over_http;
  std::optional<unix_socket> over_unix;
  bool over_stdio = false;
  ServeOptions options;
};

Places together(std::initializer_list<detail::Place> places) {
  using Kind = detail::Place::Kind;
  Places out;
  for (const detail::Place& place : places) {
    switch (place.kind) {
      case Kind::none:
        break;
      case Kind::http:
        out.over_http = *static_cast<const http*>(place.value);
        break;
      case Kind::unix_socket:
        out.over_unix = *static_cast<const unix_socket*>(place.value);
        break;
      case Kind::stdio:
        out.over_stdio = true;
        break;
      case Kind::options:
        out.options = *static_cast<const ServeOptions*>(place.value);
        break;
    }
  }
  return out;
}

Result<ServerHostOptions> host_options(const Places& places) {
  if (!places.over_http && !places.over_unix && !places.over_stdio) {
    return fail(1, "There is nowhere to serve: pass http{}, unix_socket{.path = ...} or stdio{}");
  }
  ServerHostOptions out;
  out.threads = places.options.threads;
  out.max_message = places.options.max_message;
  out.http.max_connections = places.options.max_connections;
  out.sessions.max_sessions = places.options.max_sessions;
  out.sessions.expiry = at_most_forever(places.options.session_expiry);
  out.end_timeout = at_most_forever(places.options.shutdown_deadline);
  out.tcp = places.over_http.has_value();
  if (places.over_http) {
    const http& where = *places.over_http;
    out.host = where.host;
    out.port = where.port;
    if (where.tls_certificate.empty() && !where.tls_key.empty()) {
      return fail(1, "tls_key needs a tls_certificate: without it there is no TLS");
    }
    if (!where.tls_certificate.empty()) {
      Result<std::shared_ptr<TlsContext>> tls =
          TlsContext::server(where.tls_certificate, where.tls_key);
      if (!tls) return std::unexpected(std::move(tls.error()));
      out.tls = std::move(*tls);
    }
    if (where.authenticator != nullptr && !where.keys.empty()) {
      return fail(1, "Give the server keys or an authenticator, not both");
    }
    out.access.authenticator = where.authenticator;
    if (!where.keys.empty()) {
      std::vector<std::pair<std::string, std::string>> keys;
      for (const ClientKey& key : where.keys) {
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
      out.access.authenticator = std::make_shared<ApiKeys>(keys);
    }
    out.access.allowed_origins = where.allowed_origins;
    out.access.allowed_hosts = where.allowed_hosts;
    Result<TrustedProxies> proxies =
        TrustedProxies::make(where.trusted_proxies, TrustedProxies::Field::x_forwarded_for);
    if (!proxies) return std::unexpected(std::move(proxies.error()));
    out.access.proxies = *std::move(proxies);
  }
  if (places.over_unix) {
    if (places.over_unix->path.empty()) return fail(1, "unix_socket needs a path");
    out.unix_path = places.over_unix->path;
    out.unix_mode = static_cast<mode_t>(places.over_unix->mode);
  }
  return out;
}

/// The host, or the Error for what the system has refused, such as another thread or descriptor.
Result<std::unique_ptr<ServerHost>> started(detail::ServerState& server,
                                            ServerHostOptions options) {
  try {
    return server.start<ServerHost>(std::move(options));
  } catch (const std::system_error& failure) {
    return fail(
        1, "The event loops cannot start (ServeOptions::threads): " + std::string(failure.what()));
  }
}

}  // namespace

struct Serving::State {
  std::shared_ptr<detail::ServerState> server;
  Places places;
  std::unique_ptr<ServerHost> host;  // null once stopped
  std::uint16_t port = 0;

  /// `input_ended` is called on a loop when standard input has ended and all of it is answered.
  static std::expected<Serving, Error> start(const Server& server, Places places,
                                             std::function<void()> input_ended);

  State(std::shared_ptr<detail::ServerState> served, Places where)
      : server(std::move(served)), places(std::move(where)) {}
  ~State() { stop(); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  /// `hurry` is called repeatedly; when it returns true, calls under way end at once. Throws
  /// std::logic_error on a thread that it would wait for.
  void stop(const std::function<bool()>& hurry = {}) {
    if (host == nullptr) return;
    if (host->on_handler_thread()) {
      throw std::logic_error(
          "a handler cannot stop its own server, which waits for it: let the handler tell another "
          "thread, such as the one that called sluice::start(), to call Serving::stop()");
    }
    // With stdio alone, the only client has gone.
    const bool serves_others = places.over_http || places.over_unix;
    server->forget(*host);
    host->shutdown(at_most_forever(places.options.shutdown_deadline),
                   [&] { return !serves_others || (hurry && hurry()); });
    host = nullptr;
  }
};

Serving::Serving(std::unique_ptr<State> state) : state_(std::move(state)) {}
Serving::Serving(Serving&& other) noexcept = default;
Serving& Serving::operator=(Serving&& other) noexcept = default;
Serving::~Serving() = default;

std::uint16_t Serving::port() const {
  return state_->port;
}

std::string Serving::url() const {
  if (!state_->places.over_http) return {};
  const http& where = *state_->places.over_http;
  const bool v6 = where.host.contains(':');
  return (where.tls_certificate.empty() ? "http://" : "https://") +
         (v6 ? "[" + where.host + "]" : where.host) + ":" + std::to_string(port()) + "/mcp";
}

std::string Serving::metrics() const {
  return state_->host == nullptr ? std::string() : state_->host->metrics();
}

void Serving::stop() {
  state_->stop();
}

std::expected<Serving, Error> Serving::State::start(const Server& server, Places places,
                                                    std::function<void()> input_ended) {
  Result<ServerHostOptions> options = host_options(places);
  if (!options) return std::unexpected(std::move(options.error()));
  auto state = std::make_unique<State>(server.state(), std::move(places));
  StandardStreams streams;
  if (state->places.over_stdio) {
    Result<StandardStreams> taken = take_standard_streams();
    if (!taken) return std::unexpected(std::move(taken.error()));
    streams = std::move(*taken);
  }
  Result<std::unique_ptr<ServerHost>> host = started(*state->server, std::move(*options));
  if (!host) return std::unexpected(std::move(host.error()));
  state->host = std::move(*host);
  state->port = state->host->port();
  if (state->places.over_stdio) {
    state->host->serve_lines(std::move(streams.input), std::move(streams.output),
                             [ended = std::move(input_ended)] {
                               if (ended) ended();
                             });
  }
  return Serving(std::move(state));
}

std::expected<Serving, Error> detail::start_at(const Server& server,
                                               std::initializer_list<Place> places) {
  return Serving::State::start(server, together(places), {});
}

int detail::serve_at(const Server& server, std::initializer_list<Place> places) {
  // Created before any thread, so that threads do not receive the signals.
  const ShutdownSignals signals;
  std::expected<Serving, Error> serving =
      Serving::State::start(server, together(places), [&signals] { signals.input_ended(); });
  if (!serving) {
    log_error(serving.error().message);
    return 1;
  }
  if (const std::string url = serving->url(); !url.empty()) {
    log_info("serving", {{"mcp", std::string_view(url)}});
  }
  signals.wait();
  serving->state_->stop([&signals] { return signals.take_signal(); });
  return 0;
}

}  // namespace sluice
