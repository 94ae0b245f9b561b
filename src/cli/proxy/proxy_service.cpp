#include "cli/proxy/proxy_service.hpp"

#include <chrono>
#include <future>
#include <utility>

#include "cli/options/exit_code.hpp"
#include "cli/serve/host_options.hpp"
#include "core/version.hpp"
#include "server/dispatch/request_log.hpp"

namespace sluice {
namespace {

/// How long the servers may take to end.
constexpr auto kEndTime = std::chrono::seconds(15);

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
  static_cast<void>(signals.wait());
  if (on_end) on_end();
  const auto hurry = [&] {
    hurries = hurries || signals.take() == SignalRequest::end;
    return hurries;
  };
  host_->shutdown(deadline_, hurry, [this] {
    const auto ended = std::make_shared<std::promise<void>>();
    host_->loops().loop(0).post(
        [proxy = proxy_, ended] { proxy->close([ended] { ended->set_value(); }); });
    ended->get_future().wait_for(kEndTime);
  });
}

}  // namespace sluice
