// sluice/serve.hpp.

#include "sluice/serve.hpp"

#include <cstdio>
#include <expected>
#include <functional>
#include <initializer_list>
#include <memory>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "core/log/log.hpp"
#include "net/io/descriptor_io.hpp"
#include "server/api/places.hpp"
#include "server/api/server_state.hpp"
#include "server/host/server_host.hpp"
#include "server/host/shutdown_signals.hpp"

namespace sluice {
namespace {

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
  std::vector<std::string> urls;

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
    const bool serves_others = !places.over_http.empty() || places.over_unix;
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
  return state_->urls.empty() ? std::string() : state_->urls.front();
}

std::vector<std::string> Serving::urls() const {
  return state_->urls;
}

std::string Serving::metrics() const {
  return state_->host == nullptr ? std::string() : state_->host->metrics();
}

void Serving::stop() {
  state_->stop();
}

std::expected<Serving, Error> Serving::State::start(const Server& server, Places places,
                                                    std::function<void()> input_ended) {
  Result<ServerHostOptions> options = places.host_options();
  if (!options) return std::unexpected(std::move(options.error()));
  auto state = std::make_unique<State>(server.state(), std::move(places));
  StandardStreams streams;
  if (state->places.over_stdio) {
    Result<StandardStreams> opened = open_standard_streams();
    if (!opened) return std::unexpected(std::move(opened.error()));
    streams = std::move(*opened);
  }
  Result<std::unique_ptr<ServerHost>> host = started(*state->server, std::move(*options));
  if (!host) return std::unexpected(std::move(host.error()));
  state->host = std::move(*host);
  state->port = state->host->port();
  for (const std::string& url : state->host->urls())
    state->urls.push_back(url + state->places.over_http.front().path);
  if (state->places.over_stdio) {
    // Last: a program that could not start keeps them.
    if (Result<void> diverted = divert_standard_streams(); !diverted) {
      return std::unexpected(std::move(diverted.error()));
    }
    state->host->serve_lines(std::move(streams.input), std::move(streams.output),
                             [ended = std::move(input_ended)] {
                               if (ended) ended();
                             });
  }
  return Serving(std::move(state));
}

std::expected<Serving, Error> detail::start_at(const Server& server,
                                               std::initializer_list<Place> arguments) {
  Result<Places> places = Places::make(arguments);
  if (!places) return std::unexpected(std::move(places.error()));
  return Serving::State::start(server, *std::move(places), {});
}

int detail::serve_at(const Server& server, std::initializer_list<Place> arguments) {
  Result<Places> places = Places::make(arguments);
  if (!places && places.error().code != 1) {
    const int code = static_cast<int>(places.error().code);
    std::fputs(places.error().message.c_str(), code == Places::kHelp ? stdout : stderr);
    return code;
  }
  const ShutdownSignals signals;
  std::expected<Serving, Error> serving =
      places
          ? Serving::State::start(server, *std::move(places), [&signals] { signals.input_ended(); })
          : std::unexpected(std::move(places.error()));
  if (!serving) {
    log_error(serving.error().message);
    return 1;
  }
  for (const std::string& url : serving->urls()) {
    log_info("serving", {{"mcp", std::string_view(url)}});
  }
  static_cast<void>(signals.wait());
  serving->state_->stop([&signals] { return signals.take() == SignalRequest::end; });
  return 0;
}

}  // namespace sluice
