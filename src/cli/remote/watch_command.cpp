#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cli/options/command.hpp"
#include "cli/options/command_line.hpp"
#include "cli/options/exit_code.hpp"
#include "cli/remote/remote_server.hpp"
#include "cli/terminal/interrupts.hpp"
#include "cli/terminal/terminal.hpp"
#include "json/json.hpp"

namespace sluice {
namespace {

constexpr const char* kWatchExamples =
    "Examples:\n"
    "  sluice watch http://127.0.0.1:8080/mcp\n"
    "  sluice watch notes --resource note://today --level debug\n"
    "  sluice watch notes --json | jq .method\n"
    "\n"
    "Prints the notifications of the server, a line each, until it is interrupted: changes of its "
    "lists, changes of the resources that --resource names, and its log.\n";

struct WatchCommandOptions {
  RemoteOptions remote;
  std::vector<std::string> resources;
  std::string level;
};

std::string watched_line(std::string_view method, const json::object& params, bool as_json) {
  if (as_json)
    return printable_json(to_json(json::object{{"method", method}, {"params", params}})) + "\n";
  constexpr std::string_view kPrefix = "notifications/";
  if (method.starts_with(kPrefix)) method.remove_prefix(kPrefix.size());
  json::object shown = params;
  shown.erase("_meta");
  std::string out = one_line(method);
  if (!shown.empty()) out.append(" ").append(one_line(to_json(shown)));
  return out + "\n";
}

/// Prints until the user or the reader of the output has enough, or the server has gone.
int run_watch(Client& server, const WatchCommandOptions& options) {
  Watch watch = server.watch({.uris = options.resources, .log_level = options.level});
  while (const auto told = watch.next()) {
    if (told->dropped > 0) complain("watch: notifications came faster than they could be printed");
    const int printed = print(watched_line(told->method, told->params, options.remote.as_json));
    if (printed != kExitOk) return printed;
  }
  if (Interrupts::is_pending()) return kExitInterrupted;
  complain("watch: the server tells no more");
  return kExitFailure;
}

}  // namespace

void add_watch_command(CommandLine& program) {
  const auto options = std::make_shared<WatchCommandOptions>();
  Subcommand command = program.add_subcommand(
      "watch", "Print what an MCP server tells of its changes", kWatchExamples, [options] {
        return with_server(
            "watch", options->remote, {}, {},
            [&](Client& server, const RemoteWords&) { return run_watch(server, *options); });
      });
  add_remote_options(command, options->remote,
                     {.operand = "TARGET", .text = std::string(kTargetText)});
  command.add_repeatable(
      "--resource", Keep::all,
      [options](const std::vector<std::string>& values) { options->resources = values; },
      {.text = "Tell of changes of this resource too. Repeat it for several", .operand = "URI"});
  command.add_option("--level", &options->level,
                     {.text = "Tell of log messages of at least this level",
                      .operand = "debug|info|notice|warning|error|critical|alert|emergency"});
}

}  // namespace sluice
