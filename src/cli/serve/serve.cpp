#include "cli/serve/serve.hpp"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unistd.h>
#include <utility>
#include <vector>

#include "auth/api_keys.hpp"
#include "auth/operators.hpp"
#include "cli/options/exit_code.hpp"
#include "cli/serve/engine_factory.hpp"
#include "cli/serve/host_options.hpp"
#include "cli/serve/npu_engine.hpp"
#include "cli/serve/remote_engine.hpp"
#include "cli/terminal/progress_line.hpp"
#include "cli/terminal/terminal.hpp"
#include "core/log/log.hpp"
#include "core/text/secrets.hpp"
#include "core/version.hpp"
#include "engine/methods/engine_methods.hpp"
#include "net/io/descriptor_io.hpp"
#include "net/loop/event_loop.hpp"
#include "server/dispatch/request_log.hpp"
#include "server/host/server_host.hpp"
#include "server/host/shutdown_signals.hpp"

namespace sluice {
namespace {

/// How often the wait for the model is interrupted to check for a request to stop.
constexpr Duration kReadyCheck = std::chrono::milliseconds(100);

/// A model and the server in front of it.
class RunningServer final : public LocalServer {
 public:
  static Result<std::unique_ptr<RunningServer>> start(const ServeConfig& config) {
    Result<ServerHostOptions> options = host_options(config);
    if (!options) return std::unexpected(std::move(options.error()));
    std::shared_ptr<const ModelFolder> folder;
    if (const std::string& path = config.engine.model_dir; !path.empty()) {
      Result<ModelFolder> opened = ModelFolder::open(path);
      if (!opened) return fail(kExitUsage, "--model-dir: " + opened.error().message);
      folder = std::make_shared<const ModelFolder>(*std::move(opened));
    }
    if (config.legacy_ports) options->lines = config.legacy_listen;
    auto loops = std::make_unique<LoopPool>(options->threads);
    options->loops = loops.get();
    Result<EngineHandle> engine = make_engine(config, loops.get());
    if (!engine) return std::unexpected(std::move(engine.error()));

    std::unique_ptr<RunningServer> server(
        new RunningServer(config, std::move(loops), std::move(*engine), std::move(folder)));
    Result<std::unique_ptr<ServerHost>> host =
        ServerHost::start(server->served(), *std::move(options));
    if (!host) return fail(kExitFailure, host.error().message);
    server->host_ = std::move(*host);
    return server;
  }

  ~RunningServer() override {
    RunningServer::stop();
    engine_.engine->shutdown();
    host_ = nullptr;
  }

  [[nodiscard]] std::string url() const override { return host_->urls().front(); }
  [[nodiscard]] const std::vector<std::string>& urls() const { return host_->urls(); }
  [[nodiscard]] const std::string& lines() const { return host_->lines(); }
  void stop() override { stop({}); }
  void stop(const std::function<bool()>& hurry) {
    if (host_ != nullptr) host_->shutdown(config_.shutdown_deadline, hurry, engine_.leave_loops);
  }
  /// Takes API keys, operators, the certificate and the log from `next`, or nothing of them after
  /// an error.
  Result<void> reload(const ServeConfig& next) {
    const auto has_changed = [&](const auto& is_set) { return is_set(next) != is_set(config_); };
    if (has_changed([](const ServeConfig& c) { return !c.access.api_keys.empty(); }) ||
        has_changed([](const ServeConfig& c) { return !c.tls_certificate.empty(); }) ||
        has_changed([](const ServeConfig& c) { return !c.log.file.empty(); })) {
      return fail(kExitUsage,
                  "API keys, TLS and a log file are there from the start to the end or not at all; "
                  "restart the server to change that");
    }
    const Result<std::shared_ptr<TlsContext>> tls = tls_context(next);
    if (!tls) return std::unexpected(tls.error());
    if (Result<void> logs = use_log(next.log); !logs) return logs;
    const bool logged_requests = logs_requests();
    config_.log = next.log;
    if (logs_requests() != logged_requests) {
      if (Result<void> taken = host_->replace(served(), {}); !taken) return taken;
    }
    if (*tls != nullptr) host_->replace_tls(*tls);
    operators_->replace(next.access.operators);
    if (!next.access.api_keys.empty()) host_->replace_authenticator(authenticator(next.access));
    return {};
  }
  void serve_lines(StandardStreams streams, Executor::Task ended) {
    host_->serve_lines(std::move(streams.input), std::move(streams.output), std::move(ended));
  }

