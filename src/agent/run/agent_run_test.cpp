#include "agent/run/agent_run.hpp"

#include <chrono>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "agent/history/strict_history_test_support.hpp"
#include "agent/run/agent_run_test_support.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using When = ReactionPolicy::When;

std::string text_of(const std::vector<AgentEvent>& events, AgentEventType type) {
  std::string text;
  for (const AgentEvent& event : events) {
    if (event.type == type) text += event.text;
  }
  return text;
}

std::string status_in(const std::vector<AgentEvent>& events) {
  if (events.empty() || events.back().type != AgentEventType::run_done) return "goes on";
  return std::string(events.back().data.at("status").as_string());
}

TEST(AgentRun, AnAnswerIsTheEnd) {
  RunBench bench;
  bench.start("hello");
  EXPECT_EQ(bench.shown().back().content, "hello");
  bench.model.say("Hi");
  bench.model.say(" there");
  bench.model.end();
  const auto events = bench.take();
  std::vector<std::string> names;
  for (const AgentEvent& event : events) names.emplace_back(name_of(event.type));
  EXPECT_THAT(names, ElementsAre("sluice:run.started", "sluice:input.delivered", "response.created",
                                 "response.in_progress", "response.output_item.added",
                                 "response.content_part.added", "response.output_text.delta",
                                 "response.output_text.delta", "response.output_text.done",
                                 "response.content_part.done", "response.output_item.done",
                                 "response.completed", "sluice:run.done"));
  EXPECT_EQ(events.back().text, "Hi there");
  EXPECT_EQ(status_in(events), "completed");
  for (std::size_t i = 0; i < events.size(); ++i) EXPECT_EQ(events[i].sequence_number, i);
  EXPECT_TRUE(bench.run->is_over());
}

TEST(AgentRun, ResultsOfAllCallsAreShownTogetherInTheirOrder) {
  RunBench bench;
  bench.start();
  bench.model.call("stream", {{"n", 1}}, "a");
  bench.model.call("other", {}, "b");
  bench.model.end(Completion::Reason::tool_calls);
  bench.loop.run();
  ASSERT_THAT(bench.tools.started, SizeIs(2));
  EXPECT_EQ(to_json(bench.tools.started[0]->arguments), R"({"n":1})");
  bench.tools.write(1, "x");
  bench.tools.end(1, "second");
  bench.loop.run();
  EXPECT_THAT(bench.model.asked, SizeIs(1));
  bench.tools.end(0, "first");
  bench.loop.run();
  ASSERT_THAT(bench.model.asked, SizeIs(2));
  EXPECT_EQ(why_not_strict(bench.shown(), true), "");
  EXPECT_EQ(bench.shown()[2].content, "first");
  EXPECT_EQ(bench.shown()[3].content, "second");
  bench.model.say("Done.");
  bench.model.end();
  const auto events = bench.take();
  EXPECT_EQ(text_of(events, AgentEventType::tool_output_delta), "x");
  EXPECT_EQ(status_in(events), "completed");
}

TEST(AgentRun, TheModelReactsWhileATurnsToolRuns) {
  RunBench bench(reacting(When::every_chunk));
  bench.start("stream up to 3 numbers, and tell me the last");
  bench.model.call("stream", {}, "a");
  bench.model.end(Completion::Reason::tool_calls);
  bench.loop.run();
  bench.tools.write(0, "2 ");
  bench.loop.run();
  ASSERT_THAT(bench.model.asked, SizeIs(2));
  EXPECT_THAT(bench.shown().back().content, HasSubstr(R"("so_far":"2 ","seq":"0..0")"));
  // What comes meanwhile waits.
  bench.tools.write(0, "4 ");
  bench.tools.write(0, "6 ");
  bench.loop.run();
  EXPECT_THAT(bench.model.asked, SizeIs(2));
  bench.model.say("It began.");
  bench.model.end();
  bench.loop.run();
  ASSERT_THAT(bench.model.asked, SizeIs(3));
  EXPECT_EQ(bench.shown().back().role, "user");
  EXPECT_THAT(bench.shown().back().content, HasSubstr("seq=1..2 interim"));
  EXPECT_THAT(bench.shown().back().content, HasSubstr("4 6 "));
  bench.model.say("[[pa");
  bench.model.say("ss]]");
  bench.model.end();
  bench.loop.run();
  bench.tools.end(0, "2 4 6");
  bench.loop.run();
  ASSERT_THAT(bench.model.asked, SizeIs(4));
  EXPECT_THAT(bench.shown().back().content, HasSubstr("final - untrusted"));
  EXPECT_EQ(why_not_strict(bench.shown(), true), "");
  bench.model.say("The last number is 6.");
  bench.model.end();
  const auto events = bench.take();
  EXPECT_EQ(text_of(events, AgentEventType::output_text_delta), "It began.The last number is 6.");
  EXPECT_EQ(events.back().text, "The last number is 6.");
  EXPECT_EQ(bench.run->reactions(), 2U);
  EXPECT_EQ(bench.run->turns(), 2U);
  EXPECT_EQ(status_in(events), "completed");
}

