#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/tools/tool_host.hpp"
#include "engine/engine.hpp"
#include "sluice/agent_options.hpp"

namespace sluice {

struct RunHandoff;

/// An agent, as a run has it.
struct RunAgent {
  Engine* engine = nullptr;
  Engine* reaction_engine = nullptr;  // for reactions alone; null: `engine`
  ToolHost* tools = nullptr;
  AgentOptions options = {};
  /// Those that the conversation can be handed over to. Called on the run's loop; empty: none.
  std::function<std::vector<RunHandoff>()> handoffs = {};
  std::shared_ptr<const void> keeps = {};  // owns what this points to
};

/// A way from one agent to another.
struct RunHandoff {
  std::string tool;  // that the model calls for it
  std::string description;
  HandoffOptions::RunningCalls running_calls = {};
  std::string agent;                               // its name
  std::function<std::optional<RunAgent>()> reach;  // nothing: it is gone
};

}  // namespace sluice
