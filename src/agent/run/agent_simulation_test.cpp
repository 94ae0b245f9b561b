// Runs whose model, tools, user and faults come from a seed. After every event holds what must hold
// of each run: the model is shown a history that a strict API takes, the user gets each chunk once
// and in its order, budgets are kept, whatever begins also ends, nothing is done twice, and nothing
// follows the end. A failure names its seed: SLUICE_AGENT_FIRST and SLUICE_AGENT_SEEDS repeat it.

#include <array>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <gtest/gtest.h>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "agent/history/strict_history_test_support.hpp"
#include "agent/run/agent_run_test_support.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;

#ifdef SLUICE_SANITIZED
constexpr std::size_t kSeeds = 1000;  // each takes ten times as long
#else
constexpr std::size_t kSeeds = 10'000;
#endif

/// The instructions of an agent whose model wants that users and assistants alternate.
constexpr const char* kAlternating = "Alternate.";
constexpr double kMillion = 1e6;

std::size_t seed_option(const char* name, std::size_t otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

class SimulatedRun {
 public:
  explicit SimulatedRun(std::uint64_t seed)
      : random_(seed), options_(any_options()), bench_(options_, any_queue()) {
    bench_.tools.offered = {{.name = "one"}, {.name = "two"}, {.name = "three", .server = "there"}};
    bench_.model.streams_calls = one_in(2);
    bench_.model.on_asked = [this](FakeModel::Asked& asked) { check_history(asked); };
    bench_.handoffs = [this] { return std::vector{handoff()}; };
  }

  void play() {
    bench_.start();
    const std::size_t steps = 10 + below(120);
    for (std::size_t i = 0; i < steps && !failed(); ++i) step();
    // From now on everything goes well.
    for (int round = 0; round < 400 && !bench_.run->is_over() && !failed(); ++round) {
      take();
      for (const auto& [id, arguments] : unapproved_) (void)bench_.run->approve(id);
      unapproved_.clear();
      for (std::size_t i = 0; i < bench_.tools.started.size(); ++i) end_tool(i);
      bench_.loop.run();
      if (answers()) end_answer(Completion::Reason::stop);
      bench_.loop.advance(100ms);
    }
    take();
    EXPECT_TRUE(bench_.run->is_over()) << "it hangs";
    EXPECT_TRUE(is_done_) << "no last event";
    check_end();
  }

 private:
  std::size_t below(std::size_t limit) { return random_() % limit; }
  bool one_in(std::size_t n) { return below(n) == 0; }
  static bool failed() { return ::testing::Test::HasFailure(); }

  ReactionPolicy any_policy() {
    using enum ReactionPolicy::When;
    ReactionPolicy policy;
    policy.when = std::array{pass_through, every_chunk, every_n, debounce,
                             match,        on_demand,   on_idle}[below(7)];
    policy.every = static_cast<std::uint32_t>(1 + below(3));
    policy.quiet = std::chrono::milliseconds(50 * below(4));
    policy.pattern = "[37]";
    policy.max_bytes = 1 + below(20);
    policy.interrupts = one_in(4);
    policy.min_interval = std::chrono::milliseconds(100 * below(3));
    policy.max_reactions = static_cast<std::uint32_t>(below(5));
    policy.max_reaction_tokens = below(6);
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

  /// To an agent that differs in its name, its instructions, its policy and what its model takes.
  RunHandoff handoff() {
    using enum HandoffOptions::RunningCalls;
    return {.tool = "to_other",
            .description = "",
            .running_calls = std::array{transfer, wait, cancel}[below(3)],
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
              return bench_.agent_of(std::move(options));
            }};
  }

  RunEventsOptions any_queue() {
    return {.overflow = one_in(2) ? OutputOverflow::block : OutputOverflow::coalesce,
            .max_call_events = 1 + below(10),
            .max_model_events = 1 + below(10)};
  }

  [[nodiscard]] bool answers() const {
    return !bench_.model.asked.empty() && bench_.model.asked.back()->sink != nullptr;
  }

  void step() {
    switch (below(12)) {
      case 0:
      case 1:
      case 2:
        model_speaks();
        break;
      case 3:
      case 4:
      case 5:
        if (!bench_.tools.started.empty()) tool_speaks(below(bench_.tools.started.size()));
        break;
      case 6:
        if (!bench_.tools.started.empty()) end_tool(below(bench_.tools.started.size()));
        break;
      case 7:
        bench_.loop.advance(std::chrono::milliseconds(10 << below(9)));
        break;
      case 8:
        take();
        break;
      case 9:
        user_acts();
        break;
      default:
        bench_.loop.run();
    }
  }

  void model_speaks() {
    if (!answers() || bench_.model.last().is_full) return;
    switch (below(8)) {
      case 0:
      case 1:
        bench_.model.say(one_in(4) ? "[[pass]]" : "word ");
        break;
      case 2:
        bench_.model.think("hm ");
        break;
      case 3:
      case 4:
      case 5: {
        static constexpr std::array<const char*, 6> kNames = {
            "one", "two", "three", "tool_status", "tool_cancel", "to_other"};
        json::object arguments{{"n", below(3)}};
        if (one_in(2)) arguments["call_id"] = "call_" + std::to_string(1 + below(4));
        bench_.model.call(one_in(12) ? "none" : kNames[below(6)], std::move(arguments));
        break;
      }
      default:
        end_answer(one_in(30) ? Completion::Reason::length : Completion::Reason::stop);
    }
  }

  void end_answer(Completion::Reason reason) {
    const auto tokens = static_cast<std::uint32_t>(1 + below(3));
    spent_tokens_ += FakeModel::kPromptTokens + tokens;
    spent_cost_ += FakeModel::kPromptTokens * price_.prompt + tokens * price_.completion;
    bench_.model.end(reason, tokens);
  }

  /// A tool may speak while its call runs, and a little while after, if it writes late.
  void tool_speaks(std::size_t index) {
    const auto& running = *bench_.tools.started[index];
    if (running.is_dropped || running.is_paused) return;
    for (std::size_t i = 0; i < 1 + below(5) && !running.is_paused; ++i) {
      const std::string text = std::to_string(written_[index]++) + " ";
      bench_.tools.write(index, text);
    }
    if (one_in(5)) running.sink->on_progress(1, 2, "half");
  }

  void end_tool(std::size_t index) {
    if (bench_.tools.started[index]->is_dropped || !ended_.insert(index).second) return;
    bench_.tools.end(index, "result-" + std::to_string(index) + ";");
  }

  void user_acts() {
    using enum RunInput::When;
    switch (below(10)) {
      case 0:
      case 1:
      case 2:
        (void)bench_.run->inject(
            {.text = "input", .when = std::array{asap, when_idle, silent, interrupt}[below(4)]});
        break;
      case 3:
        (void)bench_.run->cancel_call("call_" + std::to_string(1 + below(5)));
        break;
      case 4:
        if (one_in(3)) bench_.run->cancel_turn();
        break;
      case 5:
        if (one_in(6)) bench_.run->cancel();
        break;
      default:
        if (unapproved_.empty()) return;
        if (one_in(3)) {
          (void)bench_.run->reject(unapproved_.begin()->first, "no");
        } else {
          (void)bench_.run->approve(unapproved_.begin()->first);
        }
        unapproved_.erase(unapproved_.begin());
    }
  }

  // --- what must hold ---------------------------------------------------------------------------

  void check_history(const FakeModel::Asked& asked) {
    const auto& messages = asked.request.messages;
    const bool alternates = messages.front().role == "system"
                                ? messages.front().content == kAlternating
                                : options_.alternates;
    EXPECT_EQ(why_not_strict(messages, alternates), "");
    std::size_t models_at_work = 0;
    for (const auto& each : bench_.model.asked) models_at_work += each->sink != nullptr ? 1 : 0;
    EXPECT_EQ(models_at_work, 1U);
    EXPECT_LE(bench_.run->turns(), options_.budget.turns + 1);
    EXPECT_LE(bench_.run->reactions(), options_.budget.reactions);
    EXPECT_LE(bench_.run->running(), options_.max_running);
    check_spending(asked);
    std::string all;
    for (const ChatMessage& message : messages) all += message.content;
    for (std::size_t i = 0; i < bench_.tools.started.size(); ++i) {
      const std::string result = "result-" + std::to_string(i) + ";";
      const std::size_t at = all.find(result);
      if (at == std::string::npos) continue;
      EXPECT_EQ(all.find(result, at + 1), std::string::npos) << result << " is shown twice";
    }
  }

  /// What is used up allows one more answer, without tools.
  void check_spending(const FakeModel::Asked& asked) {
    const RunBudget& budget = options_.budget;
    const bool is_last = asked.request.tools.empty();
    const bool is_used_up = (budget.tokens != 0 && spent_tokens_ >= budget.tokens) ||
                            (budget.cost > 0 && spent_cost_ / kMillion >= budget.cost);
    if (is_used_up) {
      EXPECT_TRUE(is_last) << "the model is offered tools beyond the budget";
      EXPECT_FALSE(std::exchange(was_used_up_, true)) << "the last answer was given";
    }
    const bool is_reaction =
        bench_.run->reactions() > std::exchange(reactions_, bench_.run->reactions());
    price_ = options_.price.value_or(TokenPrice());
    if (is_reaction && !is_last && options_.reaction_price) price_ = *options_.reaction_price;
  }

  void take() {
    for (const AgentEvent& event : bench_.take()) check(event);
  }

  void check(const AgentEvent& event) {
    EXPECT_FALSE(is_done_) << name_of(event.type) << " after the end";
    EXPECT_EQ(event.sequence_number, next_number_++);
    switch (event.type) {
      case AgentEventType::response_created:
        EXPECT_FALSE(is_responding_);
        is_responding_ = true;
        items_ = 0;
        break;
      case AgentEventType::response_completed:
      case AgentEventType::response_incomplete:
      case AgentEventType::response_failed:
        EXPECT_TRUE(is_responding_);
        EXPECT_FALSE(is_item_open_);
        EXPECT_EQ(event.data.at("response").at("output").as_array().size(), items_);
        is_responding_ = false;
        break;
      case AgentEventType::output_item_added:
        EXPECT_TRUE(is_responding_);
        EXPECT_FALSE(is_item_open_);
        EXPECT_EQ(event.output_index, static_cast<std::int32_t>(items_));
        is_item_open_ = true;
        break;
      case AgentEventType::output_item_done:
        EXPECT_TRUE(is_item_open_);
        EXPECT_EQ(event.output_index, static_cast<std::int32_t>(items_++));
        EXPECT_FALSE(is_part_open_);
        is_item_open_ = false;
        break;
      case AgentEventType::content_part_added:
        EXPECT_TRUE(is_item_open_);
        is_part_open_ = true;
        break;
      case AgentEventType::content_part_done:
        EXPECT_TRUE(is_part_open_);
        is_part_open_ = false;
        break;
      case AgentEventType::output_text_delta:
        EXPECT_TRUE(is_part_open_);
        break;
      case AgentEventType::approval_required:
        EXPECT_TRUE(unapproved_.emplace(event.call_id, true).second);
        break;
      case AgentEventType::tool_output_started:
        EXPECT_TRUE(calls_.emplace(event.call_id, Seen{}).second) << "begun twice";
        break;
      case AgentEventType::tool_output_delta:
        check_output(event);
        break;
      case AgentEventType::tool_output_done:
        // A call that never ran has an end too.
        EXPECT_FALSE(std::exchange(calls_[event.call_id].is_done, true)) << "ended twice";
        unapproved_.erase(event.call_id);
        break;
      case AgentEventType::run_done:
        EXPECT_FALSE(is_responding_);
        is_done_ = true;
        break;
      default:
        break;
    }
  }

  void check_output(const AgentEvent& event) {
    const auto found = calls_.find(event.call_id);
    ASSERT_NE(found, calls_.end()) << "output of what was not begun";
    EXPECT_EQ(event.first, found->second.next);
    EXPECT_EQ(event.dropped, 0U);
    std::string expected;
    for (std::uint64_t n = event.first; n <= event.last; ++n) expected += std::to_string(n) + " ";
    EXPECT_EQ(event.text, expected);
    found->second.next = event.last + 1;
  }

  void check_end() {
    for (const auto& [id, call] : calls_) EXPECT_TRUE(call.is_done) << id;
    for (const auto& running : bench_.tools.started) EXPECT_TRUE(running->is_dropped);
    for (const auto& asked : bench_.model.asked) {
      EXPECT_TRUE(asked->sink == nullptr || asked->is_cancelled);
    }
    // What was written was taken, once.
    std::uint64_t written = 0;
    std::uint64_t taken = 0;
    for (const auto& [index, count] : written_) written += count;
    for (const auto& [id, call] : calls_) taken += call.next;
    EXPECT_EQ(taken, written);
    EXPECT_EQ(bench_.loop.timers(), 0U);
  }

  struct Seen {
    std::uint64_t next = 0;  // the number of the next chunk
    bool is_done = false;
  };

  std::mt19937_64 random_;
  AgentOptions options_;
  RunBench bench_;
  std::map<std::size_t, std::uint64_t> written_;  // chunks, by the index of the call
  std::set<std::size_t> ended_;
  std::map<std::string, bool> unapproved_;
  std::map<std::string, Seen> calls_;
  std::uint64_t spent_tokens_ = 0;
  double spent_cost_ = 0;  // of a million tokens
  TokenPrice price_;       // of the answer that is given
  std::uint32_t reactions_ = 0;
  bool was_used_up_ = false;
  std::uint64_t next_number_ = 0;
  std::size_t items_ = 0;
  bool is_responding_ = false;
  bool is_item_open_ = false;
  bool is_part_open_ = false;
  bool is_done_ = false;
};

TEST(AgentSimulation, WhatMustHoldHoldsForEverySeed) {
  const std::size_t first = seed_option("SLUICE_AGENT_FIRST", 1);
  const std::size_t seeds = seed_option("SLUICE_AGENT_SEEDS", kSeeds);
  for (std::size_t seed = first; seed < first + seeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    SimulatedRun(seed).play();
    if (::testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace sluice