TEST(AgentRun, AResultThatComesSoonReplacesThePlaceholder) {
  RunBench bench(reacting(When::every_chunk));
  bench.start();
  bench.model.call("stream", {}, "a");
  bench.model.end(Completion::Reason::tool_calls);
  bench.loop.run();
  bench.tools.write(0, "2 ");
  bench.loop.run();
  bench.tools.end(0, "2 4");
  bench.model.say("[[pass]]");
  bench.model.end();
  bench.loop.run();
  ASSERT_THAT(bench.model.asked, SizeIs(3));
  EXPECT_THAT(bench.shown(), SizeIs(3));
  EXPECT_EQ(bench.shown().back().content, "2 4");
}

TEST(AgentRun, PassThroughShowsTheModelTheResultAlone) {
  RunBench bench;
  bench.start();
  bench.model.call("stream", {}, "a");
  bench.model.end(Completion::Reason::tool_calls);
  bench.loop.run();
  for (int i = 0; i < 1000; ++i) bench.tools.write(0, "x");
  bench.loop.advance(1min);
  EXPECT_THAT(bench.model.asked, SizeIs(1));
}

TEST(AgentRun, AnInputDoesNotWaitForTools) {
  RunBench bench;
  bench.start();
  bench.model.call("stream", {}, "a");
  bench.model.end(Completion::Reason::tool_calls);
  bench.loop.run();
  const auto quiet = bench.run->inject({.text = "later", .when = RunInput::When::when_idle});
  const auto silent = bench.run->inject({.text = "by the way", .when = RunInput::When::silent});
  bench.loop.run();
  EXPECT_THAT(bench.model.asked, SizeIs(1));
  const auto now = bench.run->inject({.text = "how far?"});
  bench.loop.run();
  ASSERT_THAT(bench.model.asked, SizeIs(2));
  EXPECT_EQ(bench.shown().back().content, "how far?");
  EXPECT_EQ(bench.shown()[3].content, "by the way");
  EXPECT_EQ(why_not_strict(bench.shown(), false), "");
  bench.model.say("It runs.");
  bench.model.end();
  bench.loop.run();
  EXPECT_THAT(bench.model.asked, SizeIs(2));
  bench.tools.end(0, "done");
  bench.loop.run();
  ASSERT_THAT(bench.model.asked, SizeIs(3));
  bench.model.say("Done.");
  bench.model.end();
  bench.loop.run();
  ASSERT_THAT(bench.model.asked, SizeIs(4));
  EXPECT_EQ(bench.shown().back().content, "later");
  bench.model.end();
  EXPECT_EQ(status_in(bench.take()), "completed");
  EXPECT_EQ(*quiet, "input_2");
  EXPECT_EQ(*silent, "input_3");
  EXPECT_EQ(*now, "input_4");
}

TEST(AgentRun, AnInterruptBreaksTheAnswerOffAndKeepsWhatWasSaid) {
  RunBench bench;
  bench.start();
  bench.model.say("Once upon a ");
  bench.loop.run();
  ASSERT_TRUE(bench.run->inject({.text = "stop", .when = RunInput::When::interrupt}));
  bench.loop.run();
  ASSERT_THAT(bench.model.asked, SizeIs(2));
  EXPECT_TRUE(bench.model.asked[0]->is_cancelled);
  EXPECT_EQ(bench.shown()[1].content, "Once upon a ");
  EXPECT_EQ(bench.shown()[2].content, "stop");
  bench.model.say("Stopped.");
  bench.model.end();
  EXPECT_EQ(status_in(bench.take()), "completed");
}

