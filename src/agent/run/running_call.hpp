#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/history/run_history.hpp"
#include "agent/policy/reaction_trigger.hpp"
#include "agent/tools/tool_host.hpp"
#include "core/clock.hpp"
#include "engine/engine.hpp"

namespace sluice {

/// A call that the model has made, from then until the model has been shown its end.
class RunningCall final : public ToolCallSink {
 public:
  class Owner {
   public:
    virtual ~Owner() = default;
    virtual void on_output(RunningCall& call, ToolChunk chunk) = 0;
    virtual void on_progress(RunningCall& call, double progress, std::optional<double> total,
                             std::string_view message) = 0;
    virtual void on_task(RunningCall& call, std::string id) = 0;
    virtual void on_position(RunningCall& call, std::string position) = 0;
    virtual void on_end(RunningCall& call, ToolEnd end) = 0;
  };
  enum class State : std::uint8_t { unapproved, waiting, running, ended };

  /// `at` has the tool, and is that of the agent `of`.
  RunningCall(Owner& owner, ChatToolCall call, ToolHost& at, std::string of,
              const AgentTool& called, json::object with, ReactionPolicy policy, Duration after)
      : asked(std::move(call)),
        host(&at),
        agent(std::move(of)),
        tool(&called),
        arguments(std::move(with)),
        trigger(std::move(policy)),
        grace(after),
        owner_(&owner) {}

  // ToolCallSink
  void on_output(ToolChunk chunk) override {
    if (owner_ != nullptr) owner_->on_output(*this, std::move(chunk));
  }
  void on_progress(double progress, std::optional<double> total,
                   std::string_view message) override {
    if (owner_ != nullptr) owner_->on_progress(*this, progress, total, message);
  }
  void on_task(std::string id) override {
    if (owner_ != nullptr) owner_->on_task(*this, std::move(id));
  }
  void on_position(std::string at) override {
    if (owner_ != nullptr) owner_->on_position(*this, std::move(at));
  }
  void on_end(ToolEnd outcome) override {
    if (owner_ != nullptr) owner_->on_end(*this, std::move(outcome));
  }
  /// Nobody is told any more.
  void leave() { owner_ = nullptr; }

  /// Where its tool is. Call only if there is still such a tool.
  [[nodiscard]] ToolPlace place() const { return host->place_of(*tool); }
  /// Whether the model is shown what the tool writes, without asking for it.
  [[nodiscard]] bool is_shown() const {
    const ReactionPolicy::When when = trigger.policy().when;
    return when != ReactionPolicy::When::pass_through && when != ReactionPolicy::When::on_demand;
  }
  /// Adds to what the model has not seen; of more than `limit` bytes only the end is kept.
  void add_unseen(std::string_view text, std::uint64_t number, std::size_t limit);
  /// The same of an image; of more than `most` only the last ones are kept.
  void add_unseen(ChatImage image, std::size_t most);
  /// Takes what was written and not shown for something else than what comes now.
  void begin_anew();

  const ChatToolCall asked;
  ToolHost* const host;
  const std::string agent;  // that has made the call
  const AgentTool* const tool;
  json::object arguments;  // that the tool gets
  ReactionTrigger trigger;
  const Duration grace;         // how long it may go on after the last answer
  bool has_own_policy = false;  // that was set for this call alone
  State state = State::waiting;
  bool is_marked = false;        // it is to be kept as begun, and then to begin
  bool is_recorded = false;      // it is kept as begun
  std::string task = {};         // that its server has made of it; empty: none
  std::string position = {};     // where it is to be taken up; empty: nowhere
  bool can_be_taken_up = false;  // at a position that was told
  bool is_in_snapshot = false;   // from which somebody may take it up
  TimePoint position_kept_at{};
  std::unique_ptr<ToolCall> running = {};
  std::optional<ToolEnd> end = {};  // which the model has not been shown
  std::uint64_t chunks = 0;         // so far; the next one has this number
  std::string unseen = {};          // the end of what was written and not shown
  std::size_t cut = 0;              // bytes that are missing before it
  std::optional<OutputRange> unseen_range = {};
  std::vector<ChatImage> unseen_images = {};
  std::string tail = {};  // the end of what was written, for tool_status
  TimePoint started_at{};
  TimePoint heard_at{};
  bool is_paused = false;
  bool is_exhausted = false;  // there are no further reactions, which was told

 private:
  Owner* owner_;
};

}  // namespace sluice