  [[nodiscard]] Result<bool> wait_ready(Duration at_most) const {
    return engine_.wait_ready(at_most);
  }
  [[nodiscard]] std::string not_ready() const { return engine_.not_ready(); }
  [[nodiscard]] EngineInfo engine_info() const { return engine_.engine->info(); }

 private:
  RunningServer(const ServeConfig& config, std::unique_ptr<LoopPool> loops, EngineHandle engine,
                std::shared_ptr<const ModelFolder> folder)
      : config_(config), loops_(std::move(loops)), engine_(std::move(engine)) {
    definition_.name = "sluice";
    definition_.version = kVersion;
    add_engine_methods(
        definition_, *engine_.engine,
        {.model_path = config.engine.model,
         .offers_tools = is_npu_model(config.engine.model),
         .rights = {.is_operator = [operators = operators_](
                                       const Principal& caller) { return operators->has(caller); },
                    .folder = std::move(folder)}});
    if (config.engine.kind == EngineKind::synthetic) {
      add_load_test_tools(definition_, *engine_.engine);
    }
    definition_.not_ready = engine_.not_ready;
  }

  [[nodiscard]] bool logs_requests() const { return config_.log.level <= LogLevel::debug; }
  /// The definition as the settings have it served.
  [[nodiscard]] ServerDefinition served() const {
    ServerDefinition out = definition_;
    if (logs_requests()) out.middleware.insert(out.middleware.begin(), request_log(clock_));
    return out;
  }

