// How long answers and runs may be, in bytes and in time.

#include <algorithm>
#include <chrono>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <utility>
#include <vector>

#include "agent/run/agent_run.hpp"
#include "agent/run/kept_run_test_support.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::SizeIs;

std::string limited_status(const std::vector<AgentEvent>& events) {
  if (events.empty() || events.back().type != AgentEventType::run_done) return "goes on";
  return std::string(events.back().data.at("status").as_string()) + " " +
         std::string(events.back().data.at("reason").as_string());
}

TEST(AgentLimits, AnEndlessAnswerIsCut) {
  AgentOptions options;
  options.max_answer = 100;
  RunBench bench(options);
  bench.start();
  for (int i = 0; i < 50; ++i) bench.model.say("0123456789");
  bench.loop.run();
  EXPECT_TRUE(bench.model.last().is_cancelled);
  const auto events = bench.take();
  EXPECT_EQ(limited_status(events), "incomplete max_output_tokens");
  EXPECT_EQ(events.back().text.size(), 100U);
}

TEST(AgentLimits, OfAPieceThatIsTooLongTheBeginningIsKept) {
  AgentOptions options;
  options.max_answer = 100;
  RunBench bench(options);
  bench.start();
  bench.model.say(std::string(99, 'x') + "\u00e4" + std::string(100, 'x'));
  bench.loop.run();
  EXPECT_TRUE(bench.model.last().is_cancelled);
  const auto events = bench.take();
  EXPECT_EQ(limited_status(events), "incomplete max_output_tokens");
  EXPECT_EQ(events.back().text, std::string(99, 'x')) << "no half of a character";
}

