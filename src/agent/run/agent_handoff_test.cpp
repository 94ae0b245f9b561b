// Conversations that go from one agent to another.

#include <algorithm>
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

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using RunningCalls = HandoffOptions::RunningCalls;

/// Front hands conversations over to the expert, and that back.
class HandoffTest : public ::testing::Test {
 protected:
  RunAgent front() {
    AgentOptions options = reacting(ReactionPolicy::When::every_chunk);
    options.name = "front";
    options.instructions = "You are the front.";
    options.explains_updates = false;
    return {.engine = &bench.model,
            .tools = &bench.tools,
            .options = std::move(options),
            .handoffs = [this] { return std::vector{handoff("to_expert", "expert")}; }};
  }
  RunAgent expert() {
    AgentOptions options = reacting(ReactionPolicy::When::every_chunk);
    options.name = "expert";
    options.instructions = "You are the expert.";
    options.explains_updates = false;
    return {.engine = &expert_model,
            .tools = &expert_tools,
            .options = std::move(options),
            .handoffs = [this] {
              return is_final ? std::vector<RunHandoff>()
                              : std::vector{handoff("to_front", "front")};
            }};
  }
  RunHandoff handoff(std::string tool, std::string agent) {
    const bool is_front = agent == "front";
    return {.tool = std::move(tool),
            .description = "Hands over",
            .running_calls = running_calls,
            .agent = std::move(agent),
            .reach = [this, is_front]() -> std::optional<RunAgent> {
              if (is_gone) return std::nullopt;
              return is_front ? front() : expert();
            }};
  }
  void begin() {
    bench.run = std::make_shared<AgentRun>(bench.loop, bench.events, front());
    if (keeps) bench.run->keep_with(bench.keeper);
  }
  void start() {
    begin();
    bench.start();
  }
  /// The front calls its tool `stream`, which runs, and hands over.
  void hand_over_with_call() {
    bench.model.call("stream");
    bench.model.call("to_expert");
    bench.model.end();
    bench.loop.run();
  }

  RunningCalls running_calls = RunningCalls::transfer;
  bool is_gone = false;
  bool is_final = false;  // the expert hands nothing back
  bool keeps = false;
  KeptBench bench;
  FakeModel expert_model;
  FakeTools expert_tools;
};

TEST_F(HandoffTest, TheOtherAgentGoesOnWithTheConversation) {
  expert_tools.offered = {{.name = "look"}};
  start();
  EXPECT_THAT(bench.model.last().request.tools, HasSubstr("to_expert"));
  bench.model.say("One moment.");
  bench.model.call("to_expert");
  bench.model.end();
  bench.loop.run();
  ASSERT_THAT(expert_model.asked, SizeIs(1));
  const auto& shown = expert_model.last().request.messages;
  EXPECT_EQ(shown[0].content, "You are the expert.");
  EXPECT_EQ(shown[1].content, "go");
  EXPECT_EQ(shown[2].content, "One moment.");
  EXPECT_EQ(expert_model.last().request.continues, nullptr);
  EXPECT_THAT(shown[3].content, HasSubstr("handed over to expert"));
  EXPECT_THAT(expert_model.last().request.tools, HasSubstr("look"));
  EXPECT_THAT(expert_model.last().request.tools, Not(HasSubstr("to_expert")));
  expert_model.call("look");
  expert_model.end();
  bench.loop.run();
  ASSERT_THAT(expert_tools.started, SizeIs(1));
  expert_tools.end(0, "seen");
  bench.loop.run();
  expert_model.call("to_front");
  expert_model.end();
  bench.loop.run();
  EXPECT_EQ(bench.shown()[0].content, "You are the front.");
  bench.model.say("Good bye.");
  bench.model.end();
  const auto events = bench.take();
  EXPECT_EQ(events.back().text, "Good bye.");
  const auto handed = std::ranges::find(events, AgentEventType::run_handoff, &AgentEvent::type);
  ASSERT_NE(handed, events.end());
  EXPECT_EQ(text_at(handed->data, "from"), "front");
  EXPECT_EQ(text_at(handed->data, "to"), "expert");
}

