// What a run costs, and the budget of that.

#include <algorithm>
#include <cstdint>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "agent/run/agent_run.hpp"
#include "agent/run/kept_run_test_support.hpp"
#include "json/json.hpp"
#include "json/members.hpp"

namespace sluice {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

constexpr double kEach = 100;  // of an answer: ten tokens that are read, and no others

/// Tokens that cost so much each.
TokenPrice for_each(double prompt, double completion = 0) {
  return {.prompt = prompt * 1e6, .completion = completion * 1e6};
}

AgentOptions with_budget(double cost) {
  AgentOptions options;
  options.budget.cost = cost;
  options.price = for_each(10);
  return options;
}

/// The model makes a call, which ends.
void take_turn(RunBench& bench, int number) {
  bench.model.call("stream", {{"n", number}});
  bench.model.end(Completion::Reason::tool_calls);
  bench.loop.run();
  bench.tools.end(bench.tools.started.size() - 1, "more");
  bench.loop.run();
}

const json::object& usage_in(const std::vector<AgentEvent>& events) {
  EXPECT_EQ(events.back().type, AgentEventType::run_done);
  return events.back().data.at("usage").as_object();
}

TEST(AgentCost, TheBudgetEndsWithALastAnswerWithoutTools) {
  RunBench bench(with_budget(1.5 * kEach));
  bench.start();
  take_turn(bench, 1);
  EXPECT_THAT(bench.model.last().request.tools, Not(IsEmpty()));
  take_turn(bench, 2);
  ASSERT_THAT(bench.model.asked, SizeIs(3));
  EXPECT_THAT(bench.model.last().request.tools, IsEmpty());
  bench.model.say("So far: more.");
  bench.model.end();
  const auto events = bench.take();
  const auto budget = std::ranges::find(events, AgentEventType::run_budget, &AgentEvent::type);
  ASSERT_NE(budget, events.end());
  EXPECT_EQ(text_at(budget->data, "budget"), "cost");
  EXPECT_EQ(text_at(events.back().data, "status"), "incomplete");
  EXPECT_EQ(text_at(events.back().data, "reason"), "budget: cost");
  EXPECT_EQ(usage_in(events).at("cost").to_number<double>(), 3 * kEach);
}

TEST(AgentCost, EachKindOfTokensHasItsPrice) {
  struct Row {
    std::optional<double> cached;
    std::uint32_t cached_tokens;
    double cost;
  };
  for (const Row& row : {Row{1e6, 4, 6 * 2 + 4 * 1 + 5 * 3}, Row{std::nullopt, 4, 10 * 2 + 5 * 3},
                         Row{1e6, 99, 10 * 1 + 5 * 3}}) {
    AgentOptions options;
    options.price = for_each(2, 3);
    options.price->cached = row.cached;
    RunBench bench(options);
    bench.start();
    Completion completion;
    completion.usage = {
        .prompt_tokens = 10, .cached_tokens = row.cached_tokens, .completion_tokens = 5};
    std::exchange(bench.model.last().sink, nullptr)->on_complete(completion);
    const auto events = bench.take();
    EXPECT_EQ(usage_in(events).at("cost").to_number<double>(), row.cost);
  }
}

TEST(AgentCost, WithoutAPriceNothingIsSaidOfIt) {
  RunBench bench;
  bench.start();
  bench.model.end();
  EXPECT_FALSE(usage_in(bench.take()).contains("cost"));
}

TEST(AgentCost, ReactionsHaveThePriceOfTheirModel) {
  AgentOptions options = reacting(ReactionPolicy::When::every_chunk);
  options.price = for_each(10);
  options.reaction_price = for_each(1);
  RunBench bench(options);
  bench.start();
  bench.model.call("stream");
  bench.model.end(Completion::Reason::tool_calls);
  bench.loop.run();
  bench.tools.write(0, "half");
  bench.loop.run();
  bench.model.end();  // the reaction
  bench.loop.run();
  bench.tools.end(0, "all");
  bench.loop.run();
  bench.model.end();
  EXPECT_EQ(usage_in(bench.take()).at("cost").to_number<double>(), 2 * kEach + kEach / 10);
}

TEST(AgentCost, AnAnswerThatIsBrokenOffCostsWhatTheOneBeforeHasRead) {
  AgentOptions options = reacting(ReactionPolicy::When::every_chunk);
  options.policy.interrupts = true;
  options.price = for_each(10);
  options.budget.cost = 2.5 * kEach;
  RunBench bench(options);
  bench.start();
  bench.model.call("stream");
  bench.model.end(Completion::Reason::tool_calls);
  bench.loop.run();
  for (const char* const text : {"one", "two", "three"}) {
    bench.tools.write(0, text);  // the second and the third break the answer off
    bench.loop.run();
  }
  ASSERT_THAT(bench.model.asked, SizeIs(4));
  EXPECT_THAT(bench.model.last().request.tools, IsEmpty()) << "the budget is used up";
  bench.tools.end(0, "all");
  bench.model.end();
  EXPECT_EQ(usage_in(bench.take()).at("cost").to_number<double>(), 4 * kEach);
}

TEST(AgentCost, OnlyWhatIsNotToldOfABrokenOffAnswerIsEstimated) {
  struct Row {
    Usage told;
    std::uint64_t tokens;
  };
  constexpr std::size_t kBytes = 400;
  // Pieces are counted by an engine whose server has told nothing.
  for (const Row& row :
       {Row{{.prompt_tokens = 5, .completion_tokens = 10}, 10}, Row{{.completion_tokens = 2}, 200},
        Row{{.completion_tokens = 999}, 999}, Row{{}, 200}}) {
    RunBench bench;
    bench.start();
    bench.model.say(std::string(kBytes, 'x'));
    bench.model.part("stream", std::string(kBytes, 'x'));
    bench.model.last().told = row.told;
    bench.loop.run();
    bench.run->cancel_turn();
    const auto events = bench.take();
    EXPECT_EQ(usage_in(events).at("output_tokens").to_number<std::uint64_t>(), row.tokens);
    const auto ended =
        std::ranges::find(events, AgentEventType::response_incomplete, &AgentEvent::type);
    ASSERT_NE(ended, events.end());
    EXPECT_EQ(ended->data.at("response").at("usage").at("output_tokens").to_number<std::uint64_t>(),
              row.tokens);
  }
}

TEST(AgentCost, TheCostIsKeptAndAnInputHasABudgetOfItsOwn) {
  KeptBench first(with_budget(1.5 * kEach));
  first.start();
  take_turn(first, 1);
  ASSERT_TRUE(first.keeper.kept.contains("usage"));
  KeptBench second(with_budget(1.5 * kEach));
  ASSERT_TRUE(second.resume(first.state()));
  take_turn(second, 2);
  EXPECT_THAT(second.model.last().request.tools, IsEmpty()) << "both answers count";
  second.model.end();
  EXPECT_EQ(usage_in(second.take()).at("cost").to_number<double>(), 3 * kEach);
  KeptBench third(with_budget(1.5 * kEach));
  ASSERT_TRUE(third.resume(second.state(), "Go on"));
  EXPECT_THAT(third.model.last().request.tools, Not(IsEmpty()));
  third.model.end();
  EXPECT_EQ(usage_in(third.take()).at("cost").to_number<double>(), kEach);
}

TEST(AgentCost, WhatIsKeptAndNoAmountCountsAsNothing) {
  KeptBench first(with_budget(1.5 * kEach));
  first.start();
  take_turn(first, 1);
  json::object state = first.state();
  for (const json::value& broken : {json::value(-1e9), json::value("much"), json::value(nullptr)}) {
    state["usage"].as_object()["cost"] = broken;
    KeptBench second(with_budget(1.5 * kEach));
    ASSERT_TRUE(second.resume(state));
    take_turn(second, 2);
    EXPECT_THAT(second.model.last().request.tools, Not(IsEmpty()));
    take_turn(second, 3);
    EXPECT_THAT(second.model.last().request.tools, IsEmpty());
  }
}

TEST(AgentCost, AnotherAgentHasItsOwnPricesAndTheBudgetOfTheRun) {
  RunBench bench(with_budget(2.5 * kEach));
  bench.handoffs = [&bench] {
    return std::vector{RunHandoff{.tool = "to_other",
                                  .description = "",
                                  .agent = "other",
                                  .reach = [&bench]() -> std::optional<RunAgent> {
                                    AgentOptions options = with_budget(1e9);
                                    options.name = "other";
                                    options.price = for_each(20);
                                    return bench.agent_of(std::move(options));
                                  }}};
  };
  bench.start();
  bench.model.call("to_other");
  bench.model.end(Completion::Reason::tool_calls);
  bench.loop.run();
  EXPECT_THAT(bench.model.last().request.tools, Not(IsEmpty()));
  take_turn(bench, 1);
  EXPECT_THAT(bench.model.last().request.tools, IsEmpty()) << "one hundred and two";
  bench.model.end();
  EXPECT_EQ(usage_in(bench.take()).at("cost").to_number<double>(), 5 * kEach);
}

}  // namespace
}  // namespace sluice
