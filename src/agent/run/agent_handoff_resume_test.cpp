// Kept runs that were handed over: whose tools their calls are of, and with whom they go on.

#include <algorithm>
#include <expected>
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

using ::testing::Contains;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

class HandoffResumeTest : public HandoffTest {
 protected:
  HandoffResumeTest() { keeps = true; }

  /// The run goes on as one of this agent.
  void resume(const json::object& state, RunAgent agent, std::optional<std::string> input = {}) {
    bench.run = std::make_shared<AgentRun>(bench.loop, bench.events, std::move(agent));
    bench.run->keep_with(bench.keeper);
    ASSERT_TRUE(bench.resume(state, std::move(input)));
  }
  static auto has_text(const std::string& text) {
    return Contains(Field(&ChatMessage::content, HasSubstr(text)));
  }
};

TEST_F(HandoffResumeTest, AKeptRunGoesOnWithTheAgentThatHasIt) {
  is_final = true;
  start();
  hand_over_with_call();
  const json::object state = bench.state();
  EXPECT_EQ(text_at(state, "agent"), "expert");
  bench.tools.offered[0].is_read_only = true;  // it is made again
  bench.tools.started.clear();
  resume(state, front(), "Well?");
  EXPECT_THAT(bench.tools.started, SizeIs(1)) << "of the front, whose call it was";
  EXPECT_THAT(expert_tools.started, IsEmpty());
  EXPECT_EQ(expert_model.last().request.messages[0].content, "You are the expert.");
  EXPECT_THAT(expert_model.last().request.messages.back().content, HasSubstr("Well?"));
}

TEST_F(HandoffResumeTest, ACallOfAnAgentThatIsGoneIsNotMadeAtAnother) {
  expert_options.approval = [](const AgentTool&, const json::object&) {
    return std::string("it writes");
  };
  start();
  bench.model.call("to_expert");
  bench.model.end();
  bench.loop.run();
  expert_model.call("stream");
  expert_model.end();
  bench.loop.run();
  const json::object state = bench.state();
  EXPECT_EQ(text_at(state, "agent"), "expert");
  is_gone = true;
  resume(state, front());
  EXPECT_THAT(bench.tools.started, IsEmpty()) << "the tool of this name is another";
  EXPECT_THAT(bench.shown().back().content, HasSubstr("no such tool any more"));
}

TEST_F(HandoffResumeTest, ACallIsJudgedByTheRulesOfTheAgentThatHasMadeIt) {
  const auto limit_to = [](int limit) {
    return [limit](const AgentTool&, json::object arguments) -> std::expected<json::object, Error> {
      arguments["n"] = limit;
      return arguments;
    };
  };
  front_options.approval = [](const AgentTool&, const json::object& arguments) {
    return "it costs " + to_json(arguments.at("n"));
  };
  front_options.guardrails.arguments = limit_to(5);
  expert_options.guardrails.arguments = limit_to(7);
  start();
  bench.model.call("stream", {{"n", 1000}});
  bench.model.call("to_expert");
  bench.model.end();
  bench.loop.run();
  bench.take();
  const json::object state = bench.state();
  EXPECT_EQ(text_at(state, "agent"), "expert");
  resume(state, front());
  const auto events = bench.take();
  const auto asked =
      std::ranges::find(events, AgentEventType::approval_required, &AgentEvent::type);
  ASSERT_NE(asked, events.end());
  EXPECT_EQ(text_at(asked->data, "reason"), "it costs 5");
  EXPECT_THAT(bench.tools.started, IsEmpty());
  ASSERT_TRUE(bench.run->approve(asked->call_id));
  bench.loop.run();
  ASSERT_THAT(bench.tools.started, SizeIs(1));
  EXPECT_EQ(bench.tools.started[0]->arguments.at("n"), 5);
}

TEST_F(HandoffResumeTest, NorIsOneThatHadBegun) {
  bench.tools.offered[0].is_read_only = true;
  expert_tools.offered[0].is_read_only = true;
  is_final = true;
  start();
  hand_over_with_call();
  ASSERT_THAT(bench.tools.started, SizeIs(1));
  resume(bench.state(), expert());
  EXPECT_THAT(expert_tools.started, IsEmpty());
  EXPECT_THAT(expert_model.last().request.messages, has_text("It is not known whether"));
}