TEST_F(HandoffTest, CallsThatRunAreTransferred) {
  start();
  hand_over_with_call();
  ASSERT_THAT(expert_model.asked, SizeIs(1));
  EXPECT_THAT(expert_model.last().request.messages,
              Contains(::testing::Field(&ChatMessage::content, HasSubstr("running"))));
  expert_model.say("I wait.");
  expert_model.end();
  bench.tools.write(0, "half");
  bench.loop.run();
  EXPECT_THAT(expert_model.last().request.messages.back().content, HasSubstr("half"));
  expert_model.end();
  bench.tools.end(0, "whole");
  bench.loop.run();
  EXPECT_THAT(expert_model.last().request.messages.back().content, HasSubstr("whole"));
  expert_model.say("Done.");
  expert_model.end();
  EXPECT_EQ(bench.take().back().text, "Done.");
}

TEST_F(HandoffTest, CallsThatRunAreWaitedFor) {
  running_calls = RunningCalls::wait;
  start();
  hand_over_with_call();
  bench.tools.write(0, "half");
  bench.loop.run();
  EXPECT_THAT(expert_model.asked, IsEmpty());
  EXPECT_THAT(bench.model.asked, SizeIs(1)) << "nobody reacts meanwhile";
  bench.tools.end(0, "whole");
  bench.loop.run();
  ASSERT_THAT(expert_model.asked, SizeIs(1));
  EXPECT_THAT(expert_model.last().request.messages,
              Contains(::testing::Field(&ChatMessage::content, HasSubstr("whole"))));
}

TEST_F(HandoffTest, CallsThatRunAreCancelled) {
  running_calls = RunningCalls::cancel;
  start();
  hand_over_with_call();
  EXPECT_TRUE(bench.tools.started[0]->is_dropped);
  ASSERT_THAT(expert_model.asked, SizeIs(1));
  EXPECT_THAT(expert_model.last().request.messages,
              Contains(::testing::Field(&ChatMessage::content,
                                        HasSubstr("The conversation is handed over to expert"))));
}

TEST_F(HandoffTest, WhoIsGoneIsSaidSoAndOneAnswerHandsOverOnce) {
  is_gone = true;
  start();
  bench.model.call("to_expert");
  bench.model.end();
  bench.loop.run();
  EXPECT_THAT(bench.shown().back().content, HasSubstr("expert is not there"));
  is_gone = false;
  bench.model.call("to_expert");
  bench.model.call("to_expert");
  bench.model.end();
  bench.loop.run();
  ASSERT_THAT(expert_model.asked, SizeIs(1));
  EXPECT_THAT(expert_model.last().request.messages.back().content, HasSubstr("goes to expert"));
}

TEST_F(HandoffTest, BudgetsAreOfTheWholeRun) {
  RunAgent agent = front();
  agent.options.budget.turns = 2;
  bench.run = std::make_shared<AgentRun>(bench.loop, bench.events, std::move(agent));
  bench.start();
  bench.model.call("to_expert");
  bench.model.end();
  bench.loop.run();
  expert_model.call("to_front");
  expert_model.end();
  bench.loop.run();
  EXPECT_THAT(bench.shown().back().content, HasSubstr("answer now"));
}

TEST_F(HandoffTest, AKeptRunGoesOnWithTheAgentThatHasIt) {
  keeps = true;
  is_final = true;
  start();
  hand_over_with_call();
  const json::object state = bench.state();
  EXPECT_EQ(text_at(state, "agent"), "expert");
  bench.tools.offered[0].is_read_only = true;  // it is made again
  bench.tools.started.clear();
  begin();
  ASSERT_TRUE(bench.resume(state, "Well?"));
  EXPECT_THAT(bench.tools.started, SizeIs(1)) << "of the front, whose call it was";
  EXPECT_THAT(expert_tools.started, IsEmpty());
  EXPECT_EQ(expert_model.last().request.messages[0].content, "You are the expert.");
  EXPECT_THAT(expert_model.last().request.messages.back().content, HasSubstr("Well?"));
}

TEST_F(HandoffTest, AnotherModelReacts) {
  FakeModel cheap;
  RunAgent agent = front();
  agent.reaction_engine = &cheap;
  bench.run = std::make_shared<AgentRun>(bench.loop, bench.events, std::move(agent));
  bench.start();
  bench.model.call("stream");
  bench.model.end();
  bench.loop.run();
  bench.tools.write(0, "half");
  bench.loop.run();
  ASSERT_THAT(cheap.asked, SizeIs(1));
  EXPECT_THAT(cheap.last().request.messages.back().content, HasSubstr("half"));
  cheap.say("I see.");
  cheap.end();
  bench.tools.end(0, "whole");
  bench.loop.run();
  EXPECT_THAT(cheap.asked, SizeIs(1));
  EXPECT_THAT(bench.model.asked, SizeIs(2)) << "a result is for the model of the agent";
}

}  // namespace
}  // namespace sluice
