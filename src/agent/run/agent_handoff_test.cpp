// Conversations that go from one agent to another.

#include <algorithm>
#include <chrono>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "agent/run/handoff_test_support.hpp"
#include "json/json.hpp"
#include "json/members.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

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
  const TimePoint until = bench.loop.clock().now() + 1s;
  bench.loop.advance(1s);
  EXPECT_EQ(bench.loop.clock().now(), until) << "the loop wakes again and again for that";
  bench.tools.end(0, "whole");
  bench.loop.run();
  ASSERT_THAT(expert_model.asked, SizeIs(1));
  EXPECT_THAT(expert_model.last().request.messages,
              Contains(::testing::Field(&ChatMessage::content, HasSubstr("whole"))));
}

TEST_F(HandoffTest, ACallThatHasGivenUpdatesIsNotLost) {
  start();
  bench.model.call("stream");
  bench.model.end();
  bench.loop.run();
  bench.tools.write(0, "a quarter");
  bench.loop.run();
  ASSERT_THAT(bench.model.asked, SizeIs(2)) << "the front has seen an update";
  bench.tools.write(0, "half");
  bench.model.call("to_expert");
  bench.model.end();
  bench.loop.run();
  ASSERT_THAT(expert_model.asked, SizeIs(1));
  const auto shows = [](std::string_view text) {
    return Contains(::testing::Field(&ChatMessage::content, HasSubstr(std::string(text))));
  };
  EXPECT_THAT(expert_model.last().request.messages, shows("a quarter"));
  EXPECT_THAT(expert_model.last().request.messages, shows("half"));
  EXPECT_FALSE(bench.tools.started[0]->is_dropped);
  expert_model.say("I wait.");
  expert_model.end();
  bench.loop.run();
  bench.tools.end(0, "the whole");
  bench.loop.run();
  ASSERT_THAT(expert_model.asked, SizeIs(2));
  EXPECT_THAT(expert_model.last().request.messages.back().content,
              ::testing::AllOf(HasSubstr("final"), HasSubstr("the whole")));
  expert_model.say("Done.");
  expert_model.end();
  EXPECT_EQ(bench.take().back().text, "Done.");
}

TEST_F(HandoffTest, ApprovalMakesTheOtherAgentGoOnWhereItWas) {
  expert_options.approval = [](const AgentTool&, const json::object&) {
    return std::string("it writes");
  };
  expert_tools.offered = {{.name = "look"}, {.name = "write"}};
  start();
  hand_over_with_call();
  expert_model.say("I look first.");
  expert_model.call("write", {}, "w");
  expert_model.end();
  const auto events = bench.take();
  EXPECT_EQ(std::ranges::count(events, AgentEventType::approval_required, &AgentEvent::type), 1);
  EXPECT_THAT(expert_tools.started, IsEmpty());
  // The call of the front goes on meanwhile.
  bench.tools.write(0, "half");
  ASSERT_TRUE(bench.run->approve("w"));
  const auto later = bench.take();
  EXPECT_EQ(std::ranges::count(later, AgentEventType::approval_required, &AgentEvent::type), 0);
  EXPECT_EQ(std::ranges::count(later, AgentEventType::run_handoff, &AgentEvent::type), 0);
  ASSERT_THAT(expert_tools.started, SizeIs(1));
  EXPECT_THAT(bench.tools.started, SizeIs(1)) << "nothing is called again";
  expert_tools.end(0, "written");
  bench.tools.end(0, "the whole");
  expert_model.end();
  bench.loop.run();
  const auto& shown = expert_model.last().request.messages;
  EXPECT_EQ(std::ranges::count(shown, std::string("I look first."), &ChatMessage::content), 1);
  EXPECT_THAT(shown, Contains(::testing::Field(&ChatMessage::content, HasSubstr("written"))));
  EXPECT_THAT(bench.model.asked, SizeIs(1)) << "the front is not asked again";
}

