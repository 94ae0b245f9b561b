// Calls whose end nobody knows, answers that do not come to theirs, and what is passed on exactly.

#include <chrono>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <vector>

#include "agent/run/kept_run_test_support.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::StartsWith;

constexpr const char* kUnknownEnd = "It is not known whether the call was carried out: ";

/// A bench whose model has called `stream`.
struct LostEndBench : KeptBench {
  explicit LostEndBench(AgentOptions options = {}, AgentTool tool = {.name = "stream"})
      : KeptBench(std::move(options)) {
    tools.offered.front() = std::move(tool);
    start();
    model.call("stream", {}, "a");
    model.end(Completion::Reason::tool_calls);
    loop.run();
  }
};

TEST(AgentLostEnds, SilenceIsAFailureOnlyOfCallsThatMayBeRepeated) {
  for (const bool is_silence : {true, false}) {
    AgentOptions options;
    (is_silence ? options.idle_timeout : options.call_timeout) = 10s;
    LostEndBench bench(options);
    bench.loop.advance(10s);
    bench.loop.run();
    EXPECT_THAT(bench.shown().back().content, StartsWith(kUnknownEnd));
    for (const AgentTool& tool : {AgentTool{.name = "stream", .is_read_only = true},
                                  AgentTool{.name = "stream", .is_idempotent = true}}) {
      LostEndBench harmless(options, tool);
      harmless.loop.advance(10s);
      harmless.loop.run();
      EXPECT_THAT(harmless.shown().back().content, StartsWith("The tool failed: it "));
    }
  }
}

TEST(AgentLostEnds, ATaskIsNotGivenUpForItsSilence) {
  LostEndBench bench({.idle_timeout = 10s});
  bench.tools.started[0]->sink->on_task("t1");
  bench.loop.run();
  bench.loop.advance(1h);
  EXPECT_FALSE(bench.tools.started[0]->is_dropped);
  bench.tools.end(0, "built");
  bench.loop.run();
  EXPECT_EQ(bench.shown().back().content, "built");
}

TEST(AgentLostEnds, TimeInWhichTheUserIsAskedIsNoSilence) {
  LostEndBench bench({.idle_timeout = 10s});
  for (int i = 0; i < 4; ++i) {
    bench.loop.advance(9s);
    bench.tools.started[0]->asked_until = bench.loop.clock().now();
  }
  bench.loop.advance(9s);
  EXPECT_FALSE(bench.tools.started[0]->is_dropped);
  bench.loop.advance(2s);
  EXPECT_TRUE(bench.tools.started[0]->is_dropped);
}

TEST(AgentLostEnds, AnAnswerThatIsBrokenOffIsStillOwedByTheModelItself) {
  AgentOptions options;
  options.policy = {.when = ReactionPolicy::When::every_chunk, .interrupts = true};
  RunBench bench;
  FakeModel remarks;
  bench.reaction_model = &remarks;
  bench.run = std::make_shared<AgentRun>(bench.loop, bench.events, bench.agent_of(options));
  bench.start();
  bench.model.call("stream", {}, "a");
  bench.model.end(Completion::Reason::tool_calls);
  bench.loop.run();
  bench.tools.write(0, "1");
  bench.loop.run();
  ASSERT_THAT(remarks.asked, SizeIs(1));
  remarks.end();
  bench.loop.run();
  EXPECT_TRUE(bench.run->inject({.text = "And now?"}));
  bench.loop.run();
  ASSERT_THAT(bench.model.asked, SizeIs(2));
  bench.model.say("Well, ");
  bench.tools.write(0, "2");
  bench.loop.run();
  EXPECT_THAT(remarks.asked, SizeIs(1)) << "the user is still to be answered";
  ASSERT_THAT(bench.model.asked, SizeIs(3)) << "what the tool has written breaks it off";
  EXPECT_EQ(bench.run->turns(), 2U) << "it is the same turn";
  EXPECT_EQ(bench.run->reactions(), 2U);
  bench.model.say("now.");
  bench.model.end();
  bench.loop.run();
  bench.tools.write(0, "3");
  bench.loop.run();
  EXPECT_THAT(remarks.asked, SizeIs(2)) << "it is answered";
}

