#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/options/command.hpp"
#include "cli/options/command_line.hpp"
#include "cli/options/exit_code.hpp"
#include "cli/options/process_environment.hpp"
#include "cli/options/serve_config.hpp"
#include "cli/proxy/proxy_service.hpp"
#include "cli/proxy/proxy_targets.hpp"
#include "cli/remote/remote_options.hpp"
#include "cli/serve/host_options.hpp"
#include "cli/terminal/terminal.hpp"
#include "core/log/log.hpp"
#include "net/io/descriptor_io.hpp"
#include "proxy/proxy.hpp"
#include "server/host/server_host.hpp"
#include "server/host/shutdown_signals.hpp"

namespace sluice {
namespace {

constexpr double kLongestIdle = 1e6;  // seconds
constexpr int kMostPrograms = 10'000;

constexpr const char* kProxyExamples =
    "Examples:\n"
    "  sluice proxy https://mcp.example.com/mcp    # on standard input and output\n"
    "  sluice proxy --listen 127.0.0.1:8090 -- npx -y some-server\n"
    "  sluice proxy --unix /run/user/1000/mcp.sock docs\n"
    "  sluice proxy docs=https://mcp.example.com/mcp time= -- uvx mcp-server-time\n"
    "\n"
    "Without --listen, --port, --host or --unix, it serves standard input and output. With several "
    "servers, the names of tools and prompts begin with NAME_, and URIs with NAME+.\n";

struct ProxyArguments {
  ProxyTargets targets;
  SettingValues flags;
  std::optional<double> idle_timeout;
  std::optional<int> programs_per_client;
  bool shares_sessions = false;
  bool has_one_session = false;
};

/// The settings, of which those of a model and of a number of loops do not matter.
Result<ServeConfig> config_of(const SettingValues& flags) {
  ConfigSources sources = process_sources(flags, {});
  sources.file = "";  // a file is for `sluice serve`
  auto loaded = load_serve_config(sources);
  if (!loaded) return std::unexpected(std::move(loaded.error()));
  ServeConfig config = std::move(loaded->config);
  const auto is_set = [&](const char* key) { return loaded->origins.contains(key); };
  if (!is_set("host") && !is_set("port") && !is_set("unix") && !is_set("stdio")) {
    config.stdio = true;
    config.tcp = false;
  }
  config.threads = 1;
  return config;
}

void print_proxy_places(const ServerHost& host, const ServeConfig& config) {
  for (const std::string& url : host.urls()) {
    if (config.stdio) {
      log_info("serving", {{"mcp", std::string_view(url + "/mcp")}});
    } else {
      std::printf("MCP          %s/mcp\nWebSocket    ws%s/ws\nSSE          %s/sse\n", url.c_str(),
                  url.c_str() + 4, url.c_str());
    }
  }
  if (!config.unix_path.empty() && !config.stdio) {
    std::printf("Unix socket  %s\n", config.unix_path.c_str());
  }
  std::fflush(stdout);
}

int serve_proxy(const ServeConfig& config, ProxyOptions options) {
  const auto cannot_start = [](const Error& error, int code) {
    log_error(error.message);
    return code;
  };
  StandardStreams streams;
  if (config.stdio) {
    Result<StandardStreams> taken = take_standard_streams();
    if (!taken) return cannot_start(taken.error(), kExitFailure);
    streams = std::move(*taken);
  }
  const ShutdownSignals signals;
  auto started = ProxyService::start(config, std::move(options));
  if (!started) return cannot_start(started.error(), started.error().code);
  ProxyService& service = **started;
  print_proxy_places(service.host(), config);
  if (config.stdio) {
    service.host().serve_lines(std::move(streams.input), std::move(streams.output),
                               [&signals] { signals.input_ended(); });
  }
  const bool serves_others = config.tcp || !config.unix_path.empty();
  service.run(signals, !serves_others);
  return kExitOk;
}

int run_proxy(const ProxyArguments& arguments) {
  const auto failed = [](const Error& error) {
    complain("proxy: " + error.message);
    return kExitUsage;
  };
  const double idle = arguments.idle_timeout.value_or(300);
  if (!(idle >= 0 && idle <= kLongestIdle)) {
    return failed({kExitUsage, "--idle-timeout: give seconds from 0 to 1000000; 0 is never", {}});
  }
  constexpr int kDefaultPrograms = static_cast<int>(ProxyOptions::kProgramsPerClient);
  const int programs = arguments.programs_per_client.value_or(kDefaultPrograms);
  if (programs < 1 || programs > kMostPrograms) {
    return failed({kExitUsage, "--programs-per-client: give a number from 1 to 10000", {}});
  }
  auto upstreams = upstreams_of(
      arguments.targets, std::chrono::duration_cast<Duration>(std::chrono::duration<double>(idle)));
  if (!upstreams) return failed(upstreams.error());
  const auto config = config_of(arguments.flags);
  if (!config) return failed(config.error());
  if (const Result<void> logs = use_log(config->log); !logs) return failed(logs.error());
  return serve_proxy(*config, {.upstreams = *std::move(upstreams),
                               .shares_principals = arguments.shares_sessions,
                               .programs_per_client = static_cast<std::size_t>(programs),
                               .has_one_session = arguments.has_one_session});
}

}  // namespace

void add_proxy_command(CommandLine& program) {
  const auto arguments = std::make_shared<ProxyArguments>();
  Subcommand command = program.add_subcommand(
      "proxy", "Serve other MCP servers over any transport, to clients of any revision",
      kProxyExamples, [arguments] { return run_proxy(*arguments); });
  command.add_option("words", &arguments->targets.words,
                     {.text = std::string(kTargetText) + ". NAME= stands for the command behind --",
                      .operand = "[NAME=]TARGET"});
  command.add_command_words(
      arguments->targets.command,
      {.text = "The command that starts a server, which each client gets for itself",
       .operand = "COMMAND"});
  const std::string group = "Servers";
  command.add_repeatable(
      "-H,--header", Keep::all,
      [arguments](const std::vector<std::string>& values) { arguments->targets.headers = values; },
      {.text = "Send this header with every request to the server. Repeat it for several",
       .operand = "\"Name: value\"",
       .group = group});
  command.add_option(
      "--revision", &arguments->targets.revision,
      {.text = "The revision of MCP to speak with the servers", .operand = "DATE", .group = group});
  command.add_option(
      "--idle-timeout", &arguments->idle_timeout,
      {.text = "How long a server may be silent about a request before it is asked whether it "
               "still lives; it is started anew if it does not say so. Default 300, 0: never",
       .operand = "SECONDS",
       .group = group});
  command.add_option(
      "--programs-per-client", &arguments->programs_per_client,
      {.text = "The most programs that run for one client at a time, if servers are programs; "
               "a client is a key, or an address without one. Default 128",
       .operand = "N",
       .group = group});
  command.add_flag("--share-sessions", arguments->shares_sessions,
                   {.text = "Take callers of the same address for one client. Otherwise each "
                            "request has its own session with a server that needs one, unless "
                            "the caller has a key, a session or a connection",
                    .group = group});
  command.add_flag("--one-session", arguments->has_one_session,
                   {.text = "Let all clients share one session with each server, which stays open "
                            "when they go",
                    .group = group});
  add_listening_options(command, arguments->flags);
}

}  // namespace sluice
