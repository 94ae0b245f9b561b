// Runs whose model, tools, user and faults come from a seed: tools and models fail, servers die,
// the process of the run ends and another one goes on with what was kept. After every event holds
// what must hold of each run: the model is shown a history that a strict API takes, and the end of
// each call; it reacts when the policies want it and only then; the user gets each chunk once and
// in its order, or is told that it is missing; budgets are kept; whatever begins also ends; nothing
// with effects is done twice; and nothing follows the end. A failure names its seed:
// SLUICE_AGENT_FIRST and SLUICE_AGENT_SEEDS repeat it.

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <gtest/gtest.h>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "agent/run/agent_run_test_support.hpp"
#include "agent/run/agent_simulation_test_support.hpp"
#include "agent/run/simulated_rules_test_support.hpp"
#include "json/members.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;
using When = ReactionPolicy::When;

#ifdef SLUICE_SANITIZED
constexpr std::size_t kSeeds = 1000;  // each takes ten times as long
#else
constexpr std::size_t kSeeds = 10'000;
#endif
/// Every so many seeds are played twice.
constexpr std::size_t kReplayed = 20;

std::size_t seed_option(const char* name, std::size_t otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

class SimulatedRun {
 public:
  SimulatedRun(std::uint64_t seed, bool is_recorded)
      : random_(seed),
        is_recorded_(is_recorded),
        options_(any_options()),
        queue_(any_queue()),
        rule_(any_rule()),
        is_kept_(one_in(4)),
        has_remarks_(one_in(3)),
        rules_(options_, rule_ == HandoffOptions::RunningCalls::wait) {
    begin_life();
    life_->start();
    settle();
  }

  void play() {
    const std::size_t steps = 10 + below(120);
    for (std::size_t i = 0; i < steps && !failed(); ++i) step();
    // From now on everything goes well.
    life_->model.refuses = life_->remarks.refuses = false;
    life_->keeper.keeps_at_once = true;
    for (int round = 0; round < 400 && !life_->seen.is_done() && !failed(); ++round) {
      life_->keeper.finish();
      take();
      for (const std::string& id : std::exchange(life_->seen.unapproved, {})) {
        (void)life_->run->approve(id);
      }
      for (std::size_t i = 0; i < life_->tools.started.size(); ++i) end_tool(i);
      settle();
      if (life_->answers()) end_answer(Completion::Reason::stop);
      pass(100ms);
    }
    take();
    EXPECT_TRUE(life_->run->is_over()) << "it hangs";
    EXPECT_TRUE(life_->seen.is_done()) << "no last event";
    rules_.check_end(*life_);
  }
  /// What the user was told, if it is recorded.
  [[nodiscard]] const std::string& transcript() const { return transcript_; }

 private:
  std::size_t below(std::size_t limit) { return random_() % limit; }
  bool one_in(std::size_t n) { return below(n) == 0; }
  static bool failed() { return ::testing::Test::HasFailure(); }

  ReactionPolicy any_policy() {
    using enum When;
    ReactionPolicy policy;
    policy.when = std::array{pass_through, every_chunk, every_n, debounce,
                             match,        on_demand,   on_idle}[below(7)];
    policy.every = static_cast<std::uint32_t>(1 + below(3));
    policy.quiet = std::chrono::milliseconds(50 * below(4));
    policy.pattern = "[37]>";
    policy.max_bytes = 1 + below(80);
    policy.interrupts = one_in(4);
    policy.min_interval = std::chrono::milliseconds(100 * below(3));
    policy.max_reactions = one_in(2) ? 0 : static_cast<std::uint32_t>(1 + below(4));
    policy.max_reaction_tokens = one_in(2) ? 0 : 1 + below(5);
    return policy;
  }

  /// Whole numbers, so that sums are exact.
  TokenPrice any_price() {
    return {.prompt = static_cast<double>(below(4)), .completion = static_cast<double>(below(9))};
  }

  AgentOptions any_options() {
    AgentOptions options;
    options.alternates = one_in(2);
    options.policy = any_policy();
    options.policies = {{"two", any_policy()}};
    options.budget.turns = static_cast<std::uint32_t>(1 + below(12));
    options.budget.reactions = static_cast<std::uint32_t>(below(8));
    if (one_in(4)) options.budget.tokens = 30 + below(100);
    if (one_in(4)) {
      // Half a token's price more, so that rounding decides nothing.
      options.budget.cost = (static_cast<double>(30 + below(300)) + 0.5) / kMillion;
      options.price = any_price();
      if (one_in(2)) options.reaction_price = any_price();
    }
    if (one_in(4)) options.budget.time = std::chrono::seconds(1 + below(10));
    if (one_in(2)) options.budget.last_answer = 500ms;
    options.max_running = 1 + below(3);
    options.max_running_of_server = 1 + below(2);
    options.max_calls_of_answer = 1 + below(3);
    options.max_inputs = 3;
    options.idle_timeout = one_in(2) ? 2s : 0s;
    options.call_timeout = one_in(2) ? 5s : 0s;
    options.grace = std::chrono::milliseconds(below(2) * 500);
    options.allows_duplicates = one_in(4);
    options.detaches = !one_in(4);
    options.cancels_on_interrupt = one_in(4);
    if (one_in(3)) {
      options.approval = [](const AgentTool& tool, const json::object&) {
        return tool.name == "three" ? std::string("it is there") : std::string();
      };
    }
    return options;
  }

  HandoffOptions::RunningCalls any_rule() {
    using enum HandoffOptions::RunningCalls;
    return std::array{transfer, wait, cancel}[below(3)];
  }

  /// To an agent that differs in its name, its instructions, its policy and what its model takes.
  RunHandoff handoff() {
    return {.tool = "to_other",
            .description = "",
            .running_calls = rule_,
            .agent = "other",
            .reach = [this]() -> std::optional<RunAgent> {
              if (one_in(10)) return std::nullopt;
              AgentOptions options = options_;
              options.name = "other";
              options.policy = any_policy();
              options.alternates = one_in(2);
              if (options.alternates != options_.alternates || one_in(2)) {
                options.instructions = options.alternates ? kAlternating : "Be kind.";
              }
              return life_->agent_of(std::move(options));
            }};
  }

  RunEventsOptions any_queue() {
    using enum OutputOverflow;
    return {.overflow = std::array{block, coalesce, drop_oldest}[below(3)],
            .max_call_events = 1 + below(10),
            .max_model_events = 1 + below(10)};
  }

  // --- the processes of the run
  // -------------------------------------------------------------------

  void begin_life() {
    const std::size_t number = life_ == nullptr ? 1 : life_->number + 1;
    life_ = std::make_unique<SimulatedLife>(number, options_, queue_, has_remarks_);
    life_->model.streams_calls = one_in(2);
    life_->model.on_asked = [this](FakeModel::Asked& asked) { rules_.check_asked(*life_, asked); };
    life_->handoffs = [this] { return std::vector{handoff()}; };
    life_->keeper.keeps_at_once = one_in(2);
    if (is_kept_) life_->run->keep_with(life_->keeper);
  }

  /// The process ends, wherever it is. Another one goes on with what is kept of the run.
  void restart() {
    if (one_in(2)) take();
    if (!is_kept_) {
      state_ = life_->run->state();
    } else if (!life_->keeper.kept.empty()) {
      state_ = life_->keeper.kept;
    }
    if (state_.empty()) return;
    rules_.check_last(*life_);
    begin_life();
    const json::object state = parse_json(to_json(state_)).value().get_object();
    const Result<void> restored = life_->run->restore(state);
    ASSERT_TRUE(restored) << restored.error().message;
    std::optional<std::string> input;
    if (one_in(4)) {
      input = "go on";
    } else {
      const json::object& usage = state.at("usage").as_object();
      life_->spent_tokens = usage.at("prompt").to_number<std::uint64_t>() +
                            usage.at("completion").to_number<std::uint64_t>();
      life_->spent_cost = usage.at("cost").to_number<double>() * kMillion;
      life_->turns = life_->run->turns();
    }
    // An answer that was being given is asked for again, which counts.
    rules_.asked_again = input ? 0 : rules_.asked_again + 1;
    life_->run->resume(std::move(input));
    settle();
  }

  // --- what happens
  // -------------------------------------------------------------------------------

  void step() {
    switch (below(25)) {
      case 0:
      case 1:
      case 2:
      case 3:
      case 4:
      case 5:
        model_speaks();
        break;
      case 6:
      case 7:
      case 8:
      case 9:
      case 10:
      case 11:
        if (!life_->tools.started.empty()) tool_speaks(below(life_->tools.started.size()));
        break;
      case 12:
      case 13:
        if (!life_->tools.started.empty()) end_tool(below(life_->tools.started.size()));
        break;
      case 14:
      case 15:
        pass(std::chrono::milliseconds(10 << below(9)));
        break;
      case 16:
      case 17:
        take();
        break;
      case 18:
      case 19:
        user_acts();
        break;
      case 20:
        something_fails();
        break;
      default:
        life_->keeper.finish();
        settle();
    }
  }

  void something_fails() {
    switch (below(6)) {
      case 0:
      case 1:
        return restart();
      case 2:  // a server, with all that runs there
        for (std::size_t i = 0; i < life_->tools.started.size(); ++i) {
          if (life_->call(i).tool->server == "there") end_tool(i, ToolEnd::Status::unknown);
        }
        return;
      case 3:
        life_->remarks.refuses = !life_->remarks.refuses;
        return;
      case 4:
        life_->model.refuses = one_in(3);
        return;
      default:
        if (life_->answers()) end_answer(Completion::Reason::error);
    }
  }

  void model_speaks() {
    FakeModel& model = life_->model;
    if (!life_->answers() || model.last().is_full) return;
    switch (below(8)) {
      case 0:
      case 1:
        model.say(one_in(4) ? "[[pass]]" : "word ");
        break;
      case 2:
        model.think("hm ");
        break;
      case 3:
      case 4:
      case 5: {
        static constexpr std::array<const char*, 7> kNames = {
            "one", "two", "three", "look", "tool_status", "tool_cancel", "to_other"};
        json::object arguments{{"n", below(3)}};
        if (one_in(2)) arguments["call_id"] = "call_" + std::to_string(1 + below(4));
        model.call(one_in(12) ? "none" : kNames[below(7)], std::move(arguments));
        break;
      }
      default:
        end_answer(one_in(30) ? Completion::Reason::length : Completion::Reason::stop);
    }
  }

  void end_answer(Completion::Reason reason) {
    const auto tokens = static_cast<std::uint32_t>(1 + below(3));
    SimulatedLife& life = *life_;
    life.spent_tokens += FakeModel::kPromptTokens + tokens;
    life.spent_cost +=
        FakeModel::kPromptTokens * life.price.prompt + tokens * life.price.completion;
    if (life.is_remark && reason == Completion::Reason::error) {
      life.has_failed_remarks = life.is_asked_again = true;
    }
    life.model.end(reason, tokens);
  }

  /// As long as its call runs, also behind the last answer.
  void tool_speaks(std::size_t index) {
    const auto& running = *life_->tools.started[index];
    const std::string& id = life_->call(index).asked.id;
    const std::size_t chunks = 1 + below(5);
    for (std::size_t i = 0; i < chunks && life_->is_running(index) && !running.is_paused; ++i) {
      life_->tools.write(index, simulated_chunk(life_->number, id, life_->written[index]++));
    }
    if (!life_->is_running(index) || running.is_paused) return;
    if (one_in(5)) running.sink->on_progress(1, 2, "half");
    if (one_in(20) && rules_.tasks.emplace(id, "task of " + id).second) {
      running.sink->on_task(rules_.tasks[id]);
    }
  }

  void end_tool(std::size_t index) {
    using enum ToolEnd::Status;
    end_tool(index, std::array{completed, completed, completed, failed, unknown}[below(5)]);
  }
  void end_tool(std::size_t index, ToolEnd::Status status) {
    if (!life_->is_running(index) || !life_->ended.insert(index).second) return;
    life_->tools.end(index, life_->result_of(index), status);
  }

  void user_acts() {
    using enum RunInput::When;
    SimulatedLife& life = *life_;
    switch (below(10)) {
      case 0:
      case 1:
      case 2: {
        const RunInput::When when = std::array{asap, when_idle, silent, interrupt}[below(4)];
        if (life.run->inject({.text = "input", .when = when}) && when == interrupt) {
          life.may_be_broken_off = true;
        }
        break;
      }
      case 3:
        (void)life.run->cancel_call("call_" + std::to_string(1 + below(5)));
        break;
      case 4:
        if (!one_in(3)) return;
        life.may_be_broken_off = life.is_turn_cancelled = true;
        life.run->cancel_turn();
        break;
      case 5:
        if (!one_in(6)) return;
        life.may_be_broken_off = true;
        life.run->cancel();
        break;
      default:
        if (life.seen.unapproved.empty()) return;
        if (one_in(3)) {
          (void)life.run->reject(*life.seen.unapproved.begin(), "no");
        } else {
          (void)life.run->approve(*life.seen.unapproved.begin());
        }
        life.seen.unapproved.erase(life.seen.unapproved.begin());
    }
  }

  void take() {
    settle();
    while (auto event = life_->events.poll()) {
      life_->seen.check(*event);
      if (is_recorded_) record(*event);
    }
    settle();
  }

  void record(const AgentEvent& event) {
    json::object told = to_object(event, "run");
    // The only thing that the calendar says.
    if (json::value* const response = told.if_contains("response")) {
      response->as_object().erase("created_at");
    }
    transcript_ += to_json(told) + "\n";
  }

  void pass(Duration time) {
    settle();
    const auto is_held_up = [this] {
      return life_->events.is_full() || life_->keeper.is_waiting();
    };
    const bool was_held_up = is_held_up();
    const TimePoint until = life_->loop.clock().now() + time;
    life_->loop.advance(time);
    if (was_held_up || is_held_up()) life_->held_up += time;
    EXPECT_EQ(life_->loop.clock().now(), until) << "the run wakes again and again for nothing";
    rules_.check_rest(*life_);
  }

  void settle() {
    life_->loop.run();
    rules_.check_rest(*life_);
  }

  std::mt19937_64 random_;
  const bool is_recorded_;
  const AgentOptions options_;
  const RunEventsOptions queue_;
  const HandoffOptions::RunningCalls rule_;
  const bool is_kept_;
  const bool has_remarks_;
  SimulatedRules rules_;
  json::object state_;  // that was kept last
  std::string transcript_;
  std::unique_ptr<SimulatedLife> life_;
};

TEST(AgentSimulation, WhatMustHoldHoldsForEverySeed) {
  const std::size_t first = seed_option("SLUICE_AGENT_FIRST", 1);
  const std::size_t seeds = seed_option("SLUICE_AGENT_SEEDS", kSeeds);
  for (std::size_t seed = first; seed < first + seeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const bool is_replayed = seed % kReplayed == 0 || seeds == 1;
    SimulatedRun run(seed, is_replayed);
    run.play();
    if (is_replayed) {
      SimulatedRun again(seed, true);
      again.play();
      EXPECT_TRUE(run.transcript() == again.transcript()) << "it takes another course";
    }
    if (::testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace sluice
