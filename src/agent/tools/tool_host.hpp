#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/clock.hpp"
#include "json/json.hpp"
#include "sluice/agent_options.hpp"

namespace sluice {

/// A piece of what a running tool writes.
struct ToolChunk {
  std::string text = {};
  json::object content = {};  // a content block of MCP that is no text; then `text` is empty
  std::uint64_t dropped = 0;  // pieces that were lost just before this one
  bool is_restart = false;    // the call was made anew, so what it wrote before may come again
};

/// How a call has ended.
struct ToolEnd {
  /// `unknown`: it was begun, but nobody knows whether it was carried out.
  enum class Status : std::uint8_t { completed, failed, cancelled, rejected, unknown };
  Status status = Status::completed;
  std::string text = {};               // for the model
  json::object result = {};            // CallToolResult, if it has one
  std::vector<ChatImage> images = {};  // of the result, that the model is shown beside `text`
};

std::string_view to_string(ToolEnd::Status status);

/// The end of a call that had begun, and whose own end nobody knows: unknown, or failed if the tool
/// may be called again without harm.
ToolEnd lost_end(const AgentTool& tool, std::string_view why);

/// Hears of a running call. Called on the run's loop, never from within ToolHost::start().
class ToolCallSink {
 public:
  virtual ~ToolCallSink() = default;
  virtual void on_output(ToolChunk chunk) = 0;
  virtual void on_progress(double progress, std::optional<double> total,
                           std::string_view message) = 0;
  /// The call goes on as this task of its server, which ToolHost::start() can take up again.
  virtual void on_task(std::string id) = 0;
  /// Behind what was told so far, ToolHost::start() can take the call up again with this text,
  /// which is secret. Told often.
  virtual void on_position(std::string position) = 0;
  /// Once, last.
  virtual void on_end(ToolEnd end) = 0;
};

/// A running call. Destroying it cancels it, if it has not ended; its sink hears nothing more then.
class ToolCall {
 public:
  virtual ~ToolCall() = default;
  /// Whether to stop reading what the tool writes, so that it is held up.
  virtual void pause(bool /*is_paused*/) {}
  /// Whoever takes the call up again has it from now on: as the task that it has become, or at the
  /// last position that was told. Destroying it does not cancel it then.
  virtual void leave() {}
  /// Until when its server could do nothing because the user was being asked, which is no silence.
  [[nodiscard]] virtual TimePoint asked_until() const { return {}; }
};

/// What a call begins with.
struct ToolRequest {
  json::object arguments = {};
  std::string task = {};  // of its server, whose end is waited for instead; empty: none
  /// Where it is taken up instead; empty: it is made. If that is not possible, it is made anew if
  /// its tool only reads, and has the end of lost_end() otherwise.
  std::string position = {};
  json::object meta = {};  // further members of `_meta`
  /// How long the server of a task may say nothing when its state is asked for; 0: no limit.
  Duration idle_timeout = {};
};

/// What a tool is, whichever host has it and whatever it is called there.
struct ToolPlace {
  const void* server;     // what reaches it, such as a connection
  std::string_view name;  // there; lives as long as the host

  bool operator==(const ToolPlace&) const = default;
};

/// Where an agent's tools are. Belongs to the loop of its runs.
class ToolHost {
 public:
  virtual ~ToolHost() = default;
  /// In an order that does not change, so that a model's cache of its prompt stays valid.
  [[nodiscard]] virtual const std::vector<AgentTool>& tools() const = 0;
  /// Of one of tools().
  [[nodiscard]] virtual ToolPlace place_of(const AgentTool& tool) const = 0;
  /// What the server of one of tools() is known by in another process; lives as long as the host.
  [[nodiscard]] virtual std::string_view identity_of(const AgentTool& tool) const = 0;
  /// Calls one of tools(). Whatever goes wrong is told to the sink.
  virtual std::unique_ptr<ToolCall> start(const AgentTool& tool, ToolRequest request,
                                          std::shared_ptr<ToolCallSink> sink) = 0;
};

}  // namespace sluice
