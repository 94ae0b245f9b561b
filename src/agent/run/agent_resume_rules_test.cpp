// What holds for a run that goes on: its agent's rules, its budgets, and how it had ended.

#include <algorithm>
#include <chrono>
#include <expected>
#include <functional>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "agent/history/strict_history_test_support.hpp"
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

/// An ApprovalRule.
std::string always(const AgentTool& /*tool*/, const json::object& /*arguments*/) {
  return "it writes";
}

bool was_asked_about(const std::vector<AgentEvent>& events) {
  return std::ranges::count(events, AgentEventType::approval_required, &AgentEvent::type) > 0;
}

/// The state of a run with one call that runs and one that waits for its turn.
json::object state_with_waiting_call(AgentOptions options = {}) {
  options.max_running = 1;
  KeptBench bench(std::move(options));
  bench.start();
  bench.model.call("other", {{"path", "a"}});
  bench.model.call("other", {{"path", "b"}});
  bench.model.end();
  bench.loop.run();
  EXPECT_THAT(bench.tools.started, SizeIs(1));
  return bench.state();
}

TEST(AgentResumeRules, ACancelledRunWithADetachedCallGoesOn) {
  KeptBench first(reacting(ReactionPolicy::When::every_chunk));
  first.start("Hello");
  first.model.call("other");
  first.model.end();
  first.loop.run();
  first.tools.write(0, "half");
  first.loop.run();
  first.model.call("look");
  first.model.end();
  first.loop.run();
  ASSERT_THAT(first.tools.started, SizeIs(2));
  first.run->cancel();
  first.loop.run();
  KeptBench second;
  ASSERT_TRUE(second.resume(first.state(), "And now?"));
  EXPECT_EQ(why_not_strict(second.shown(), false), "");
  EXPECT_THAT(second.shown()[5].content, HasSubstr("final"));
}

TEST(AgentResumeRules, ACallThatHadNotBegunNeedsApproval) {
  AgentOptions options;
  options.approval = always;
  KeptBench second(options);
  ASSERT_TRUE(second.resume(state_with_waiting_call()));
  EXPECT_TRUE(was_asked_about(second.take()));
  EXPECT_THAT(second.tools.started, IsEmpty());
}

TEST(AgentResumeRules, ACallThatIsMadeAgainNeedsApproval) {
  KeptBench first;
  first.start();
  first.model.call("look");
  first.model.end();
  first.loop.run();
  AgentOptions options;
  options.approval = always;
  KeptBench second(options);
  ASSERT_TRUE(second.resume(first.state()));
  EXPECT_TRUE(was_asked_about(second.take()));
  EXPECT_THAT(second.tools.started, IsEmpty());
}

TEST(AgentResumeRules, ApprovalThatNobodyWantsAnyMoreIsNotAskedFor) {
  AgentOptions options;
  options.approval = always;
  KeptBench first(options);
  first.start();
  first.model.call("other");
  first.model.end();
  first.loop.run();
  KeptBench second;
  ASSERT_TRUE(second.resume(first.state()));
  EXPECT_FALSE(was_asked_about(second.take()));
  EXPECT_THAT(second.tools.started, SizeIs(1));
}

TEST(AgentResumeRules, ACallThatMayBeRepeatedHasFailedIfTheAgentStopped) {
  for (const bool is_idempotent : {true, false}) {
    KeptBench first;
    first.tools.offered.back() = {.name = "set", .is_idempotent = is_idempotent};
    first.start();
    first.model.call("set");
    first.model.end();
    first.loop.run();
    ASSERT_THAT(first.tools.started, SizeIs(1));
    KeptBench second;
    second.tools.offered = first.tools.offered;
    ASSERT_TRUE(second.resume(first.state()));
    EXPECT_THAT(second.tools.started, IsEmpty());
    EXPECT_EQ(last_shown(second).starts_with("The tool failed: the agent stopped"), is_idempotent);
    EXPECT_EQ(last_shown(second).contains("not known whether"), !is_idempotent);
  }
}

TEST(AgentResumeRules, GuardrailsSeeWhatTheModelHasAsked) {
  AgentOptions options;
  options.guardrails.arguments = [](const AgentTool&, json::object arguments) {
    arguments["path"] = "safe/" + std::string(text_at(arguments, "path"));
    return std::expected<json::object, Error>(std::move(arguments));
  };
  KeptBench second(options);
  ASSERT_TRUE(second.resume(state_with_waiting_call(options)));
  ASSERT_THAT(second.tools.started, SizeIs(1));
  EXPECT_EQ(text_at(second.tools.started[0]->arguments, "path"), "safe/b");

  options.guardrails.arguments = [](const AgentTool&, const json::object&) {
    return std::expected<json::object, Error>(fail(403, "not this path"));
  };
  KeptBench third(options);
  ASSERT_TRUE(third.resume(state_with_waiting_call()));
  EXPECT_THAT(third.tools.started, IsEmpty());
  ASSERT_THAT(third.model.asked, SizeIs(1));
  EXPECT_THAT(last_shown(third), HasSubstr("not this path"));
}

