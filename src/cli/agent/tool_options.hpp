#pragma once

#include <string>
#include <vector>

#include "cli/options/command_line.hpp"
#include "core/error.hpp"
#include "sluice/agent_options.hpp"

namespace sluice {

/// What `sluice agent` is told of single tools and their calls.
struct ToolArguments {
  std::vector<std::string> policies = {};
  std::vector<std::string> graces = {};
};

/// The arguments must outlive the parsing.
void add_tool_options(Subcommand& command, ToolArguments& arguments);

/// Takes them into the options of an agent. Errors carry kExitUsage.
Result<void> read_tool_options(const ToolArguments& arguments, AgentOptions& options);

/// What AgentOptions do not name: error kExitUsage, if a policy for single calls is of a tool that
/// is not among `tools`.
Result<void> check_tool_options(const ToolArguments& arguments,
                                const std::vector<AgentTool>& tools);

}  // namespace sluice