TEST_F(HandoffResumeTest, AgentsAreFoundFromTheFirstOne) {
  FakeTools other_tools;
  other_tools.offered = {{.name = "build"}};
  add_other("other", other_tools, [this] { return std::vector{handoff("to_front", "front")}; });
  is_final = true;
  start();
  bench.model.call("to_other");
  bench.model.end();
  bench.loop.run();
  other_model.call("build");
  other_model.call("to_front");
  other_model.end();
  bench.loop.run();
  ASSERT_THAT(other_tools.started, SizeIs(1));
  other_tools.started[0]->sink->on_task("task-1");
  bench.loop.run();
  bench.model.call("to_expert");
  bench.model.end();
  bench.loop.run();
  const json::object state = bench.state();
  EXPECT_EQ(text_at(state, "agent"), "expert");
  bench.run.reset();
  other_tools.started.clear();
  resume(state, front());
  ASSERT_THAT(other_tools.started, SizeIs(1)) << "the front reaches it, the expert does not";
  EXPECT_EQ(other_tools.started[0]->task, "task-1");
}

TEST_F(HandoffResumeTest, WhichOfTwoAgentsOfOneNameIsNotGuessed) {
  start();
  bench.model.call("to_expert");
  bench.model.end();
  bench.loop.run();
  const json::object state = bench.state();
  FakeTools tools;
  add_other("expert", tools);
  const std::size_t asked = expert_model.asked.size();
  resume(state, front(), "Well?");
  EXPECT_THAT(other_model.asked, IsEmpty());
  EXPECT_THAT(expert_model.asked, SizeIs(asked));
  EXPECT_EQ(bench.shown().back().content, "Well?") << "the first has the run again";
}

TEST_F(HandoffResumeTest, AHandOffThatWaitsIsKept) {
  running_calls = RunningCalls::wait;
  bench.tools.offered[0].is_read_only = true;  // it is made again
  start();
  hand_over_with_call();
  const json::object state = bench.state();
  EXPECT_EQ(text_at(state, "agent"), "front");
  bench.run.reset();
  bench.take();
  bench.tools.started.clear();
  resume(state, front());
  ASSERT_THAT(bench.tools.started, SizeIs(1));
  EXPECT_THAT(expert_model.asked, IsEmpty());
  bench.tools.end(0, "whole");
  EXPECT_THAT(bench.names(), Contains("run.handoff"));
  ASSERT_THAT(expert_model.asked, SizeIs(1));
  EXPECT_THAT(expert_model.last().request.messages, has_text("whole"));
}

TEST_F(HandoffResumeTest, AHandOffThatWasTakenBackIsNotKept) {
  running_calls = RunningCalls::wait;
  start();
  hand_over_with_call();
  ASSERT_TRUE(bench.run->inject({.text = "Stay here", .when = RunInput::When::when_idle}));
  bench.loop.run();
  bench.run->cancel_turn();
  bench.loop.run();
  const std::size_t asked = bench.model.asked.size();
  resume(bench.state(), front());
  EXPECT_THAT(expert_model.asked, IsEmpty());
  EXPECT_THAT(bench.model.asked, SizeIs(asked + 1)) << "the one that has it answers";
}

TEST_F(HandoffResumeTest, AHandOffThatWaitsForNobodyIsForgotten) {
  running_calls = RunningCalls::wait;
  start();
  hand_over_with_call();
  const json::object state = bench.state();
  is_gone = true;
  resume(state, front());
  EXPECT_THAT(expert_model.asked, IsEmpty());
  EXPECT_THAT(bench.shown(), has_text("It is not known whether"));
}

TEST_F(HandoffResumeTest, ThePoliciesAndTheInstructionsAreThoseOfTheAgentThatHasIt) {
  front_options.policy.when = ReactionPolicy::When::pass_through;
  bench.tools.offered[0].is_read_only = true;
  expert_tools.offered = {};
  explains = true;
  is_final = true;
  start();
  hand_over_with_call();
  const json::object state = bench.state();
  bench.run.reset();
  bench.tools.started.clear();
  resume(state, front());
  ASSERT_THAT(bench.tools.started, SizeIs(1));
  ASSERT_THAT(expert_model.asked, SizeIs(2)) << "its first answer is asked for again";
  expert_model.end();
  bench.tools.write(0, "half");
  bench.loop.run();
  const auto& request = expert_model.last().request;
  EXPECT_THAT(request.messages, has_text("half"));
  EXPECT_THAT(request.messages[0].content, HasSubstr("Tools may still run"));
  EXPECT_THAT(request.tools, HasSubstr("tool_cancel"));
}

}  // namespace
}  // namespace sluice
