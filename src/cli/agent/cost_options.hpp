#pragma once

#include <optional>
#include <string>

#include "cli/options/command_line.hpp"
#include "core/error.hpp"
#include "sluice/agent_options.hpp"

namespace sluice {

/// What `sluice agent` is told of costs.
struct CostArguments {
  std::optional<double> most = {};
  std::string price = {};
  std::string reaction_price = {};
};

/// The arguments must outlive the parsing.
void add_cost_options(Subcommand& command, CostArguments& arguments);

/// Takes them into the options of an agent. Errors carry kExitUsage.
Result<void> read_costs(const CostArguments& arguments, bool has_reaction_model,
                        AgentOptions& options);

}  // namespace sluice
