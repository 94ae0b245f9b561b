#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <unistd.h>
#include <utility>

#include "cli/doctor/doctor_checks.hpp"
#include "cli/doctor/doctor_report.hpp"
#include "cli/options/command.hpp"
#include "cli/options/command_line.hpp"
#include "cli/options/exit_code.hpp"
#include "cli/options/process_environment.hpp"
#include "cli/options/serve_config.hpp"
#include "cli/serve/engine_factory.hpp"
#include "cli/serve/machine.hpp"
#include "cli/terminal/terminal.hpp"

namespace sluice {
namespace {

struct DoctorArguments {
  SettingValues flags;
  std::string file;
  bool as_json = false;
};

constexpr const char* kDoctorExamples =
    "Examples:\n"
    "  sluice doctor                          # check what `sluice serve` would use\n"
    "  sluice doctor --model model.gguf --port 80\n"
    "  sluice doctor --json | jq '.checks[] | select(.status != \"ok\")'\n"
    "\n"
    "All options of `sluice serve` are accepted as well; `sluice serve --help` lists them.\n"
    "\n"
    "The exit code is 1 if a check fails; warnings do not count.\n";

/// The checks, in the order in which a starting server would run into the problems.
Checks examine(const DoctorArguments& arguments) {
  Checks checks;
  auto loaded = load_serve_config(process_sources(arguments.flags, arguments.file));
  if (loaded) {
    const auto count = loaded->origins.size();
    checks.push_back({Check::Status::ok, "settings",
                      std::to_string(count) + " given, the others have their defaults", ""});
  } else {
    checks.push_back({Check::Status::fail, "settings", loaded.error().message,
                      "Correct it, and check again what depends on settings; "
                      "sluice serve --example-config explains every setting"});
    check_machine(checks, read_machine(), ServeConfig());
    return checks;
  }
  ServeConfig& config = loaded->config;
  const bool built_in = runs_built_in_model(config);
  if (built_in) config.engine.model = built_in_model();
  const MachineFacts machine = read_machine();
  check_machine(checks, machine, config);
  check_limits(checks, machine, config);
  check_model(checks, machine, config);
  if (built_in && checks.back().status == Check::Status::ok) {
    checks.back().finding += ": the tiny built-in model; run a real one with --model FILE";
  }
  check_ports(checks, config);
  check_unix_socket(checks, config);
  check_tls(checks, config, std::chrono::system_clock::now());
  check_access(checks, config);
  check_log(checks, config);
  return checks;
}

int run_doctor(const DoctorArguments& arguments) {
  const Checks checks = examine(arguments);
  const std::string report =
      arguments.as_json ? json_report(checks) : text_report(checks, Style::of(STDOUT_FILENO));
  if (const int printed = print(report); printed != kExitOk) return printed;
  return any_failed(checks) ? kExitFailure : kExitOk;
}

}  // namespace

void add_doctor_command(CommandLine& program) {
  const auto arguments = std::make_shared<DoctorArguments>();
  Subcommand command = program.add_subcommand(
      "doctor", "Check machine, model, port, TLS files and limits, and say how to fix problems",
      kDoctorExamples, [arguments] { return run_doctor(*arguments); });
  command.add_flag("--json", arguments->as_json, {.text = "Print the checks as JSON"});
  command.add_option("--config", &arguments->file,
                     {.text = "Settings file. SLUICE_CONFIG, default ./sluice.toml if it exists",
                      .operand = "FILE"});
  add_unlisted_serve_options(command, arguments->flags);
}

}  // namespace sluice
