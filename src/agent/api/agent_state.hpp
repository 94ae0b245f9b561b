#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "agent/run/run_agent.hpp"
#include "agent/store/store_thread.hpp"
#include "agent/tools/client_tools.hpp"
#include "client/api/background_loop.hpp"
#include "engine/engine.hpp"
#include "sluice/agent.hpp"

namespace sluice::detail {

/// What the handles of an agent and its runs share. Destroying it ends its clients' connections, if
/// nobody else has them. Immutable, but for `tools`, which belongs to the loop, and the hand-offs.
/// Owned by shared pointers.
class AgentState : public std::enable_shared_from_this<AgentState> {
 public:
  /// Throws Error; see Agent.
  AgentState(Model model, AgentOptions options);

  /// Thread-safe. Throws Error; see Agent.
  void add_handoff(const std::shared_ptr<AgentState>& other, HandoffOptions handoff);
  /// The agent for a run.
  RunAgent for_run();

  const std::shared_ptr<BackgroundLoop> background = BackgroundLoop::shared();
  const Model model;
  const AgentOptions options;
  const std::unique_ptr<StoreThread> store;  // null: runs are not kept
  ClientTools tools;

 private:
  std::mutex mutex_;
  std::vector<RunHandoff> handoffs_;
};

}  // namespace sluice::detail
