#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <gtest/gtest.h>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "agent/history/strict_history_test_support.hpp"
#include "agent/run/agent_run_test_support.hpp"
#include "agent/run/agent_simulation_test_support.hpp"
#include "agent/run/kept_run_test_support.hpp"

namespace sluice {

/// The instructions of an agent whose model wants that users and assistants alternate.
inline constexpr const char* kAlternating = "Alternate.";
inline constexpr double kMillion = 1e6;

/// The model for reactions: the bench's model, but whoever is asked can tell.
class RemarkModel final : public Engine {
 public:
  explicit RemarkModel(FakeModel& model) : model_(&model) {}
  Result<std::unique_ptr<Generation>> start(GenerationRequest request,
                                            std::shared_ptr<GenerationSink> sink,
                                            Executor& home) override {
    if (refuses) return fail(kBusy, "too many requests");
    is_asked = true;
    auto begun = model_->start(std::move(request), std::move(sink), home);
    is_asked = false;
    return begun;
  }
  [[nodiscard]] EngineInfo info() const override { return model_->info(); }
  [[nodiscard]] EngineStats stats() const override { return {}; }
  void shutdown() override {}

  bool is_asked = false;
  bool refuses = false;

 private:
  FakeModel* model_;
};

/// A process that has the run.
struct SimulatedLife : RunBench {
  SimulatedLife(std::size_t life, const AgentOptions& options, RunEventsOptions queue,
                bool has_remarks)
      : RunBench(options, queue), number(life), keeper(loop), remarks(model), seen(life) {
    if (has_remarks) reaction_model = &remarks;
    // The run of the bench has no model for reactions yet.
    run = std::make_shared<AgentRun>(loop, events, agent_of(options));
    tools.offered = {{.name = "one"},
                     {.name = "two"},
                     {.name = "three", .server = "there"},
                     {.name = "look", .is_read_only = true}};
  }
  ~SimulatedLife() { run.reset(); }  // it is kept once more
  SimulatedLife(const SimulatedLife&) = delete;
  SimulatedLife& operator=(const SimulatedLife&) = delete;
  /// Of a call that has begun.
  [[nodiscard]] const RunningCall& call(std::size_t index) const {
    return static_cast<const RunningCall&>(*tools.started[index]->sink);
  }
  /// A task that was cancelled goes on until that is kept, but nobody listens.
  [[nodiscard]] bool is_running(std::size_t index) const {
    return !tools.started[index]->is_dropped && call(index).state == RunningCall::State::running;
  }
  [[nodiscard]] std::string result_of(std::size_t index) const {
    return "result-" + std::to_string(number) + "." + std::to_string(index) + ";";
  }
  [[nodiscard]] bool answers() const {
    return !model.asked.empty() && model.asked.back()->sink != nullptr;
  }
  /// Whether a tool has broken the answer off before the one that is asked for now, which was not
  /// only to react. It goes on as the same turn.
  [[nodiscard]] bool owes_answer() const {
    return model.asked.size() > 1 && model.asked[model.asked.size() - 2]->is_cancelled &&
           !is_reaction && !is_turn_cancelled;
  }
  [[nodiscard]] bool is_last_answer() const {
    return !model.asked.empty() && model.asked.back()->request.tools.empty();
  }

  const std::size_t number;
  FakeKeeper keeper;
  RemarkModel remarks;
  SimulatedEvents seen;
  std::map<std::size_t, std::uint64_t> written;  // chunks, by the index of the call
  std::set<std::size_t> ended;                   // by their tools
  std::size_t checked = 0;                       // of the calls that have begun
  TimePoint began_at{};
  Duration held_up{};  // by a store that had not kept what happened, or by who takes the events
  std::uint32_t turns = 0;
  std::uint64_t spent_tokens = 0;
  double spent_cost = 0;            // of a million tokens
  TokenPrice price;                 // of the answer that is given
  bool is_reaction = false;         // that answer
  bool is_remark = false;           // the same, of the other model
  bool has_failed_remarks = false;  // the model for reactions
  bool is_asked_again = false;      // for a reaction that has failed
  bool was_used_up = false;
  bool may_be_broken_off = false;  // by the user
  bool is_turn_cancelled = false;  // since the model was asked
};

/// What must hold of a simulated run, through all its processes.
class SimulatedRules {
 public:
  using When = ReactionPolicy::When;

  /// `waits`: hand-offs wait for running calls.
  SimulatedRules(const AgentOptions& options, bool waits) : options_(options), waits_(waits) {}

  [[nodiscard]] bool is_time_over(const SimulatedLife& life, TimePoint at) const {
    return options_.budget.time > Duration::zero() && at >= life.began_at + options_.budget.time;
  }