TEST(AgentLostEnds, AnAnswerThatIsCancelledIsCountedAndStays) {
  AgentOptions options;
  options.price = {.prompt = 1e6, .completion = 1e6};
  KeptBench bench(options);
  bench.start("Tell me");
  bench.model.say("Once upon a time");
  bench.loop.run();
  bench.run->cancel();
  const std::vector<AgentEvent> events = bench.take();
  const AgentEvent& last = events.back();
  ASSERT_EQ(last.type, AgentEventType::run_done);
  EXPECT_EQ(last.text, "Once upon a time");
  const json::object& usage = last.data.at("usage").as_object();
  EXPECT_EQ(usage.at("output_tokens"), 4) << "four bytes each";
  EXPECT_EQ(usage.at("cost").to_number<double>(), 4);
  KeptBench later;
  ASSERT_TRUE(later.resume(bench.state(), "Go on"));
  ASSERT_THAT(later.shown(), SizeIs(3));
  EXPECT_EQ(later.shown()[1].role, "assistant");
  EXPECT_EQ(later.shown()[1].content, "Once upon a time");
}

TEST(AgentLostEnds, WhatAnAnswerHasSaidBeforeItFailsStays) {
  KeptBench bench;
  bench.start("Tell me");
  bench.model.say("Once");
  bench.model.end(Completion::Reason::error);
  bench.loop.run();
  KeptBench later;
  ASSERT_TRUE(later.resume(bench.state(), "Go on"));
  ASSERT_THAT(later.shown(), SizeIs(3));
  EXPECT_EQ(later.shown()[1].content, "Once");
}

TEST(AgentLostEnds, NumbersThatWouldChangeOnTheirWayAreRefused) {
  for (const std::string arguments : {R"({"id":123456789012345678901})", R"({"x":1e999})"}) {
    RunBench bench;
    bench.start();
    bench.model.call_with_text("stream", arguments);
    bench.model.end(Completion::Reason::tool_calls);
    bench.loop.run();
    EXPECT_TRUE(bench.tools.started.empty());
    EXPECT_THAT(bench.shown().back().content, HasSubstr("The call was not made: a"));
    EXPECT_EQ(bench.shown()[1].tool_calls.at(0).arguments, arguments) << "as it was written";
  }
}

TEST(AgentLostEnds, ACallIsTheSameHoweverItsNumbersAreWritten) {
  RunBench bench;
  bench.start();
  bench.model.call("stream", {{"n", 100}}, "a");
  bench.model.call_with_text("stream", R"({"n":1.0e2})");
  bench.model.end(Completion::Reason::tool_calls);
  bench.loop.run();
  EXPECT_THAT(bench.tools.started, SizeIs(1));
  bench.tools.end(0, "done");
  bench.loop.run();
  EXPECT_THAT(bench.shown().back().content, HasSubstr("the same call is running as a"));
}

TEST(AgentLostEnds, WhatAServerDemandsBackStaysWithItsCalls) {
  KeptBench bench;
  bench.model.server_data = "signed";
  bench.start();
  bench.model.call("look", {}, "a");
  bench.model.end(Completion::Reason::tool_calls);
  bench.loop.run();
  bench.tools.end(0, "seen");
  bench.loop.run();
  ASSERT_THAT(bench.shown(), SizeIs(3));
  EXPECT_EQ(bench.shown()[1].server_data, "signed");
  bench.model.say("Done.");
  bench.model.end();
  bench.loop.run();
  KeptBench later;
  ASSERT_TRUE(later.resume(bench.state(), "Go on"));
  ASSERT_THAT(later.shown(), SizeIs(5));
  EXPECT_EQ(later.shown()[1].server_data, "signed");
  EXPECT_EQ(later.shown()[3].server_data, "") << "it has no calls";
}

}  // namespace
}  // namespace sluice
