#include "cli/proxy/proxy_service.hpp"

#include <algorithm>
#include <chrono>
#include <future>
#include <utility>

#include "cli/options/exit_code.hpp"
#include "cli/serve/host_options.hpp"
#include "core/version.hpp"
#include "server/dispatch/request_log.hpp"

namespace sluice {
namespace {

/// How long the servers may take to end. Then those that are programs are killed.
constexpr auto kEndTime = std::chrono::seconds(15);
/// The same once the proxy was asked a second time. Its host may kill it two seconds after that
/// (2025-11-25, Lifecycle, Shutdown), and nobody would end the programs then.
constexpr auto kShortEndTime = std::chrono::seconds(1);
/// How often it looks whether it is asked again.
constexpr auto kLookInterval = std::chrono::milliseconds(20);

ServerDefinition definition_of(const std::shared_ptr<Proxy>& proxy, const ServeConfig& config,
                               const Clock& clock) {
  ServerDefinition definition;
  definition.name = "sluice proxy";
  definition.version = kVersion;
  definition.announces_changes = true;
  definition.has_streams = false;
  definition.forwarder = proxy;
  if (config.log.level <= LogLevel::debug) definition.middleware.push_back(request_log(clock));
  return definition;
}

}  // namespace

ProxyService::ProxyService(Duration deadline, ProxyOptions options)
    : deadline_(deadline), proxy_(std::make_shared<Proxy>(std::move(options))) {}

Result<std::unique_ptr<ProxyService>> ProxyService::start(const ServeConfig& config,
                                                          ProxyOptions options) {
  std::unique_ptr<ProxyService> service(
      new ProxyService(config.shutdown_deadline, std::move(options)));
  Result<ServerHostOptions> settings = host_options(config);
  if (!settings) return std::unexpected(std::move(settings.error()));
  auto started = ServerHost::start(definition_of(service->proxy_, config, service->clock_),
                                   *std::move(settings));
  if (!started) return fail(kExitFailure, std::move(started.error().message));
  service->host_ = *std::move(started);
  return service;
}

void ProxyService::open(std::function<void(Result<json::object>)> done) {
  Executor& loop = host_->loops().loop(0);
  loop.post([proxy = proxy_, &loop, done = std::move(done)]() mutable {
    proxy->open(loop, std::move(done));
  });
}

void ProxyService::run(const ShutdownSignals& signals, bool hurries,
                       const std::function<void()>& on_end) {
  const bool is_signalled = signals.wait() == SignalRequest::end;
  if (on_end) on_end();
  // Whoever has sent a signal before will not wait long, nor will a host that has closed the input.
  bool is_pressed = is_signalled && hurries;
  const auto presses = [&] {
    is_pressed = is_pressed || signals.take() == SignalRequest::end;
    return is_pressed;
  };
  const auto hurry = [&] { return presses() || hurries; };
  host_->shutdown(deadline_, hurry, [&] {
    const auto ended = std::make_shared<std::promise<void>>();
    host_->loops().loop(0).post(
        [proxy = proxy_, ended] { proxy->close([ended] { ended->set_value(); }); });
    std::future<void> end = ended->get_future();
    TimePoint until = std::chrono::steady_clock::now() + kEndTime;
    for (bool is_short = false; end.wait_for(kLookInterval) != std::future_status::ready;) {
      const TimePoint now = std::chrono::steady_clock::now();
      if (now >= until) break;
      if (!is_short && presses()) {
        is_short = true;
        until = std::min(until, now + kShortEndTime);
      }
    }
  });
}

}  // namespace sluice