TEST(AgentRun, AnInterruptMayCancelCalls) {
  for (const bool cancels : {true, false}) {
    AgentOptions options;
    options.cancels_on_interrupt = cancels;
    RunBench bench(options);
    bench.start();
    bench.model.call("stream", {}, "a");
    bench.model.end(Completion::Reason::tool_calls);
    bench.loop.run();
    ASSERT_TRUE(bench.run->inject({.text = "stop", .when = RunInput::When::interrupt}));
    bench.loop.run();
    EXPECT_EQ(bench.tools.started[0]->is_dropped, cancels);
    ASSERT_THAT(bench.model.asked, SizeIs(2));
    EXPECT_EQ(bench.shown().back().content, "stop");
    EXPECT_THAT(bench.shown()[2].content, HasSubstr(cancels ? "Interrupted" : "running"));
  }
}

TEST(AgentRun, APolicyMayInterruptTheAnswer) {
  AgentOptions options = reacting(When::every_chunk);
  options.policy.interrupts = true;
  RunBench bench(options);
  bench.start();
  bench.model.call("stream", {}, "a");
  bench.model.end(Completion::Reason::tool_calls);
  bench.loop.run();
  bench.tools.write(0, "1");
  bench.loop.run();
  bench.model.say("I see a 1, and ");
  bench.tools.write(0, "fire!");
  bench.loop.run();
  ASSERT_THAT(bench.model.asked, SizeIs(3));
  EXPECT_TRUE(bench.model.asked[1]->is_cancelled);
  EXPECT_THAT(bench.shown().back().content, HasSubstr("fire!"));
  EXPECT_EQ(why_not_strict(bench.shown(), true), "");
}

TEST(AgentRun, ACallThatRunsIsNotMadeAgain) {
  RunBench bench(reacting(When::every_chunk));
  bench.start();
  bench.model.call("stream", {{"n", 1}}, "a");
  bench.model.end(Completion::Reason::tool_calls);
  bench.loop.run();
  bench.tools.write(0, "1");
  bench.loop.run();
  bench.model.call("stream", {{"n", 1}}, "b");
  bench.model.call("stream", {{"n", 2}}, "c");
  bench.model.end(Completion::Reason::tool_calls);
  bench.loop.run();
  EXPECT_THAT(bench.tools.started, SizeIs(2));
  bench.tools.end(1, "two");
  bench.loop.run();
  const auto& shown = bench.shown();
  EXPECT_THAT(shown[shown.size() - 2].content, HasSubstr("running as a"));
  EXPECT_EQ(shown.back().content, "two");
}

TEST(AgentRun, TheModelCanAskForTheStateOfACallAndStopIt) {
  RunBench bench(reacting(When::every_chunk));
  bench.start();
  bench.model.call("stream", {}, "a");
  bench.model.end(Completion::Reason::tool_calls);
  bench.loop.run();
  EXPECT_THAT(bench.model.last().request.tools, HasSubstr("tool_cancel"));
  bench.tools.write(0, "one");
  bench.loop.run();
  bench.model.call("tool_status", {{"call_id", "a"}});
  bench.model.end(Completion::Reason::tool_calls);
  bench.loop.run();
  ASSERT_THAT(bench.model.asked, SizeIs(3));
  EXPECT_THAT(bench.shown().back().content, HasSubstr(R"("so_far":"one","seq":"0..0")"));
  bench.model.call("tool_cancel", {{"call_id", "a"}});
  bench.model.end(Completion::Reason::tool_calls);
  bench.loop.run();
  EXPECT_TRUE(bench.tools.started[0]->is_dropped);
  ASSERT_THAT(bench.model.asked, SizeIs(4));
  EXPECT_THAT(bench.shown().back().content, HasSubstr("The call was cancelled"));
  EXPECT_EQ(why_not_strict(bench.shown(), false), "");
  bench.model.end();
  EXPECT_EQ(status_in(bench.take()), "completed");
}

