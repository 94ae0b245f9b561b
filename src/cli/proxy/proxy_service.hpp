#pragma once

#include <functional>
#include <memory>

#include "cli/options/serve_config.hpp"
#include "core/clock.hpp"
#include "core/error.hpp"
#include "proxy/proxy.hpp"
#include "server/host/server_host.hpp"
#include "server/host/shutdown_signals.hpp"

namespace sluice {

/// A proxy that runs, with the server in front of it. Use it on the thread that started it.
class ProxyService {
 public:
  /// Listens where `config` says. Errors carry an exit code.
  static Result<std::unique_ptr<ProxyService>> start(const ServeConfig& config,
                                                     ProxyOptions options);

  [[nodiscard]] ServerHost& host() { return *host_; }
  /// Calls Proxy::open() on its loop, where `done` is called too.
  void open(std::function<void(Result<json::object>)> done);
  /// Blocks until `signals` ask for the end. Then calls `on_end`, which may be empty, and ends
  /// everything: calls have the configured time to end by themselves, unless another signal follows
  /// or `hurries` is set: nobody but the host of this program is served. Servers that are programs
  /// have some seconds for their end, and one second once the host has asked again.
  void run(const ShutdownSignals& signals, bool hurries, const std::function<void()>& on_end = {});

 private:
  ProxyService(Duration deadline, ProxyOptions options);

  Duration deadline_;
  SteadyClock clock_;
  std::shared_ptr<Proxy> proxy_;
  std::unique_ptr<ServerHost> host_;
};

}  // namespace sluice
