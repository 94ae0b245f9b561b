#include "cli/serve.hpp"

#include <csignal>
#include <cstdio>
#include <ctime>
#include <pthread.h>
#include <unistd.h>
#include <utility>

#include "cli/engine_factory.hpp"
#include "cli/exit_code.hpp"
#include "core/log.hpp"
#include "core/version.hpp"
#include "engine/engine_methods.hpp"
#include "server/server_host.hpp"

namespace sluice {
namespace {

ServerHostOptions host_options(const ServeConfig& config, std::shared_ptr<TlsContext> tls) {
  ServerHostOptions options;
  options.host = config.host;
  options.port = config.port;
  options.threads = config.threads;
  options.tls = std::move(tls);
  options.limits.max_chunks = config.streams.max_chunks;
  options.limits.max_bytes = config.streams.max_bytes;
  options.limits.expiry = config.streams.expiry;
  options.limits.tombstone = config.streams.tombstone;
  options.limits.retained_bytes = config.streams.retained_bytes;
  options.limits.stall = config.streams.stall_limit;
  options.stream_memory = config.streams.max_total_bytes;
  options.streams_per_client = config.streams.per_client;
  options.sessions.max_sessions = config.sessions.max;
  options.sessions.per_client = config.sessions.per_client;
  options.sessions.expiry = config.sessions.expiry;
  options.sessions.resume_window = config.sessions.resume_window;
  options.max_message = config.http.max_body;
  options.http.max_header_bytes = config.http.max_header;
  options.http.max_connections = config.http.max_connections;
  options.http.gzip_threshold = config.compression_threshold;
  options.http.request_timeout = config.http.request_timeout;
  options.http.idle_timeout = config.http.keep_alive;
  options.http.stall_timeout = config.http.write_stall;
  for (const ApiKey& key : config.access.api_keys) {
    options.access.api_keys.emplace_back(key.name, key.key);
  }
  options.access.allowed_origins = config.access.allowed_origins;
  options.access.allowed_hosts = config.access.allowed_hosts;
  return options;
}

/// A model and the server in front of it.
class RunningServer final : public LocalServer {
 public:
  static Result<std::unique_ptr<RunningServer>> start(const ServeConfig& config) {
    std::shared_ptr<TlsContext> tls;
    if (!config.tls_certificate.empty()) {
      Result<std::shared_ptr<TlsContext>> context =
          TlsContext::server(config.tls_certificate, config.tls_key);
      if (!context) return fail(kExitUsage, context.error().message);
      tls = std::move(*context);
    }
    Result<EngineHandle> engine = make_engine(config);
    if (!engine) return std::unexpected(std::move(engine.error()));

    std::unique_ptr<RunningServer> server(new RunningServer(config, std::move(*engine)));
    Result<std::unique_ptr<ServerHost>> host =
        ServerHost::start(server->definition_, host_options(config, std::move(tls)));
    if (!host) return fail(kExitFailure, host.error().message);
    server->host_ = std::move(*host);
    return server;
  }

  ~RunningServer() override {
    RunningServer::stop();
    engine_.engine->shutdown();
    host_ = nullptr;
  }

  [[nodiscard]] std::string url() const override {
    const bool v6 = config_.host.find(':') != std::string::npos;
    return (config_.tls_certificate.empty() ? "http://" : "https://") +
           (v6 ? "[" + config_.host + "]" : config_.host) + ":" + std::to_string(host_->port());
  }
  void stop() override { stop({}); }
  void stop(const std::function<bool()>& hurry) {
    if (host_ != nullptr) host_->shutdown(config_.shutdown_deadline, hurry);
  }

  [[nodiscard]] Result<void> wait_ready() const { return engine_.wait_ready(); }
  [[nodiscard]] std::string not_ready() const { return engine_.not_ready(); }
  [[nodiscard]] EngineInfo engine_info() const { return engine_.engine->info(); }

 private:
  RunningServer(const ServeConfig& config, EngineHandle engine)
      : config_(config), engine_(std::move(engine)) {
    definition_.name = "sluice";
    definition_.version = kVersion;
    add_engine_methods(definition_, *engine_.engine);
    if (config.engine.kind == EngineKind::synthetic) {
      add_load_test_tools(definition_, *engine_.engine);
    }
    definition_.not_ready = engine_.not_ready;
  }

  ServeConfig config_;
  EngineHandle engine_;
  ServerDefinition definition_;
  std::unique_ptr<ServerHost> host_;
};

void print_urls(const RunningServer& server, const ServeConfig& config) {
  const std::string url = server.url();
  const std::string ws = "ws" + url.substr(4);
  std::printf("MCP          %s/mcp\n", url.c_str());
  std::printf("WebSocket    %s/ws\n", ws.c_str());
  std::printf("health       %s/healthz  %s/readyz  %s/metrics\n", url.c_str(), url.c_str(),
              url.c_str());
  std::printf("try          sluice chat --url %s \"Hello\"\n", url.c_str());
  if (config.engine.kind == EngineKind::synthetic) {
    std::printf("engine       synthetic: numbered chunks for load tests, no model\n");
  }
  std::fflush(stdout);
}

/// Blocks the signals that end the server, in this thread and those it starts, so that they can be
/// waited for.
sigset_t block_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  return signals;
}

bool signal_pending(const sigset_t& signals) {
  const timespec now{};
  return sigtimedwait(&signals, nullptr, &now) > 0;
}

}  // namespace

Result<std::unique_ptr<LocalServer>> LocalServer::start(const ServeConfig& config) {
  Result<std::unique_ptr<RunningServer>> server = RunningServer::start(config);
  if (!server) return std::unexpected(std::move(server.error()));
  if (Result<void> ready = (*server)->wait_ready(); !ready) {
    return std::unexpected(std::move(ready.error()));
  }
  return std::unique_ptr<LocalServer>(std::move(*server));
}

int serve(const ServeConfig& config) {
  const sigset_t signals = block_signals();
  Result<std::unique_ptr<RunningServer>> started = RunningServer::start(config);
  if (!started) {
    log_error(started.error().message);
    return started.error().code;
  }
  RunningServer& server = **started;
  print_urls(server, config);
  // The server listens while the model loads, so that /readyz can tell how far it is.
  bool ready = false;
  while (!ready) {
    if (signal_pending(signals)) return kExitOk;
    const std::string why = server.not_ready();
    if (why.empty()) break;
    if (const Result<void> waited = server.wait_ready(); !waited) {
      log_error(waited.error().message);
      return kExitFailure;
    }
    ready = true;
  }
  const EngineInfo info = server.engine_info();
  log_info("ready", {{"engine", std::string_view(info.engine)},
                     {"model", std::string_view(info.model)},
                     {"slots", static_cast<std::int64_t>(info.slots)},
                     {"context", static_cast<std::int64_t>(info.context_tokens)}});
  int signal = 0;
  sigwait(&signals, &signal);
  log_info("shutting down; once more ends at once");
  server.stop([&signals] { return signal_pending(signals); });
  log_info("stopped");
  return kExitOk;
}

}  // namespace sluice
