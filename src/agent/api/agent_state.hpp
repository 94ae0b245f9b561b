#pragma once

#include <memory>

#include "agent/store/store_thread.hpp"
#include "agent/tools/client_tools.hpp"
#include "client/api/background_loop.hpp"
#include "engine/engine.hpp"
#include "sluice/agent.hpp"

namespace sluice::detail {

/// What the handles of an agent and its runs share. Destroying it ends its clients' connections, if
/// nobody else has them. Immutable, but for `tools`, which belongs to the loop.
class AgentState {
 public:
  /// Throws Error; see Agent.
  AgentState(Model model, AgentOptions options);

  const std::shared_ptr<BackgroundLoop> background = BackgroundLoop::shared();
  const Model model;
  const AgentOptions options;
  const std::unique_ptr<StoreThread> store;  // null: runs are not kept
  ClientTools tools;
};

}  // namespace sluice::detail
