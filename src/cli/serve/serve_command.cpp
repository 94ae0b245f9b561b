#include <csignal>
#include <cstdint>
#include <memory>
#include <pthread.h>
#include <string>
#include <unistd.h>

#include "cli/options/command.hpp"
#include "cli/options/command_line.hpp"
#include "cli/options/exit_code.hpp"
#include "cli/options/process_environment.hpp"
#include "cli/options/serve_config.hpp"
#include "cli/serve/host_options.hpp"
#include "cli/serve/machine.hpp"
#include "cli/serve/serve.hpp"
#include "cli/terminal/terminal.hpp"
#include "core/log/log.hpp"

namespace sluice {
namespace {

struct ServeArguments {
  SettingValues flags;
  std::string file;
  bool print_config = false;
  bool example_config = false;
};

constexpr const char* kServeExamples =
    "Examples:\n"
    "  sluice serve                                       # the tiny built-in model\n"
    "  sluice serve --model model.gguf\n"
    "  sluice serve --model model.gguf --host 0.0.0.0 --api-key-file keys --tls-cert chain.pem "
    "--tls-key key.pem\n"
    "  sluice serve --engine synthetic --port 9000        # a load test without a model\n"
    "  sluice serve --stdio --model model.gguf             # for a program that starts its "
    "servers\n"
    "  sluice serve --unix /run/user/1000/sluice.sock --model model.gguf\n"
    "  sluice serve --legacy-ports --model model.rkllm     # lines over TCP too\n"
    "  SLUICE_PORT=9000 sluice serve --print-config       # the settings, and where they come "
    "from\n"
    "  sluice serve --example-config > sluice.toml\n";

int run_serve(const ServeArguments& arguments) {
  if (arguments.example_config) return print(example_config());
  ConfigSources sources = process_sources(arguments.flags, arguments.file);
  auto loaded = load_serve_config(sources);
  if (!loaded) {
    complain(loaded.error().message);
    return loaded.error().code;
  }
  if (arguments.print_config) return print(print_config(*loaded));
  const ServeConfig& config = loaded->config;
  if (const Result<void> logs = use_log(config.log); !logs) {
    complain(logs.error().message);
    return kExitUsage;
  }
  const std::uint64_t files = files_for_connections(config.http.max_connections);
  if (const std::uint64_t got = raise_open_files(files); got < files) {
    log_warning("The limit of open files is too low for max_connections; see sluice doctor",
                {{"open_files", static_cast<std::int64_t>(got)},
                 {"max_connections", static_cast<std::int64_t>(config.http.max_connections)}});
  }
  sources.while_serving = true;
  // For good: after the end of the server too, a signal must not change the exit code.
  sigset_t ends{};
  sigemptyset(&ends);
  sigaddset(&ends, SIGINT);
  sigaddset(&ends, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &ends, nullptr);
  return serve(config, [&sources]() -> Result<ServeConfig> {
    Result<LoadedConfig> again = load_serve_config(sources);
    if (!again) return std::unexpected(std::move(again.error()));
    return std::move(again->config);
  });
}

}  // namespace

void add_serve_command(CommandLine& program) {
  const auto arguments = std::make_shared<ServeArguments>();
  Subcommand command =
      program.add_subcommand("serve", "Serve a model, or numbered chunks for load tests",
                             kServeExamples, [arguments] { return run_serve(*arguments); });
  command.add_option("--config", &arguments->file,
                     {.text = "Settings file. SLUICE_CONFIG, default ./sluice.toml if it exists",
                      .operand = "FILE"});
  command.add_flag("--print-config", arguments->print_config,
                   {.text = "Print the settings that would be used, and where each comes from"});
  command.add_flag("--example-config", arguments->example_config,
                   {.text = "Print a sluice.toml with every setting explained"});
  add_serve_options(command, arguments->flags);
}

}  // namespace sluice