  /// The model is asked.
  void check_asked(SimulatedLife& life, const FakeModel::Asked& asked) {
    const auto& messages = asked.request.messages;
    const bool alternates = messages.front().role == "system"
                                ? messages.front().content == kAlternating
                                : options_.alternates;
    EXPECT_EQ(why_not_strict(messages, alternates), "");
    std::size_t models_at_work = 0;
    for (const auto& each : life.model.asked) models_at_work += each->sink != nullptr ? 1 : 0;
    EXPECT_EQ(models_at_work, 1U);
    EXPECT_LE(life.run->turns(), options_.budget.turns + 1 + asked_again);
    EXPECT_LE(life.run->reactions(), options_.budget.reactions);
    EXPECT_LE(life.run->running(), options_.max_running);
    const bool is_last = asked.request.tools.empty();
    EXPECT_TRUE(is_last || !is_time_over(life, life.loop.clock().now()))
        << "the model is offered tools beyond the time";
    const bool is_same_turn = life.run->turns() == std::exchange(life.turns, life.run->turns());
    const bool is_reaction = is_same_turn && !life.owes_answer();
    check_shown(life, messages, is_reaction);
    check_spending(life, is_reaction, is_last);
    life.is_reaction = is_reaction;
    life.is_remark = life.remarks.is_asked;
    EXPECT_TRUE(!life.is_remark || (is_reaction && !life.has_failed_remarks));
    life.may_be_broken_off = life.is_turn_cancelled = false;
  }

  /// What running tools have written is shown as their policies want it, and once.
  void check_shown(SimulatedLife& life, const std::vector<ChatMessage>& messages,
                   bool is_reaction) {
    std::set<std::string> in_messages;
    bool has_cause = std::exchange(life.is_asked_again, false);
    for (const ShownChunk& shown : shown_chunks(messages)) {
      EXPECT_TRUE(in_messages.insert(shown.chunk).second) << shown.chunk << " is shown twice";
      if (!shown_.insert(shown.chunk).second) continue;
      const auto& calls = life.tools.started;
      const auto index = std::ranges::find_if(calls, [&](const auto& each) {
        return static_cast<const RunningCall&>(*each->sink).asked.id == shown.call_id;
      });
      ASSERT_NE(index, calls.end()) << shown.chunk << " is of no call of this process";
      const When when = static_cast<const RunningCall&>(*(*index)->sink).trigger.policy().when;
      EXPECT_NE(when, When::pass_through) << shown.chunk;
      EXPECT_TRUE(when != When::on_demand || shown.is_in_placeholder) << shown.chunk;
      has_cause = has_cause || when != When::on_demand;
    }
    EXPECT_TRUE(has_cause || !is_reaction) << "a reaction to nothing";
    std::string all;
    for (const ChatMessage& message : messages) all += message.content;
    for (std::size_t i = 0; i < life.tools.started.size(); ++i) {
      const std::string result = life.result_of(i);
      const std::size_t at = all.find(result);
      if (at == std::string::npos) continue;
      EXPECT_EQ(all.find(result, at + 1), std::string::npos) << result << " is shown twice";
    }
  }

  /// What is used up allows one more answer, without tools.
  void check_spending(SimulatedLife& life, bool is_reaction, bool is_last) const {
    const RunBudget& budget = options_.budget;
    const bool is_used_up = (budget.tokens != 0 && life.spent_tokens >= budget.tokens) ||
                            (budget.cost > 0 && life.spent_cost / kMillion >= budget.cost);
    if (is_used_up) {
      EXPECT_TRUE(is_last) << "the model is offered tools beyond the budget";
      EXPECT_FALSE(std::exchange(life.was_used_up, true)) << "the last answer was given";
    }
    life.price = options_.price.value_or(TokenPrice());
    if (is_reaction && !is_last && options_.reaction_price && !life.has_failed_remarks) {
      life.price = *options_.reaction_price;
    }
  }

  /// The loop has done what there is to do.
  void check_rest(SimulatedLife& life) {
    check_begun(life);
    if (life.run->is_over()) return;
    const TimePoint now = life.loop.clock().now();
    if (options_.budget.time > Duration::zero()) {
      EXPECT_LT(now, life.began_at + options_.budget.time + options_.budget.last_answer +
                         options_.grace + life.held_up)
          << "the run is longer than its time";
    }
    if (life.answers()) return;
    if (!life.model.asked.empty() && life.model.asked.back()->is_cancelled) check_broken_off(life);
    if (life.is_last_answer() || !options_.detaches || waits_ || life.keeper.is_waiting()) return;
    for (std::size_t i = 0; i < life.tools.started.size(); ++i) {
      if (life.is_running(i)) check_reactions(life, i);
    }
  }