TEST(AgentLimits, ALongCallIsCountedOnce) {
  RunBench bench;
  bench.model.streams_calls = true;
  bench.start();
  bench.model.call("stream", {{"x", std::string(600'000, 'x')}}, "a");
  bench.model.end(Completion::Reason::tool_calls);
  (void)bench.take();
  bench.loop.run();
  EXPECT_THAT(bench.tools.started, SizeIs(1));
}

TEST(AgentLimits, PartsOfACallCountBesideTheText) {
  AgentOptions options;
  options.max_answer = 100;
  RunBench bench(options);
  bench.start();
  bench.model.say(std::string(60, 'x'));
  bench.model.part("stream", R"({"x":")" + std::string(60, 'x'));
  bench.loop.run();
  EXPECT_TRUE(bench.model.last().is_cancelled);
  EXPECT_EQ(limited_status(bench.take()), "incomplete max_output_tokens");
}

TEST(AgentLimits, ArgumentsThatAreNoObjectCountAsTheyAre) {
  AgentOptions options;
  options.max_answer = 1000;
  RunBench bench(options);
  bench.start();
  bench.model.call_with_text("stream", std::string(900, '\x01'));
  bench.model.end(Completion::Reason::tool_calls);
  bench.loop.run();
  ASSERT_THAT(bench.model.asked, SizeIs(2)) << "the model may make the call again";
  EXPECT_THAT(bench.shown().back().content, HasSubstr("no JSON object"));
}

TEST(AgentLimits, TheEndOfTheTimeBreaksAnAnswerOff) {
  AgentOptions options = reacting(ReactionPolicy::When::every_chunk);
  options.budget.time = 1s;
  RunBench bench(options);
  bench.start();
  bench.model.call("stream", {}, "a");
  bench.model.end(Completion::Reason::tool_calls);
  bench.loop.run();
  bench.tools.write(0, "1");
  bench.loop.run();
  ASSERT_THAT(bench.model.asked, SizeIs(2));
  bench.loop.advance(2s);
  EXPECT_TRUE(bench.model.asked[1]->is_cancelled) << "an answer goes on though the time is over";
}

TEST(AgentLimits, WhatRunsAtTheEndOfTheTimeHasItsGrace) {
  for (const bool detaches : {true, false}) {
    AgentOptions options;
    options.budget.time = 1s;
    options.grace = 5s;
    options.max_running = 1;
    options.detaches = detaches;
    RunBench bench(options);
    bench.start();
    bench.model.call("stream", {}, "a");
    bench.model.call("other", {}, "b");
    bench.model.end(Completion::Reason::tool_calls);
    bench.loop.run();
    bench.loop.advance(1s);
    ASSERT_THAT(bench.model.asked, SizeIs(2)) << "the last answer waits for nothing";
    EXPECT_EQ(bench.tools.started[0]->is_dropped, !detaches);
    bench.model.say("So far");
    bench.model.end();
    bench.loop.run();
    EXPECT_EQ(bench.run->is_over(), !detaches);
    if (detaches) bench.tools.end(0, "done");
    const auto events = bench.take();
    EXPECT_EQ(limited_status(events), "incomplete budget: time");
    EXPECT_THAT(bench.tools.started, SizeIs(1)) << "what waits for its turn is not made";
    EXPECT_EQ(std::ranges::count_if(events,
                                    [](const AgentEvent& event) {
                                      return event.type == AgentEventType::tool_output_done &&
                                             event.data.at("status") == "completed";
                                    }),
              detaches ? 1 : 0);
  }
}

TEST(AgentLimits, TheLastAnswerIsBrokenOffToo) {
  AgentOptions options;
  options.budget.time = 1s;
  RunBench bench(options);
  bench.start();
  bench.loop.advance(1s);
  ASSERT_THAT(bench.model.asked, SizeIs(2));
  bench.model.say("So far");
  bench.loop.advance(29s);
  EXPECT_FALSE(bench.model.last().is_cancelled);
  bench.loop.advance(1s);
  EXPECT_TRUE(bench.model.last().is_cancelled);
  EXPECT_EQ(limited_status(bench.take()), "incomplete budget: time");
}

TEST(AgentLimits, TheLastAnswerHasItsTimeFromWhenItIsAskedFor) {
  AgentOptions options;
  options.budget = {.turns = 1, .time = 1h};
  RunBench bench(options);
  bench.start();
  bench.model.call("stream", {}, "a");
  bench.model.end(Completion::Reason::tool_calls);
  bench.loop.run();
  bench.tools.end(0, "1");
  bench.loop.advance(0s);
  ASSERT_THAT(bench.model.asked, SizeIs(2));
  bench.loop.advance(30s);
  EXPECT_TRUE(bench.model.last().is_cancelled) << "whatever is left of the hour";
}

TEST(AgentLimits, TimeInWhichNobodyTakesTheLastAnswerDoesNotCount) {
  AgentOptions options;
  options.budget.time = 1s;
  RunBench bench(options, {.max_model_events = 4});
  bench.start();
  bench.loop.advance(1s);
  ASSERT_THAT(bench.model.asked, SizeIs(2));
  bench.loop.advance(10s);
  for (int i = 0; i < 4; ++i) bench.model.say("word ");
  bench.loop.run();
  bench.loop.advance(15s);
  (void)bench.take();
  bench.loop.advance(10s);
  EXPECT_FALSE(bench.model.last().is_cancelled) << "it had but 20 of its 30 s";
  for (int i = 0; i < 4; ++i) bench.model.say("word ");
  bench.loop.advance(1h);
  EXPECT_FALSE(bench.model.last().is_cancelled) << "nobody takes it";
  (void)bench.take();
  bench.loop.advance(9s);
  EXPECT_FALSE(bench.model.last().is_cancelled);
  bench.loop.advance(1s);
  EXPECT_TRUE(bench.model.last().is_cancelled);
}

TEST(AgentLimits, TheLastAnswerGoesOnWithOneThatWasBrokenOff) {
  AgentOptions options;
  options.budget.time = 1s;
  RunBench bench(options);
  bench.start();
  bench.model.say("It is");
  bench.loop.advance(2s);
  ASSERT_THAT(bench.model.asked, SizeIs(2));
  EXPECT_THAT(bench.shown().back().content, HasSubstr("answer now"));
  bench.model.say("four.");
  bench.model.end();
  bench.loop.run();
  const auto& messages = bench.run->history().messages();
  EXPECT_EQ(messages.back().content, "It is\n\nfour.");
  EXPECT_EQ(messages.size(), 2U);
}

TEST(AgentLimits, TheLongestTimesAreNeverOver) {
  AgentOptions options;
  options.idle_timeout = options.call_timeout = options.budget.time = Duration::max();
  RunBench bench(options);
  bench.start();
  bench.model.call("stream", {}, "a");
  bench.model.end(Completion::Reason::tool_calls);
  bench.loop.run();
  bench.loop.advance(24h);
  EXPECT_FALSE(bench.tools.started.at(0)->is_dropped);
  bench.tools.end(0, "done");
  bench.loop.run();
  bench.model.end();
  EXPECT_EQ(limited_status(bench.take()), "completed ");
}

TEST(AgentLimits, ARunThatGoesOnInItsLastAnswerHasNoTimeButForThat) {
  AgentOptions options;
  options.budget.time = 1h;
  KeptBench first(options);
  first.start();
  first.loop.advance(1h);
  ASSERT_THAT(first.model.asked, SizeIs(2)) << "the last answer is being given";
  KeptBench second(options);
  ASSERT_TRUE(second.resume(first.state()));
  ASSERT_THAT(second.model.asked, SizeIs(1));
  EXPECT_THAT(second.shown().back().content, HasSubstr("answer now"));
  second.loop.advance(30s);
  EXPECT_TRUE(second.model.last().is_cancelled);
  EXPECT_EQ(limited_status(second.take()), "incomplete budget: time");
}

TEST(AgentLimits, GraceIsOfEachToolAndEndsWithTheLastCall) {
  AgentOptions options = reacting(ReactionPolicy::When::every_chunk);
  options.budget.turns = 1;
  options.grace = 1s;
  options.graces = {{"stream", 3s}};
  RunBench bench(options);
  bench.start();
  bench.model.call("stream", {}, "long");
  bench.model.call("other", {}, "short");
  bench.model.end(Completion::Reason::tool_calls);
  bench.loop.run();
  bench.tools.write(0, "1 ");
  bench.loop.run();
  ASSERT_TRUE(bench.run->inject({.text = "And now?"}));
  bench.loop.run();
  bench.model.say("That is all.");
  bench.model.end();
  bench.loop.run();
  while (bench.model.last().sink != nullptr) {
    bench.model.end();
    bench.loop.run();
  }
  bench.take();
  bench.loop.advance(999ms);
  EXPECT_FALSE(bench.tools.started[1]->is_dropped);
  bench.loop.advance(1ms);
  EXPECT_TRUE(bench.tools.started[1]->is_dropped) << "it has the grace of the run";
  EXPECT_FALSE(bench.tools.started[0]->is_dropped);
  const std::size_t answers = bench.model.asked.size();
  bench.tools.write(0, "late ");
  const auto late = bench.take();
  EXPECT_TRUE(std::ranges::any_of(late, [](const AgentEvent& event) {
    return event.type == AgentEventType::tool_output_delta && event.text == "late ";
  })) << "the user sees it";
  bench.loop.advance(1999ms);
  EXPECT_FALSE(bench.run->is_over());
  bench.tools.end(0, "all of it");
  bench.loop.run();
  EXPECT_TRUE(bench.run->is_over()) << "nothing is waited for any more";
  EXPECT_EQ(bench.model.asked.size(), answers) << "the model does not";
}

TEST(AgentLimits, AToolWithoutGraceEndsWithTheLastAnswer) {
  for (const auto& [grace, is_over] : {std::pair(0s, true), std::pair(2s, false)}) {
    AgentOptions options = reacting(ReactionPolicy::When::every_chunk);
    options.budget.turns = 1;
    options.graces = {{"stream", grace}};
    RunBench bench(options);
    bench.start();
    bench.model.call("stream", {}, "a");
    bench.model.end(Completion::Reason::tool_calls);
    bench.loop.run();
    ASSERT_TRUE(bench.run->inject({.text = "And now?"}));
    bench.loop.run();
    bench.model.end();
    bench.loop.run();
    bench.loop.advance(1s);
    EXPECT_EQ(bench.run->is_over(), is_over);
    EXPECT_EQ(bench.tools.started[0]->is_dropped, is_over);
  }
}

}  // namespace
}  // namespace sluice
