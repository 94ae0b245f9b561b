// What users of other agents complain of (docs/robustness.md), played.

#include <chrono>
#include <cstddef>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <utility>

#include "agent/history/strict_history_test_support.hpp"
#include "agent/run/agent_run_test_support.hpp"
#include "json/members.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

/// A run whose model calls `stream` at once.
struct ComplaintBench : RunBench {
  explicit ComplaintBench(AgentOptions options = {}) : RunBench(std::move(options)) {
    start();
    model.call("stream", {}, "a");
    answer();
  }
  void answer() {
    model.end();
    loop.run();
  }
};

TEST(AgentComplaints, ATimeoutLeavesTheToolsOfItsServer) {
  ComplaintBench bench({.idle_timeout = 10s});
  const std::string offered = bench.model.last().request.tools;
  bench.loop.advance(10s);
  ASSERT_THAT(bench.model.asked, SizeIs(2));
  EXPECT_THAT(bench.shown().back().content, HasSubstr("silent for too long"));
  EXPECT_EQ(bench.model.last().request.tools, offered);
  bench.model.call("stream", {}, "b");
  bench.answer();
  ASSERT_THAT(bench.tools.started, SizeIs(2));
  bench.tools.end(1, "this time");
  bench.loop.run();
  EXPECT_EQ(bench.shown().back().content, "this time");
}

TEST(AgentComplaints, ACallOutlivesAllDefaultsIfItReportsProgress) {
  ComplaintBench bench;
  for (int minute = 0; minute < 24 * 60; minute += 4) {
    bench.loop.advance(4min);
    bench.tools.started[0]->sink->on_progress(minute, 24 * 60, "");
    bench.take();
  }
  ASSERT_FALSE(bench.tools.started[0]->is_dropped);
  bench.tools.end(0, "a day later");
  bench.loop.run();
  EXPECT_EQ(bench.shown().back().content, "a day later");
}

TEST(AgentComplaints, NoUpdateIsLostWhileTheModelIsBusy) {
  ComplaintBench bench(reacting(ReactionPolicy::When::every_chunk));
  constexpr int kChunks = 60;
  std::string expected;
  for (int i = 0; i < kChunks; ++i) {
    expected += "<" + std::to_string(i) + ">";
    bench.tools.write(0, "<" + std::to_string(i) + ">");
    bench.loop.run();
    // It answers now and then, and more comes meanwhile.
    if (i % 7 != 3) continue;
    bench.model.say("I see.");
    bench.answer();
  }
  bench.answer();
  std::string shown;
  for (const ChatMessage& message : bench.shown()) {
    for (auto at = message.content.find('<'); at != std::string::npos;
         at = message.content.find('<', at + 1)) {
      shown += message.content.substr(at, message.content.find('>', at) + 1 - at);
    }
  }
  EXPECT_EQ(shown, expected);
}

TEST(AgentComplaints, WhatComesAfterTheEndHarmsNothing) {
  for (const bool is_cancelled : {true, false}) {
    ComplaintBench bench(reacting(ReactionPolicy::When::every_chunk));
    const std::shared_ptr<ToolCallSink> sink = bench.tools.started[0]->sink;
    const auto come_late = [&] {
      sink->on_output({.text = "late"});
      sink->on_progress(1, 2, "late");
      sink->on_task("late");
      sink->on_end({.text = "late"});
      bench.loop.advance(1s);
    };
    is_cancelled ? void(bench.run->cancel_call("a")) : bench.tools.end(0, "done");
    bench.take();
    come_late();
    EXPECT_THAT(bench.take(), IsEmpty());
    EXPECT_THAT(bench.model.asked, SizeIs(2));
    bench.model.say("Done.");
    bench.answer();
    EXPECT_EQ(text_at(bench.take().back().data, "status"), "completed");
    come_late();
    EXPECT_THAT(bench.take(), IsEmpty()) << "the run is over";
    bench.run.reset();
    come_late();
    EXPECT_THAT(bench.take(), IsEmpty()) << "the run is gone";
  }
}

}  // namespace
}  // namespace sluice
