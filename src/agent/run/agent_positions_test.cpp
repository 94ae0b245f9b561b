// Calls that are taken up again in the session of their server.

#include <chrono>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "agent/run/agent_run.hpp"
#include "agent/run/kept_run_test_support.hpp"
#include "json/json.hpp"
#include "json/members.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

/// A run whose call has written one chunk that was taken, and one that was not.
struct StreamingBench : KeptBench {
  explicit StreamingBench(std::string_view tool = "other") {
    start();
    model.call(tool);
    model.end();
    loop.run();
    sink().on_position("begin");
    write_chunk("one");
    take();
    write_chunk("two");
  }
  [[nodiscard]] ToolCallSink& sink() { return *tools.started[0]->sink; }
  void write_chunk(const std::string& text) {
    write(text);
    sink().on_position("behind " + text);
    loop.run();
  }
  void write(const std::string& text) { tools.write(0, text); }
};

/// Where a state says that its only call can be taken up.
std::string position_in(const json::object& state) {
  const json::object& call = state.at("calls").at(0).get_object();
  if (!call.contains("position")) return {};
  return std::string(text_at(call, "position")) + " " + to_json(call.at("chunks"));
}

TEST(AgentPositions, ACallIsTakenUpBehindWhatWasTaken) {
  StreamingBench first;
  const json::object state = first.run->snapshot();
  EXPECT_EQ(position_in(state), "behind one 1");
  KeptBench second;
  ASSERT_TRUE(second.resume(state));
  ASSERT_EQ(second.tools.started.size(), 1U);
  EXPECT_EQ(second.tools.started[0]->position, "behind one");
  EXPECT_EQ(position_in(second.run->state()), "behind one 1") << "nothing has come yet";
  second.tools.write(0, "two");
  std::vector<AgentEvent> chunks;
  for (AgentEvent& event : second.take()) {
    if (event.type == AgentEventType::tool_output_delta) chunks.push_back(std::move(event));
  }
  ASSERT_EQ(chunks.size(), 1U);
  EXPECT_EQ(chunks[0].first, 1U);
  second.tools.end(0, "done");
  second.loop.run();
  EXPECT_EQ(last_shown(second), "done");
}

TEST(AgentPositions, APositionIsKeptAtOnceAndThenNowAndThen) {
  StreamingBench bench;
  EXPECT_EQ(position_in(bench.state()), "begin 0");
  bench.loop.advance(4s);
  const int asked = bench.keeper.asked;
  bench.write_chunk("three");
  EXPECT_EQ(bench.keeper.asked, asked);
  bench.take();
  bench.loop.advance(1s);
  bench.write_chunk("four");
  EXPECT_EQ(bench.keeper.asked, asked + 1);
  EXPECT_EQ(position_in(bench.state()), "behind three 3");
}

TEST(AgentPositions, ARunThatIsDestroyedLeavesACallThatIsKeptOrInASnapshot) {
  StreamingBench kept;
  kept.run.reset();
  EXPECT_TRUE(kept.tools.started[0]->is_left);
  EXPECT_EQ(position_in(kept.state()), "behind one 1") << "what was taken is known";

  for (const bool has_position : {true, false}) {
    RunBench bench;
    bench.start();
    for (const bool is_before : {true, false}) {
      bench.model.call("other", {{"before", is_before}});
      bench.model.call("stream", {{"before", is_before}});
      bench.model.end();
      bench.loop.run();
      if (has_position) {
        for (const auto& each : bench.tools.started) each->sink->on_position("here");
      }
      if (is_before) {
        bench.run->snapshot();
        ASSERT_TRUE(bench.run->inject({.text = "And these"}));
        bench.loop.run();
      }
    }
    ASSERT_EQ(bench.tools.started.size(), 4U);
    bench.run.reset();
    for (std::size_t i = 0; i < 4; ++i) {
      EXPECT_EQ(bench.tools.started[i]->is_left, has_position && i < 2) << i;
      EXPECT_TRUE(bench.tools.started[i]->is_dropped);
    }
  }
}

TEST(AgentPositions, WhatIsCancelledIsNotLeft) {
  StreamingBench bench;
  bench.run->snapshot();
  bench.run->cancel();
  bench.loop.run();
  EXPECT_TRUE(bench.tools.started[0]->is_dropped);
  EXPECT_FALSE(bench.tools.started[0]->is_left);
}

TEST(AgentPositions, ACallWithoutAPositionHasAnUnknownEnd) {
  StreamingBench first;
  json::object state = first.run->snapshot();
  state.at("calls").at(0).get_object().erase("position");
  KeptBench second;
  ASSERT_TRUE(second.resume(state));
  EXPECT_TRUE(second.tools.started.empty());
  EXPECT_THAT(last_shown(second), HasSubstr("not known whether"));
}

TEST(AgentPositions, ACallThatMayHaveToBeMadeAgainIsApprovedFirst) {
  StreamingBench first("look");
  const json::object state = first.run->snapshot();
  AgentOptions options;
  options.approval = [](const AgentTool&, const json::object&) { return std::string("ask"); };
  KeptBench second(options);
  ASSERT_TRUE(second.resume(state));
  EXPECT_TRUE(second.tools.started.empty());
  ASSERT_TRUE(second.run->approve("call_1"));
  second.loop.run();
  ASSERT_EQ(second.tools.started.size(), 1U);
  EXPECT_EQ(second.tools.started[0]->position, "behind one");
}

}  // namespace
}  // namespace sluice
