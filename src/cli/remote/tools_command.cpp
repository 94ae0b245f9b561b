#include <memory>
#include <string>
#include <unistd.h>
#include <vector>

#include "cli/options/command.hpp"
#include "cli/options/command_line.hpp"
#include "cli/remote/listing.hpp"
#include "cli/remote/remote_server.hpp"
#include "cli/terminal/terminal.hpp"

namespace sluice {
namespace {

constexpr const char* kToolsExamples =
    "Examples:\n"
    "  sluice tools http://127.0.0.1:8080/mcp\n"
    "  sluice tools notes --json | jq '.tools[].inputSchema'\n"
    "  sluice tools -- npx -y some-server\n"
    "\n"
    "A line has the tool's name, its arguments and their types, and the first sentence of its "
    "description. Arguments that may be left out have a question mark.\n";

int run_tools(Client& server, bool as_json) {
  const std::vector<Listed> tools = server.tools();
  if (as_json) return print(json_listing("tools", tools));
  if (tools.empty()) complain("tools: the server has none");
  return print(listing_of(tools, Style::of(STDOUT_FILENO)));
}

}  // namespace

void add_tools_command(CommandLine& program) {
  const auto options = std::make_shared<RemoteOptions>();
  Subcommand command =
      program.add_subcommand("tools", "List the tools of an MCP server", kToolsExamples, [options] {
        return with_server("tools", *options, {}, {}, [&](Client& server, const RemoteWords&) {
          return run_tools(server, options->as_json);
        });
      });
  add_remote_options(command, *options, {.operand = "TARGET", .text = std::string(kTargetText)});
}

}  // namespace sluice