  /// The model is at rest, so there is nothing that it should have reacted to.
  void check_reactions(const SimulatedLife& life, std::size_t index) const {
    const RunningCall& call = life.call(index);
    const ReactionPolicy& policy = call.trigger.policy();
    if (policy.when == When::on_demand) {
      EXPECT_TRUE(life.run->history().is_detached(call.asked.id))
          << "the model cannot ask for the output of " << call.asked.id;
    }
    const bool is_unlimited = policy.min_interval == Duration::zero() &&
                              policy.max_reactions == 0 && policy.max_reaction_tokens == 0 &&
                              life.run->reactions() < options_.budget.reactions;
    const bool reacts_at_once = policy.when == When::on_idle || policy.when == When::every_chunk;
    const auto written = life.written.find(index);
    if (!is_unlimited || !reacts_at_once || written == life.written.end()) return;
    const std::string last = simulated_chunk(life.number, call.asked.id, written->second - 1);
    EXPECT_TRUE(shown_.contains(last)) << "no reaction to " << last;
  }

  /// The last answer was broken off: by somebody who may.
  void check_broken_off(const SimulatedLife& life) const {
    const auto may_break_off = [](const auto& started) {
      const auto& policy = static_cast<const RunningCall&>(*started->sink).trigger.policy();
      return policy.interrupts && policy.when != When::on_idle && policy.when != When::on_demand &&
             policy.when != When::pass_through;
    };
    EXPECT_TRUE(life.may_be_broken_off || is_time_over(life, life.loop.clock().now()) ||
                life.is_last_answer() || std::ranges::any_of(life.tools.started, may_break_off))
        << "nobody has broken the answer off";
  }

  /// Nothing with effects is done twice, whichever process does it.
  void check_begun(SimulatedLife& life) {
    for (; life.checked < life.tools.started.size(); ++life.checked) {
      const RunningCall& call = life.call(life.checked);
      const std::string& task = life.tools.started[life.checked]->task;
      EXPECT_FALSE(is_time_over(life, call.started_at)) << "a call begins beyond the time";
      if (!task.empty()) {
        EXPECT_EQ(task, tasks[call.asked.id]);
      } else if (!call.tool->is_read_only) {
        EXPECT_TRUE(effects_.insert(call.asked.id).second) << call.asked.id << " is done twice";
      }
    }
  }

  void check_end(const SimulatedLife& life) const {
    for (const auto& running : life.tools.started) EXPECT_TRUE(running->is_dropped);
    for (const auto& asked : life.model.asked) {
      EXPECT_TRUE(asked->sink == nullptr || asked->is_cancelled);
    }
    // What was written was taken, once, or is said to be missing.
    std::uint64_t written = 0;
    std::uint64_t taken = 0;
    for (const auto& [index, count] : life.written) written += count;
    for (const auto& [id, call] : life.seen.calls()) taken += call.next;
    EXPECT_EQ(taken, written);
    EXPECT_EQ(life.loop.timers(), 0U);
    // Whoever goes on with the run has the ends of all calls.
    const auto& messages = life.run->history().messages();
    for (const ChatMessage& message : messages) {
      for (const ChatToolCall& call : message.tool_calls) {
        EXPECT_TRUE(shown_end(messages, call.id)) << call.id << " still runs";
      }
    }
    check_ends(life, messages);
    // So has the model, unless the run says why not.
    const bool says_why_not =
        life.seen.status() != "completed" && life.seen.reason() != "max_output_tokens";
    if (says_why_not || life.is_turn_cancelled || life.model.asked.empty()) return;
    check_ends(life, life.model.asked.back()->request.messages);
  }
  static void check_ends(const SimulatedLife& life, const std::vector<ChatMessage>& messages) {
    for (const auto& [id, call] : life.seen.calls()) {
      ASSERT_TRUE(call.end) << id << " has no end";
      const auto end = shown_end(messages, id);
      EXPECT_TRUE(end && end->contains(*call.end)) << "the end of " << id << " is not shown";
    }
  }

  /// The process ends.
  void check_last(const SimulatedLife& life) {
    // Perhaps a model was to be shown them that has refused.
    for (ShownChunk& each : shown_chunks(life.run->history().messages())) {
      shown_.insert(std::move(each.chunk));
    }
  }

  std::uint32_t asked_again = 0;             // answers that a process did not live to see
  std::map<std::string, std::string> tasks;  // by the call

 private:
  const AgentOptions options_;
  const bool waits_;
  std::set<std::string> effects_;  // calls that were carried out
  std::set<std::string> shown_;    // chunks
};

}  // namespace sluice
