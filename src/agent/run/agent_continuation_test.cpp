// Answers that go on from the last one (GenerationRequest::continues).

#include <gtest/gtest.h>
#include <string>

#include "agent/run/agent_run_test_support.hpp"

namespace sluice {
namespace {

using When = ReactionPolicy::When;

/// A run whose model has called a tool that has written something, and comments on that.
struct CommentingBench : RunBench {
  explicit CommentingBench(AgentOptions options) : RunBench(std::move(options)) {
    start();
    model.call("stream", {}, "a");
    model.end(Completion::Reason::tool_calls);
    loop.run();
    tools.write(0, "one");
    loop.run();
  }
};

TEST(AgentContinuation, AnInterruptGoesOnFromWhatWasBrokenOff) {
  AgentOptions options = reacting(When::every_chunk);
  options.policy.interrupts = true;
  CommentingBench bench(options);
  ASSERT_EQ(bench.model.asked.size(), 2U);
  // The placeholder is all that is new.
  EXPECT_NE(bench.model.last().request.continues, nullptr);
  EXPECT_EQ(bench.model.last().request.new_messages, 1U);
  EXPECT_TRUE(bench.model.last().request.keeps_sequence);
  bench.model.say("It has");
  bench.tools.write(0, "two");
  bench.loop.run();
  ASSERT_EQ(bench.model.asked.size(), 3U);
  EXPECT_NE(bench.model.last().request.continues, nullptr);
  EXPECT_EQ(bench.model.last().request.new_messages, 1U);
  EXPECT_EQ(bench.shown()[bench.shown().size() - 2].content, "It has");
  // The tool that is done is one more message behind the next answer.
  bench.model.say("Two, so far.");
  bench.tools.end(0, "one two");
  bench.model.end();
  bench.loop.run();
  ASSERT_EQ(bench.model.asked.size(), 4U);
  EXPECT_NE(bench.model.last().request.continues, nullptr);
  EXPECT_EQ(bench.model.last().request.new_messages, 1U);
}

TEST(AgentContinuation, WhatWasRewrittenIsShownAnew) {
  CommentingBench bench(reacting(When::every_chunk));
  bench.model.say("[[pass]]");
  bench.model.end();
  bench.loop.run();
  bench.tools.end(0, "one two");
  bench.loop.run();
  ASSERT_EQ(bench.model.asked.size(), 3U);
  EXPECT_EQ(bench.shown().back().content, "one two") << "the placeholder is the result";
  EXPECT_EQ(bench.model.last().request.continues, nullptr);
  EXPECT_EQ(bench.model.last().request.new_messages, 0U);
}

TEST(AgentContinuation, AnAnswerThatWasCutIsNotGoneOnFrom) {
  AgentOptions options = reacting(When::every_chunk);
  options.max_answer = 100;
  CommentingBench bench(options);
  bench.model.say(std::string(101, 'x'));
  bench.tools.write(0, "two");
  bench.loop.run();
  ASSERT_EQ(bench.model.asked.size(), 3U);
  EXPECT_EQ(bench.model.last().request.continues, nullptr);
}

TEST(AgentContinuation, ACallThatWasDroppedIsNotGoneOnFrom) {
  RunBench bench;
  bench.start();
  bench.model.say("I look.");
  bench.loop.run();
  // The model ends its answer before it hears of the interrupt.
  ASSERT_TRUE(bench.run->inject({.text = "No, stop", .when = RunInput::When::interrupt}));
  bench.model.call("stream");
  bench.model.end(Completion::Reason::tool_calls);
  bench.loop.run();
  ASSERT_EQ(bench.model.asked.size(), 2U);
  EXPECT_TRUE(bench.tools.started.empty());
  EXPECT_EQ(bench.model.last().request.continues, nullptr);
}

TEST(AgentContinuation, TheLastAnswerOfABudgetHasOtherTools) {
  AgentOptions options = reacting(When::every_chunk);
  options.budget.turns = 1;
  CommentingBench bench(options);
  bench.model.say("It has begun.");
  bench.model.end();
  bench.tools.end(0, "one");
  bench.loop.run();
  ASSERT_EQ(bench.model.asked.size(), 3U);
  EXPECT_TRUE(bench.model.last().request.tools.empty());
  EXPECT_EQ(bench.model.last().request.continues, nullptr);
}

}  // namespace
}  // namespace sluice