TEST(AgentResumeRules, WhatWasOverEndsAsItHadEnded) {
  for (const std::string_view status : {"cancelled", "failed", "incomplete"}) {
    AgentOptions options;
    if (status == "incomplete") options.budget.turns = 1;
    KeptBench first(options);
    first.start();
    first.model.say("Well.");
    // One call is answered at once, so there is news for the model.
    first.model.call("nosuch");
    first.model.call("look");
    first.model.end();
    first.loop.run();
    if (status == "cancelled") {
      first.run->cancel();
    } else {
      first.tools.end(0, "seen");
      first.loop.run();
      first.model.end(status == "failed" ? Completion::Reason::error : Completion::Reason::stop);
    }
    const auto ended = first.take();
    ASSERT_EQ(text_at(ended.back().data, "status"), status);

    KeptBench second;
    ASSERT_TRUE(second.resume(first.state()));
    const auto events = second.take();
    EXPECT_EQ(events.back().data, ended.back().data);
    EXPECT_EQ(events.back().text, "Well.");
    EXPECT_THAT(second.model.asked, IsEmpty()) << status;
    EXPECT_THAT(second.tools.started, IsEmpty());

    KeptBench third;
    ASSERT_TRUE(third.resume(second.state(), "Go on"));
    third.model.end();
    EXPECT_EQ(text_at(third.take().back().data, "status"), "completed");
  }
}

TEST(AgentResumeRules, AnInputHasTokensOfItsOwn) {
  AgentOptions options;
  options.budget.tokens = 11;
  KeptBench first(options);
  first.start();
  first.model.say("Hi.");
  first.model.end();
  first.loop.run();
  KeptBench second(options);
  ASSERT_TRUE(second.resume(first.state(), "And now?"));
  second.model.end();
  const auto events = second.take();
  EXPECT_EQ(text_at(events.back().data, "status"), "completed");
  EXPECT_EQ(object_at(events.back().data, "usage")->at("input_tokens"), 10);
}

TEST(AgentResumeRules, WhatACallThatIsMadeAgainHasWrittenIsForgotten) {
  KeptBench first(reacting(ReactionPolicy::When::every_chunk));
  first.start();
  first.model.call("look");
  first.model.end();
  first.loop.run();
  first.tools.write(0, "line 1");
  first.loop.run();
  ASSERT_THAT(last_shown(first), HasSubstr("line 1"));
  // The call that is made again has written nothing yet.
  KeptBench second;
  ASSERT_TRUE(second.resume(first.run->state()));
  EXPECT_THAT(last_shown(second), HasSubstr("running"));
  EXPECT_THAT(last_shown(second), Not(HasSubstr("line 1")));
}

/// A run whose call is the task that `started[0]` is.
struct TaskBench : KeptBench {
  explicit TaskBench(AgentOptions options = {}) : KeptBench(std::move(options)) {
    start();
    model.call("other");
    model.end();
    loop.run();
    tools.started[0]->sink->on_task("task-7");
    loop.run();
  }
};

TEST(AgentResumeRules, WhoeverGoesOnWithARunHasItsTasks) {
  TaskBench bench;
  bench.keeper.fails = true;
  ASSERT_TRUE(bench.run->inject({.text = "Well?"}));
  EXPECT_EQ(text_at(bench.take().back().data, "status"), "failed");
  EXPECT_TRUE(bench.tools.started[0]->is_left);
  EXPECT_TRUE(bench.tools.started[0]->is_dropped);
}

TEST(AgentResumeRules, ATaskIsCancelledOnceThatIsKept) {
  TaskBench bench;
  bench.keeper.keeps_at_once = false;
  bench.run->cancel();
  bench.loop.run();
  EXPECT_FALSE(bench.tools.started[0]->is_dropped);
  bench.tools.started[0]->sink->on_output({.text = "late"});
  bench.keeper.finish();
  for (const AgentEvent& event : bench.take()) EXPECT_NE(event.text, "late");
  EXPECT_TRUE(bench.tools.started[0]->is_dropped);
  EXPECT_FALSE(bench.tools.started[0]->is_left);
}

TEST(AgentResumeRules, ARunThatSomebodyElseGoesOnWithCancelsNoTask) {
  AgentOptions slow;
  slow.call_timeout = std::chrono::seconds(1);
  const std::vector<std::function<void(TaskBench&)>> ends = {
      [](TaskBench& bench) { bench.run->cancel(); },
      [](TaskBench& bench) { bench.run->cancel_turn(); },
      [](TaskBench& bench) { EXPECT_TRUE(bench.run->cancel_call("call_1")); },
      [](TaskBench& bench) { bench.loop.advance(std::chrono::seconds(2)); },
  };
  for (const auto& end : ends) {
    TaskBench bench(slow);
    bench.keeper.fails = true;
    end(bench);
    EXPECT_EQ(text_at(bench.take().back().data, "status"), "failed");
    EXPECT_TRUE(bench.tools.started[0]->is_left);
  }
}

TEST(AgentResumeRules, ARunThatIsDestroyedLeavesItsTasksToWhoeverGoesOn) {
  TaskBench bench;
  bench.run.reset();
  EXPECT_TRUE(bench.tools.started[0]->is_left);
  EXPECT_TRUE(bench.tools.started[0]->is_dropped);
}

TEST(AgentResumeRules, TheLastAnswerIsAskedForOnce) {
  AgentOptions options;
  options.budget.turns = 1;
  KeptBench first(options);
  first.start();
  first.model.call("look");
  first.model.end();
  first.loop.run();
  first.tools.end(0, "seen");
  first.loop.run();
  ASSERT_THAT(last_shown(first), HasSubstr("answer now"));
  const auto times_asked = [](RunBench& bench) {
    return std::ranges::count_if(bench.shown(), [](const ChatMessage& message) {
      return message.content.contains("answer now");
    });
  };
  // Also with an agent that has more to spend.
  KeptBench second;
  ASSERT_TRUE(second.resume(first.run->state()));
  EXPECT_EQ(times_asked(second), 1);
  second.model.say("So far.");
  second.model.end();
  EXPECT_EQ(text_at(second.take().back().data, "reason"), "budget: turns");
  KeptBench third;
  ASSERT_TRUE(third.resume(second.state(), "Go on"));
  EXPECT_EQ(times_asked(third), 0) << "there are tools again";
}

}  // namespace
}  // namespace sluice