  ServeConfig config_;
  SteadyClock clock_;
  std::shared_ptr<Operators> operators_ = std::make_shared<Operators>(config_.access.operators);
  std::unique_ptr<LoopPool> loops_;
  EngineHandle engine_;
  ServerDefinition definition_;
  std::unique_ptr<ServerHost> host_;
};

/// With stdio, standard output belongs to the protocol, so the addresses are only logged.
void print_places(const RunningServer& server, const ServeConfig& config) {
  if (config.stdio) {
    for (const std::string& url : server.urls()) {
      log_info("serving", {{"mcp", std::string_view(url + "/mcp")}});
    }
    if (!server.lines().empty()) {
      log_info("serving", {{"lines", std::string_view(server.lines())}});
    }
    if (!config.unix_path.empty()) {
      log_info("serving", {{"unix_socket", std::string_view(config.unix_path)}});
    }
    return;
  }
  for (const std::string& url : server.urls()) {
    const std::string ws = "ws" + url.substr(4);
    std::printf("MCP          %s/mcp\n", url.c_str());
    std::printf("WebSocket    %s/ws\n", ws.c_str());
    std::printf("health       %s/healthz  %s/readyz  %s/metrics\n", url.c_str(), url.c_str(),
                url.c_str());
  }
  if (config.tcp)
    std::printf("try          sluice chat --url %s \"Hello\"\n", server.url().c_str());
  if (!server.lines().empty()) std::printf("TCP lines    %s\n", server.lines().c_str());
  if (!config.unix_path.empty()) std::printf("Unix socket  %s\n", config.unix_path.c_str());
  if (config.engine.kind == EngineKind::synthetic) {
    std::printf("engine       synthetic: numbered chunks for load tests, no model\n");
  } else if (runs_built_in_model(config)) {
    std::printf(
        "model        the tiny built-in one; run a real one with sluice serve --model FILE.gguf\n");
  } else {
    const std::string& model = config.engine.model;
    std::printf("model        %s\n",
                is_remote_model(model) ? masked_url(model).c_str() : model.c_str());
  }
  std::fflush(stdout);
}

/// Says why the server cannot start, also to whoever does not read the log file.
int cannot_start(const ServeConfig& config, const Error& error) {
  log_error(error.message);
  if (!config.log.file.empty()) complain(error.message);
  return error.code;
}

void reload(RunningServer& server, const Result<ServeConfig>& next) {
  const Result<void> done = next ? server.reload(*next) : std::unexpected(next.error());
  if (done) {
    log_info("reloaded API keys, certificate and log",
             {{"api_keys", static_cast<std::int64_t>(next->access.api_keys.size())}});
  } else {
    log_error("nothing is reloaded", {{"why", std::string_view(done.error().message)}});
  }
}

}  // namespace

Result<std::unique_ptr<LocalServer>> LocalServer::start(
    const ServeConfig& config, const std::function<void(const std::string&)>& on_wait) {
  Result<std::unique_ptr<RunningServer>> server = RunningServer::start(config);
  if (!server) return std::unexpected(std::move(server.error()));
  Result<bool> ready = false;
  while (ready && !*ready) {
    on_wait((*server)->not_ready());
    ready = (*server)->wait_ready(kReadyCheck);
  }
  if (!ready) return std::unexpected(std::move(ready.error()));
  return std::unique_ptr<LocalServer>(std::move(*server));
}

int serve(const ServeConfig& config, const std::function<Result<ServeConfig>()>& reread) {
  StandardStreams streams;
  if (config.stdio) {
    Result<StandardStreams> taken = take_standard_streams();
    if (!taken) {
      return cannot_start(config, {kExitFailure, taken.error().message});
    }
    streams = std::move(*taken);
  }
  // Constructed after taking the standard streams, so that nothing else can get the descriptor of a
  // closed one.
  const bool serves_others = config.tcp || config.legacy_ports || !config.unix_path.empty();
  const ShutdownSignals signals(serves_others ? Hangup::reloads : Hangup::ends);
  Result<std::unique_ptr<RunningServer>> started = RunningServer::start(config);
  if (!started) return cannot_start(config, started.error());
  RunningServer& server = **started;
  print_places(server, config);
  // The server already listens while the model loads, so that /readyz can report the progress.
  ProgressLine progress(STDERR_FILENO, config.log.format == LogFormat::text);
  for (bool is_ready = false; !is_ready;) {
    progress.show(server.not_ready());
    const SignalRequest request = signals.take();
    if (request == SignalRequest::end) {
      log_info("stopped before the model was loaded");
      return kExitOk;
    }
    if (request == SignalRequest::reload) reload(server, reread());
    const Result<bool> ready = server.wait_ready(kReadyCheck);
    progress.clear();
    if (!ready) return cannot_start(config, {kExitFailure, ready.error().message});
    is_ready = *ready;
  }
  const EngineInfo info = server.engine_info();
  log_info("ready", {{"engine", std::string_view(info.engine)},
                     {"model", std::string_view(info.model)},
                     {"slots", static_cast<std::int64_t>(info.slots)},
                     {"context", static_cast<std::int64_t>(info.context_tokens)}});
  if (!info.checks_schema.empty()) {
    log_info("this model is not held to a json_schema; its answers are checked when they are whole",
             {{"why", std::string_view(info.checks_schema)}});
  }
  // Standard input is served only now: its client waits for the model instead of being told to try
  // again.
  if (config.stdio) {
    server.serve_lines(std::move(streams), [&signals] { signals.input_ended(); });
  }
  while (signals.wait() == SignalRequest::reload) reload(server, reread());
  // If no other clients are served, the only client has ended its input or sent a signal.
  log_info(serves_others ? "shutting down; a second signal ends the program at once"
                         : "shutting down");
  bool hurries = false;
  server.stop([&] {
    hurries = hurries || signals.take() == SignalRequest::end;
    return hurries || !serves_others;
  });
  log_info("stopped");
  // The engine still finishes what it is preparing or computing. Only a patient user waits for it.
  if (hurries) std::_Exit(kExitOk);
  signals.exit_at_once();
  return kExitOk;
}

}  // namespace sluice
