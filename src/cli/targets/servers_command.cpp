#include <memory>
#include <string>
#include <unistd.h>

#include "cli/options/command.hpp"
#include "cli/options/command_line.hpp"
#include "cli/options/exit_code.hpp"
#include "cli/targets/process_targets.hpp"
#include "cli/targets/server_report.hpp"
#include "cli/terminal/terminal.hpp"

namespace sluice {
namespace {

constexpr const char* kServersExamples =
    "Examples:\n"
    "  sluice servers\n"
    "  sluice servers --json | jq -r '.servers[].name'\n"
    "\n"
    "The files are those of Claude Code, Claude Desktop, Cursor, VS Code, Gemini CLI, Codex and "
    "OpenCode, which are only read, and our own, which `sluice mcp add` writes. Values of headers "
    "and of variables are not shown.\n";

int run_servers(bool as_json) {
  const FoundServers found = process_servers();
  if (as_json) return print(json_of_servers(found));
  for (const ConfigWarning& warning : found.warnings) complain(warning.describe());
  if (found.servers.empty()) {
    return print("No configuration file names a server. Add one: sluice mcp add NAME URL\n");
  }
  return print(text_of_servers(found, process_places().home, Style::of(STDOUT_FILENO)));
}

}  // namespace

void add_servers_command(CommandLine& program) {
  const auto as_json = std::make_shared<bool>(false);
  Subcommand command =
      program.add_subcommand("servers", "List the MCP servers that configuration files name",
                             kServersExamples, [as_json] { return run_servers(*as_json); });
  command.add_flag("--json", *as_json, {.text = "Print the servers and the warnings as JSON"});
}

}  // namespace sluice
