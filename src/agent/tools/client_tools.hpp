#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "agent/tools/tool_host.hpp"
#include "core/executor.hpp"
#include "json/json.hpp"
#include "sluice/client.hpp"

namespace sluice {

/// The tools of MCP servers. Belongs to the loop of all clients (BackgroundLoop).
///
/// What a running tool says with progress of unknown length is its output, as are log messages of
/// its call, from the level info on. A log message that belongs to no call is output too if nothing
/// but the call is under way over its connection, whoever asks: servers of the legacy era stream so
/// (2025-11-25, Logging). Otherwise it may be about anything, and nobody here hears it. Of a task,
/// another status than before is output too, as a line of its own: `[status: working, half]`.
class ClientTools final : public ToolHost {
 public:
  /// `prefers_tasks`: calls become tasks wherever the server lets them, so that they can be taken
  /// up again. If not, only those do that run as nothing else. `wants_parts`: calls ask for partial
  /// results (AgentOptions::partial_results), which are output.
  explicit ClientTools(Executor& loop, bool prefers_tasks = false, bool wants_parts = false);
  ~ClientTools() override;
  ClientTools(const ClientTools&) = delete;
  ClientTools& operator=(const ClientTools&) = delete;

  /// Adds the tools of a server, in its order. A tool's name for the model is its own, with what
  /// models' APIs do not take replaced by `_`, and with its server's label before it if another
  /// server has a tool of that name. Call it for all servers before the first run.
  void add(AgentServer server, const std::vector<Listed>& listed);

  [[nodiscard]] const std::vector<AgentTool>& tools() const override { return tools_; }
  [[nodiscard]] ToolPlace place_of(const AgentTool& tool) const override {
    const Remote& remote = remote_of(tool);
    return {servers_[remote.server].client.connection().get(), remote.name};
  }
  [[nodiscard]] std::string_view identity_of(const AgentTool& tool) const override {
    return servers_[remote_of(tool).server].identity;
  }
  /// Whether a tool, or what each run offers, has this name.
  [[nodiscard]] bool has_name(const std::string& name) const { return names_.contains(name); }
  std::unique_ptr<ToolCall> start(const AgentTool& tool, ToolRequest request,
                                  std::shared_ptr<ToolCallSink> sink) override;

 private:
  class Call;
  class Running;
  struct Remote {
    std::size_t server;
    std::string name;  // at the server
    bool may_become_task;
  };
  struct Place {
    std::string label;
    std::string identity;
    Client client;
    std::uint64_t listening;  // to what belongs to no call
  };

  [[nodiscard]] const Remote& remote_of(const AgentTool& tool) const {
    return remotes_[static_cast<std::size_t>(&tool - tools_.data())];
  }
  [[nodiscard]] bool may_become_task(const Client& client, const json::object& tool) const;

  Executor* loop_;
  const bool prefers_tasks_;
  const bool wants_parts_;
  std::vector<AgentTool> tools_;
  std::vector<Remote> remotes_;  // of the tools
  std::vector<Place> servers_;
  /// Names in use: those of the tools, and of the run's own.
  std::set<std::string, std::less<>> names_ = {"tool_status", "tool_cancel"};
  std::uint64_t last_number_ = 1;
  std::shared_ptr<Running> running_;  // the calls under way
};

/// What a model is told of the result of a tool: its text; of blocks without text, what they are.
std::string text_for_model(const json::object& result);

}  // namespace sluice