TEST(AgentRun, WhatCannotBeCalledIsSaid) {
  RunBench bench;
  bench.start();
  bench.model.call("nothing", {}, "a");
  bench.model.last().sink->on_delta(
      {.kind = Delta::Kind::tool_call, .text = R"({"name":"stream","arguments":"{oops"})"});
  bench.model.call("stream", {}, "a");
  bench.model.end(Completion::Reason::tool_calls);
  bench.loop.run();
  bench.tools.end(0, "fine");
  bench.loop.run();
  ASSERT_THAT(bench.model.asked, SizeIs(2));
  EXPECT_THAT(bench.shown()[2].content, HasSubstr("there is no tool nothing"));
  EXPECT_THAT(bench.shown()[3].content, HasSubstr("no JSON object"));
  EXPECT_EQ(bench.shown()[1].tool_calls[1].arguments, R"({"unreadable":"{oops"})")
      << "servers read it again";
  EXPECT_EQ(bench.shown()[4].content, "fine");
  EXPECT_NE(bench.shown()[4].tool_call_id, "a");
}

TEST(AgentRun, ArgumentsAreShownAsTheModelWritesThem) {
  RunBench bench;
  bench.model.streams_calls = true;
  bench.start();
  bench.model.say("I call.");
  bench.model.call("stream", {{"n", 1}}, "a");
  bench.model.end(Completion::Reason::tool_calls);
  const auto events = bench.take();
  EXPECT_EQ(text_of(events, AgentEventType::function_call_arguments_delta), R"({"n":1})");
  EXPECT_EQ(text_of(events, AgentEventType::function_call_arguments_done), R"({"n":1})");
  EXPECT_EQ(to_json(bench.tools.started[0]->arguments), R"({"n":1})");
}

TEST(AgentRun, ABudgetEndsWithALastAnswerWithoutTools) {
  AgentOptions options;
  options.budget.turns = 2;
  RunBench bench(options);
  bench.start();
  for (int i = 0; i < 2; ++i) {
    bench.model.call("stream", {{"n", i}});
    bench.model.end(Completion::Reason::tool_calls);
    bench.loop.run();
    bench.tools.end(bench.tools.started.size() - 1, "more");
    bench.loop.run();
  }
  ASSERT_THAT(bench.model.asked, SizeIs(3));
  EXPECT_THAT(bench.model.last().request.tools, IsEmpty());
  EXPECT_THAT(bench.shown().back().content, HasSubstr("answer now"));
  EXPECT_EQ(bench.shown().back().role, "tool") << "some models refuse a user behind a result";
  bench.model.say("So far: more.");
  bench.model.end();
  const auto events = bench.take();
  EXPECT_EQ(status_in(events), "incomplete");
  EXPECT_EQ(events.back().data.at("reason").as_string(), "budget: turns");
}

TEST(AgentRun, ReactionsAreCapped) {
  AgentOptions options = reacting(When::every_chunk);
  options.policy.max_reactions = 2;
  RunBench bench(options);
  bench.start();
  bench.model.call("stream", {}, "a");
  bench.model.end(Completion::Reason::tool_calls);
  bench.loop.run();
  for (int i = 0; i < 5; ++i) {
    bench.tools.write(0, "x");
    bench.loop.run();
    bench.model.say("ok");
    bench.model.end();
    bench.loop.run();
  }
  EXPECT_THAT(bench.model.asked, SizeIs(3));
  EXPECT_THAT(bench.names(), Contains("tool.reaction.skipped"));
  bench.tools.end(0, "xxxxx");
  bench.loop.run();
  EXPECT_THAT(bench.model.asked, SizeIs(4));
}

TEST(AgentRun, SilentAndLongCallsAreGivenUp) {
  AgentOptions options;
  options.idle_timeout = 10s;
  options.call_timeout = 60s;
  RunBench bench(options);
  bench.start();
  bench.model.call("stream", {}, "a");
  bench.model.call("other", {}, "b");
  bench.model.end(Completion::Reason::tool_calls);
  bench.loop.run();
  for (int i = 0; i < 8; ++i) {
    bench.loop.advance(9s);
    bench.tools.write(1, "x");
  }
  bench.loop.run();
  EXPECT_TRUE(bench.tools.started[0]->is_dropped);
  EXPECT_TRUE(bench.tools.started[1]->is_dropped);
  ASSERT_THAT(bench.model.asked, SizeIs(2));
  EXPECT_THAT(bench.shown()[2].content, HasSubstr("silent for too long"));
  EXPECT_THAT(bench.shown()[3].content, HasSubstr("took too long"));
}

TEST(AgentRun, CallsWaitForApproval) {
  AgentOptions options;
  options.approval = [](const AgentTool& tool, const json::object&) {
    return tool.name == "other" ? std::string("it is elsewhere") : std::string();
  };
  RunBench bench(options);
  bench.start();
  bench.model.call("stream", {}, "a");
  bench.model.call("other", {}, "b");
  bench.model.call("other", {{"n", 1}}, "c");
  bench.model.end(Completion::Reason::tool_calls);
  bench.loop.run();
  EXPECT_THAT(bench.tools.started, SizeIs(1));
  EXPECT_FALSE(bench.run->approve("a"));
  EXPECT_TRUE(bench.run->approve("b"));
  EXPECT_FALSE(bench.run->approve("b"));
  EXPECT_TRUE(bench.run->reject("c", "not now"));
  bench.loop.run();
  ASSERT_THAT(bench.tools.started, SizeIs(2));
  bench.tools.end(0, "one");
  bench.tools.end(1, "two");
  bench.loop.run();
  ASSERT_THAT(bench.model.asked, SizeIs(2));
  EXPECT_EQ(bench.shown()[3].content, "two");
  EXPECT_EQ(bench.shown()[4].content, "The user rejected this call: not now");
}

TEST(AgentRun, SoManyCallsRunAtATime) {
  AgentOptions options;
  options.max_running = 2;
  options.max_running_of_server = 1;
  RunBench bench(options);
  bench.start();
  for (int i = 0; i < 3; ++i) bench.model.call("stream", {{"n", i}});
  for (int i = 0; i < 2; ++i) bench.model.call("other", {{"n", i}});
  bench.model.end(Completion::Reason::tool_calls);
  bench.loop.run();
  ASSERT_THAT(bench.tools.started, SizeIs(2));
  EXPECT_EQ(bench.tools.started[1]->tool, "other");
  bench.tools.end(0, "0");
  bench.loop.run();
  ASSERT_THAT(bench.tools.started, SizeIs(3));
  EXPECT_EQ(bench.tools.started[2]->tool, "stream");
}

TEST(AgentRun, CancellingEndsEverything) {
  RunBench bench;
  bench.start();
  bench.model.call("stream", {}, "a");
  bench.model.end(Completion::Reason::tool_calls);
  bench.loop.run();
  bench.run->cancel();
  EXPECT_TRUE(bench.tools.started[0]->is_dropped);
  EXPECT_EQ(status_in(bench.take()), "cancelled");
  EXPECT_FALSE(bench.run->inject({.text = "more"}));
  bench.tools.write(0, "late");
  EXPECT_THAT(bench.take(), IsEmpty());
}

TEST(AgentRun, CancellingATurnLeavesTheRunForWhatWaits) {
  RunBench bench;
  bench.start();
  bench.model.call("stream", {}, "a");
  bench.model.end(Completion::Reason::tool_calls);
  bench.loop.run();
  ASSERT_TRUE(bench.run->inject({.text = "then this", .when = RunInput::When::when_idle}));
  bench.run->cancel_turn();
  bench.loop.run();
  ASSERT_THAT(bench.model.asked, SizeIs(2));
  EXPECT_THAT(bench.shown()[2].content, HasSubstr("Cancelled"));
  EXPECT_EQ(bench.shown().back().content, "then this");
}

TEST(AgentRun, DroppingARunCancelsWhatItHasBegun) {
  RunBench bench;
  bench.start();
  bench.model.say("I");
  bench.loop.run();
  bench.run.reset();
  bench.loop.run();
  EXPECT_TRUE(bench.model.last().is_cancelled);
}

TEST(AgentRun, AModelThatFailsEndsTheRun) {
  RunBench bench;
  bench.start();
  bench.model.say("I");
  bench.model.end(Completion::Reason::error);
  auto events = bench.take();
  EXPECT_EQ(status_in(events), "failed");
  EXPECT_EQ(events.back().data.at("reason").as_string(), "it is gone");
  RunBench refused;
  refused.model.refuses = true;
  refused.start();
  EXPECT_EQ(status_in(refused.take()), "failed");
}

TEST(AgentRun, OutputThatNobodyTakesHoldsTheToolUp) {
  RunBench bench({}, {.overflow = OutputOverflow::block, .max_call_events = 10});
  bench.start();
  bench.model.call("stream", {}, "a");
  bench.model.call("other", {}, "b");
  bench.model.end(Completion::Reason::tool_calls);
  bench.take();
  for (int i = 0; i < 10; ++i) bench.tools.write(0, "x");
  bench.tools.write(1, "y");
  EXPECT_TRUE(bench.tools.started[0]->is_paused);
  EXPECT_FALSE(bench.tools.started[1]->is_paused);
  bench.loop.advance(1h);  // which is not the tool's silence
  EXPECT_FALSE(bench.tools.started[0]->is_dropped);
  bench.take();
  EXPECT_FALSE(bench.tools.started[0]->is_paused);
}

TEST(AgentRun, ABurstLosesNothing) {
  for (const auto overflow : {OutputOverflow::block, OutputOverflow::coalesce}) {
    RunBench bench({}, {.overflow = overflow});
    bench.start();
    bench.model.call("stream", {}, "a");
    bench.model.end(Completion::Reason::tool_calls);
    bench.take();
    std::string written;
    for (int i = 0; i < 1000; ++i) {
      written += std::to_string(i) + " ";
      bench.tools.write(0, std::to_string(i) + " ");
    }
    bench.tools.end(0, "done");
    EXPECT_EQ(text_of(bench.take(), AgentEventType::tool_output_delta), written);
  }
}

TEST(AgentRun, WhatIsDroppedIsSaid) {
  RunBench bench({}, {.overflow = OutputOverflow::drop_oldest, .max_call_events = 10});
  bench.start();
  bench.model.call("stream", {}, "a");
  bench.model.end(Completion::Reason::tool_calls);
  bench.take();
  for (int i = 0; i < 1000; ++i) bench.tools.write(0, "x");
  EXPECT_FALSE(bench.tools.started[0]->is_paused);
  const auto events = bench.take();
  ASSERT_THAT(events, SizeIs(10));
  EXPECT_EQ(events[0].dropped, 990U);
  EXPECT_EQ(events[0].first, 990U);
}

TEST(AgentRun, GuardrailsChangeAndRefuse) {
  AgentOptions options = reacting(When::every_chunk);
  options.guardrails.input = [](std::string text) -> Result<std::string> { return text + "!"; };
  options.guardrails.arguments = [](const AgentTool&,
                                    json::object arguments) -> Result<json::object> {
    if (arguments.contains("bad")) return fail(-32602, "bad is not allowed");
    return arguments;
  };
  options.guardrails.chunk = [](const AgentTool&, std::string) -> Result<std::string> {
    return fail(-32602, "secret");
  };
  options.guardrails.result = [](const AgentTool&, std::string text) -> Result<std::string> {
    return text.substr(0, 3);
  };
  options.guardrails.output = [](std::string) -> Result<std::string> {
    return fail(-32602, "not fit to print");
  };
  RunBench bench(options);
  bench.start();
  EXPECT_EQ(bench.shown().back().content, "go!");
  bench.model.call("stream", {{"bad", 1}}, "a");
  bench.model.call("stream", {}, "b");
  bench.model.end(Completion::Reason::tool_calls);
  bench.loop.run();
  ASSERT_THAT(bench.tools.started, SizeIs(1));
  bench.tools.write(0, "password");
  bench.loop.run();
  EXPECT_THAT(bench.shown()[2].content, HasSubstr("bad is not allowed"));
  EXPECT_THAT(bench.shown()[3].content, HasSubstr("[withheld: secret]"));
  EXPECT_THAT(bench.shown()[3].content, Not(HasSubstr("password")));
  bench.tools.end(0, "abcdef");
  bench.model.end();
  bench.loop.run();
  EXPECT_EQ(bench.shown().back().content, "abc");
  bench.model.say("All.");
  bench.model.end();
  const auto events = bench.take();
  EXPECT_EQ(status_in(events), "failed");
  EXPECT_EQ(events.back().text, "");
}

TEST(AgentRun, WhatATimeBudgetEndsIsAnsweredOnceMore) {
  AgentOptions options;
  options.budget.time = 10s;
  RunBench bench(options);
  bench.start();
  bench.model.call("stream", {}, "a");
  bench.model.end(Completion::Reason::tool_calls);
  bench.loop.run();
  bench.loop.advance(11s);
  ASSERT_THAT(bench.model.asked, SizeIs(2));
  EXPECT_THAT(bench.model.last().request.tools, IsEmpty());
  bench.model.say("No time.");
  bench.model.end();
  bench.loop.run();
  EXPECT_FALSE(bench.tools.started[0]->is_dropped) << "it has its grace";
  bench.loop.advance(500ms);
  EXPECT_TRUE(bench.tools.started[0]->is_dropped);
  EXPECT_EQ(status_in(bench.take()), "incomplete");
}

}  // namespace
}  // namespace sluice
