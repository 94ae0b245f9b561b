#include <memory>
#include <string>
#include <unistd.h>
#include <utility>

#include "cli/options/command.hpp"
#include "cli/options/command_line.hpp"
#include "cli/options/exit_code.hpp"
#include "cli/terminal/terminal.hpp"
#include "core/version.hpp"
#include "json/json.hpp"
#include "protocol/revision.hpp"

namespace sluice {
namespace {

int run_version(bool as_json) {
  std::string out;
  if (as_json) {
    json::array names;
    for (const Revision& revision : revisions()) names.emplace_back(revision.name);
    out = to_json(json::object{{"version", kVersion}, {"mcp_revisions", std::move(names)}});
  } else {
    out.append("sluice ").append(kVersion).append("\nMCP");
    for (const Revision& revision : revisions()) out.append(" ").append(revision.name);
  }
  out.push_back('\n');
  return print(out);
}

}  // namespace

void add_version_command(CommandLine& program) {
  const auto as_json = std::make_shared<bool>(false);
  Subcommand command = program.add_subcommand(
      "version", "Print the version and the supported MCP revisions",
      "Examples:\n  sluice version\n  sluice version --json | jq -r .version\n",
      [as_json] { return run_version(*as_json); });
  command.add_flag("--json", *as_json, {.text = "Print the version and the revisions as JSON"});
}

}  // namespace sluice