TEST_F(HandoffTest, CallsThatRunAreCancelled) {
  running_calls = RunningCalls::cancel;
  start();
  hand_over_with_call();
  EXPECT_TRUE(bench.tools.started[0]->is_dropped);
  ASSERT_THAT(expert_model.asked, SizeIs(1));
  EXPECT_THAT(expert_model.last().request.messages,
              Contains(::testing::Field(&ChatMessage::content,
                                        HasSubstr("The call was cancelled: the conversation"))));
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

TEST_F(HandoffTest, AModelForReactionsThatFailsIsReplaced) {
  for (const std::string said : {"", "Half a"}) {
    KeptBench one;
    FakeModel cheap;
    RunAgent agent = front();
    agent.engine = &one.model;
    agent.reaction_engine = &cheap;
    agent.tools = &one.tools;
    agent.options.budget.reactions = 1;
    one.run = std::make_shared<AgentRun>(one.loop, one.events, std::move(agent));
    one.start();
    one.model.call("stream");
    one.model.end();
    one.loop.run();
    one.tools.write(0, "half");
    one.loop.run();
    ASSERT_THAT(cheap.asked, SizeIs(1));
    if (!said.empty()) cheap.say(said);
    cheap.end(Completion::Reason::error);
    one.loop.run();
    EXPECT_FALSE(one.tools.started[0]->is_dropped) << "the call goes on";
    if (said.empty()) {
      ASSERT_THAT(one.model.asked, SizeIs(2)) << "the agent's own model reacts";
      EXPECT_THAT(one.shown().back().content, HasSubstr("half"));
      one.model.say("I see.");
      one.model.end();
    }
    EXPECT_EQ(one.run->reactions(), 1U);
    one.tools.end(0, "whole");
    one.loop.run();
    EXPECT_THAT(one.shown().back().content, HasSubstr("whole"));
    one.model.say("Done.");
    one.model.end();
    const auto events = one.take();
    EXPECT_EQ(text_at(events.back().data, "status"), "completed");
    EXPECT_EQ(std::ranges::count(events, AgentEventType::reaction_started, &AgentEvent::type),
              std::ranges::count(events, AgentEventType::reaction_done, &AgentEvent::type));
    EXPECT_THAT(cheap.asked, SizeIs(1));
  }
}

TEST_F(HandoffTest, AModelForReactionsThatHasFailedStaysReplaced) {
  FakeModel cheap;
  front_reacts = &cheap;
  start();
  bench.model.call("stream");
  bench.model.end();
  bench.loop.run();
  bench.tools.write(0, "half");
  bench.loop.run();
  cheap.end(Completion::Reason::error);
  bench.loop.run();
  bench.model.call("to_expert");
  bench.model.end();
  bench.loop.run();
  expert_model.call("to_front");
  expert_model.end();
  bench.loop.run();
  ASSERT_THAT(bench.model.asked, SizeIs(3));
  bench.model.end();
  bench.tools.write(0, "more");
  bench.loop.run();
  EXPECT_THAT(bench.model.asked, SizeIs(4));
  EXPECT_THAT(cheap.asked, SizeIs(1));
}

TEST_F(HandoffTest, ACancelledTurnTakesAHandOffBackThatWaits) {
  running_calls = RunningCalls::wait;
  start();
  hand_over_with_call();
  bench.run->cancel_turn();
  EXPECT_THAT(bench.names(), Not(Contains("run.handoff")));
  EXPECT_TRUE(bench.run->is_over());
  EXPECT_THAT(expert_model.asked, IsEmpty());
}

TEST_F(HandoffTest, AnInputThatDoesNotWaitEndsTheWait) {
  running_calls = RunningCalls::wait;
  start();
  hand_over_with_call();
  ASSERT_TRUE(bench.run->inject({.text = "By the way", .when = RunInput::When::silent}));
  bench.loop.run();
  EXPECT_THAT(expert_model.asked, IsEmpty());
  ASSERT_TRUE(bench.run->inject({.text = "Are you there?", .when = RunInput::When::asap}));
  bench.loop.run();
  ASSERT_THAT(expert_model.asked, SizeIs(1));
  EXPECT_EQ(expert_model.last().request.messages.back().content, "Are you there?");
  EXPECT_FALSE(bench.tools.started[0]->is_dropped);
}

TEST_F(HandoffTest, ThePoliciesOfTheOtherAgentHoldForCallsThatRun) {
  front_options.policy.when = ReactionPolicy::When::pass_through;
  start();
  hand_over_with_call();
  expert_model.end();
  bench.tools.write(0, "half");
  bench.loop.run();
  ASSERT_THAT(expert_model.asked, SizeIs(2));
  EXPECT_THAT(expert_model.last().request.messages,
              Contains(::testing::Field(&ChatMessage::content, HasSubstr("half"))));
}

TEST_F(HandoffTest, AnAgentThatWantsNoOutputIsShownNone) {
  expert_options.policy.when = ReactionPolicy::When::pass_through;
  start();
  hand_over_with_call();
  expert_model.end();
  bench.tools.write(0, "half");
  bench.loop.run();
  EXPECT_THAT(expert_model.asked, SizeIs(1));
}

TEST_F(HandoffTest, TheSameCallIsNotMadeTwiceAtOneServer) {
  bench.tools.server = expert_tools.server = &bench;
  bench.tools.offered = {{.name = "stream"}};
  expert_tools.offered = {{.name = "stream"}, {.name = "other"}};
  front_options.max_running_of_server = 1;
  start();
  hand_over_with_call();
  expert_model.call("stream");
  expert_model.call("other");
  expert_model.end();
  bench.loop.run();
  EXPECT_THAT(expert_tools.started, IsEmpty()) << "the server has one call already";
  EXPECT_EQ(bench.run->running(), 1U);
  bench.tools.end(0, "whole");
  bench.loop.run();
  ASSERT_THAT(expert_tools.started, SizeIs(1));
  EXPECT_EQ(expert_tools.started[0]->tool, "other");
  expert_tools.end(0, "seen");
  bench.loop.run();
  EXPECT_THAT(expert_model.last().request.messages,
              Contains(::testing::Field(&ChatMessage::content, HasSubstr("same call is running"))));
}

TEST_F(HandoffTest, TheLimitsOfTheFirstAgentRemain) {
  front_options.max_calls_of_answer = 1;
  front_options.max_answer = 100;
  start();
  bench.model.call("to_expert");
  bench.model.end();
  bench.loop.run();
  expert_tools.offered = {{.name = "look"}};
  expert_model.call("look", {{"at", 1}});
  expert_model.call("look", {{"at", 2}});
  expert_model.end();
  bench.loop.run();
  ASSERT_THAT(expert_tools.started, SizeIs(1));
  expert_tools.end(0, "seen");
  bench.loop.run();
  expert_model.say(std::string(101, 'x'));
  bench.loop.run();
  expert_model.end();
  EXPECT_EQ(bench.take().back().text, std::string(100, 'x'));
}

TEST_F(HandoffTest, AnAgentWithoutToolsCanStopCallsThatItIsGiven) {
  expert_tools.offered = {};
  explains = true;
  start();
  hand_over_with_call();
  const auto& request = expert_model.last().request;
  EXPECT_THAT(request.messages[0].content, HasSubstr("Tools may still run"));
  EXPECT_THAT(request.tools, HasSubstr("tool_cancel"));
}

TEST_F(HandoffTest, AnotherAgentOfTheSameNameIsNotHandedOverTo) {
  FakeTools tools;
  add_other("front", tools);
  start();
  bench.model.call("to_other");
  bench.model.end();
  bench.loop.run();
  EXPECT_THAT(other_model.asked, IsEmpty());
  EXPECT_THAT(bench.shown().back().content, HasSubstr("has the name front"));
}

TEST_F(HandoffTest, TheAgentThatIsToHaveTheRunIsKeptWithIt) {
  running_calls = RunningCalls::wait;
  auto keeps_other = std::make_shared<const int>(1);
  RunAgent agent = front();
  agent.handoffs = [this, weak = std::weak_ptr(keeps_other)] {
    RunHandoff only = handoff("to_expert", "expert");
    only.reach = [this, weak]() -> std::optional<RunAgent> {
      RunAgent other = expert();
      other.keeps = weak.lock();
      return other;
    };
    return std::vector{only};
  };
  bench.run = std::make_shared<AgentRun>(bench.loop, bench.events, std::move(agent));
  bench.start();
  hand_over_with_call();
  EXPECT_THAT(bench.run->agents(), Contains(keeps_other));
}

TEST_F(HandoffTest, APolicyThatWasSetForOneCallRemains) {
  start();
  bench.model.call("stream", {}, "a");
  bench.model.end();
  bench.loop.run();
  ASSERT_TRUE(bench.run->set_policy("a", {}));
  ASSERT_TRUE(bench.run->inject({.text = "Ask the expert"}));
  bench.loop.run();
  bench.model.call("to_expert");
  bench.model.end();
  bench.loop.run();
  ASSERT_THAT(expert_model.asked, SizeIs(1));
  expert_model.end();
  bench.tools.write(0, "half");
  bench.loop.run();
  EXPECT_THAT(expert_model.asked, SizeIs(1));
  bench.tools.end(0, "whole");
  bench.loop.run();
  EXPECT_THAT(expert_model.asked, SizeIs(2));
}

}  // namespace
}  // namespace sluice
