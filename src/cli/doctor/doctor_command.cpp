#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <unistd.h>
#include <utility>
#include <vector>

#include "cli/doctor/doctor_checks.hpp"
#include "cli/doctor/report/doctor_report.hpp"
#include "cli/doctor/server/examine_server.hpp"
#include "cli/options/command.hpp"
#include "cli/options/command_line.hpp"
#include "cli/options/exit_code.hpp"
#include "cli/options/process_environment.hpp"
#include "cli/options/serve_config.hpp"
#include "cli/remote/remote_options.hpp"
#include "cli/remote/remote_words.hpp"
#include "cli/serve/engine_factory.hpp"
#include "cli/serve/machine.hpp"
#include "cli/targets/process_targets.hpp"
#include "cli/terminal/terminal.hpp"

namespace sluice {
namespace {

struct DoctorArguments {
  SettingValues flags;
  std::string file;
  std::vector<std::string> words;    // the server to examine, in place of this machine
  std::vector<std::string> command;  // that starts it
  std::vector<std::string> headers;
  std::optional<double> timeout;  // seconds
  bool as_json = false;
};

constexpr const char* kDoctorExamples =
    "Examples:\n"
    "  sluice doctor https://mcp.example.com/mcp\n"
    "  sluice doctor notes --json             # a server that `sluice servers` lists\n"
    "  sluice doctor -- npx -y some-server\n"
    "  sluice doctor                          # check what `sluice serve` would use\n"
    "  sluice doctor --model model.gguf --port 80\n"
    "  sluice doctor --json | jq '.checks[] | select(.status != \"ok\")'\n"
    "\n"
    "With a TARGET, examines that MCP server: how it is reached, TLS, revisions, what HTTP\n"
    "servers must do, sessions, streams, authorization, and what it offers. Each finding names\n"
    "the clause of the specification. Nothing is changed: no tool is called, at most 100\n"
    "requests are sent, and sessions that are opened are ended.\n"
    "\n"
    "Without one, checks this machine. All options of `sluice serve` are accepted as well;\n"
    "`sluice serve --help` lists them.\n"
    "\n"
    "The exit code is 1 if a check fails, 4 if the server cannot be reached, and 3 if what\n"
    "could not be examined is behind a login; warnings do not count.\n";

constexpr double kMostSeconds = 3600;

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

int doctor_complains(const Error& error) {
  if (error.code == kExitInterrupted) return error.code;
  complain("doctor: " + error.message);
  return error.code;
}

int examine_this_machine(const DoctorArguments& arguments) {
  if (!arguments.headers.empty() || arguments.timeout) {
    return doctor_complains(
        {kExitUsage, "--header and --timeout are for the server of a TARGET, which is missing"});
  }
  const Checks checks = examine(arguments);
  const std::string report =
      arguments.as_json ? json_report(checks) : text_report(checks, Style::of(STDOUT_FILENO));
  if (const int printed = print(report); printed != kExitOk) return printed;
  return any_failed(checks) ? kExitFailure : kExitOk;
}

int examine_target(const DoctorArguments& arguments) {
  if (!arguments.flags.empty() || !arguments.file.empty()) {
    return doctor_complains(
        {kExitUsage, "options of `sluice serve` are for this machine: leave TARGET out"});
  }
  ServerExaminationOptions options{.headers = arguments.headers};
  if (arguments.timeout) {
    if (!(*arguments.timeout > 0 && *arguments.timeout <= kMostSeconds)) {
      return doctor_complains({kExitUsage, "--timeout: give seconds, at most 3600"});
    }
    options.timeout =
        std::chrono::duration_cast<Duration>(std::chrono::duration<double>(*arguments.timeout));
  }
  const auto words = split_words(arguments.words, arguments.command, {});
  if (!words) return doctor_complains(words.error());
  if (words->target.command.empty() && is_session_word(words->target.word)) {
    return doctor_complains({kExitUsage, "a session is a proxy of Sluice's own; name its server"});
  }
  const auto target = find_target(words->target);
  if (!target) return doctor_complains(target.error());
  for (const std::string& warning : target->warnings) complain(warning);
  auto examined = examine_server(*target, options);
  if (!examined) return doctor_complains(examined.error());
  // A server may repeat them, and reports are shown to others.
  for (Check& check : examined->checks) check.finding = without_secrets(std::move(check.finding));
  const std::string report =
      arguments.as_json ? json_report(examined->checks)
                        : text_report(examined->checks, Style::of(STDOUT_FILENO),
                                      examined->all_is_well, "The server is not as it should be");
  if (const int printed = print(report); printed != kExitOk) return printed;
  return examined->exit_code;
}

int run_doctor(const DoctorArguments& arguments) {
  const bool has_target = !arguments.words.empty() || !arguments.command.empty();
  return has_target ? examine_target(arguments) : examine_this_machine(arguments);
}

}  // namespace

void add_doctor_command(CommandLine& program) {
  const auto arguments = std::make_shared<DoctorArguments>();
  Subcommand command = program.add_subcommand(
      "doctor", "Examine an MCP server, or this machine, and say how to mend what is wrong",
      kDoctorExamples, [arguments] { return run_doctor(*arguments); });
  command.add_option(
      "words", &arguments->words,
      {.text = "A URL (http, https, ws, wss), a socket (unix:PATH, http+unix:PATH), or a name that "
               "`sluice servers` lists. Empty: this machine",
       .operand = "TARGET"});
  command.add_command_words(
      arguments->command,
      {.text = "The command that starts the server, in place of TARGET", .operand = "COMMAND"});
  command.add_flag("--json", arguments->as_json, {.text = "Print the checks as JSON"});
  command.add_option("--config", &arguments->file,
                     {.text = "Settings file. SLUICE_CONFIG, default ./sluice.toml if it exists",
                      .operand = "FILE"});
  command.add_repeatable(
      "-H,--header", Keep::all,
      [arguments](const std::vector<std::string>& values) { arguments->headers = values; },
      {.text = "Send this header to TARGET with every request. Repeat it for several",
       .operand = "\"Name: value\""});
  command.add_option(
      "--timeout", &arguments->timeout,
      {.text = "How long the examination of TARGET may take. Default 30", .operand = "SECONDS"});
  add_unlisted_serve_options(command, arguments->flags);
}

}  // namespace sluice
