// Calls that still run when the model is done.

#include <algorithm>
#include <chrono>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>

#include "agent/run/agent_run_test_support.hpp"
#include "json/members.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;
using ::testing::Contains;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

/// A run whose model has given its last answer, while two tools run.
struct GraceBench : RunBench {
  explicit GraceBench(std::chrono::nanoseconds grace)
      : RunBench({.budget = {.turns = 1}, .grace = grace}) {
    start();
    model.call("stream", {}, "a");
    model.call("other", {}, "b");
    model.end();
    loop.run();
    (void)run->inject({.text = "And?"});
    loop.run();
    model.say("Bye.");
    model.end();
    before = take();
  }
  std::vector<AgentEvent> before;
};

std::string output_in(const std::vector<AgentEvent>& events, std::string_view call) {
  std::string text;
  for (const AgentEvent& event : events) {
    if (event.type == AgentEventType::tool_output_delta && event.call_id == call) {
      text += event.text;
    }
  }
  return text;
}

TEST(AgentGrace, LateOutputIsForTheUserAlone) {
  GraceBench bench(500ms);
  ASSERT_THAT(bench.model.asked, SizeIs(2));
  EXPECT_THAT(bench.model.last().request.tools, ::testing::IsEmpty()) << "the last answer";
  bench.tools.write(0, "late");
  EXPECT_EQ(output_in(bench.take(), "a"), "late");
  bench.loop.advance(499ms);
  EXPECT_FALSE(bench.run->is_over());
  EXPECT_FALSE(bench.tools.started[0]->is_dropped);
  bench.tools.write(0, "later");  // which makes it no longer
  bench.loop.advance(1ms);
  EXPECT_TRUE(bench.run->is_over());
  EXPECT_TRUE(bench.tools.started[0]->is_dropped);
  const auto events = bench.take();
  EXPECT_EQ(output_in(events, "a"), "later");
  EXPECT_EQ(std::ranges::count(events, AgentEventType::tool_output_done, &AgentEvent::type), 2);
  ASSERT_EQ(events.back().type, AgentEventType::run_done);
  EXPECT_EQ(text_at(events.back().data, "reason"), "budget: turns");
  EXPECT_EQ(events.back().text, "Bye.");
  EXPECT_THAT(bench.model.asked, SizeIs(2));
  EXPECT_THAT(bench.run->history().messages(),
              Not(Contains(Field(&ChatMessage::content, HasSubstr("late")))));
}

TEST(AgentGrace, EndsWhenAllCallsHaveEnded) {
  GraceBench bench(1h);
  const TimePoint began = bench.loop.clock().now();
  bench.tools.end(1, "two");
  bench.loop.run();
  EXPECT_FALSE(bench.run->is_over());
  bench.tools.write(0, "late");
  bench.tools.end(0, "one");
  bench.loop.run();
  EXPECT_TRUE(bench.run->is_over());
  EXPECT_EQ(bench.loop.clock().now(), began);
  const auto events = bench.take();
  EXPECT_EQ(output_in(events, "a"), "late");
  EXPECT_EQ(events.back().type, AgentEventType::run_done);
  EXPECT_THAT(bench.model.asked, SizeIs(2)) << "the results are for the user";
}

TEST(AgentGrace, WithoutItCallsEndAtOnce) {
  GraceBench bench(0s);
  bench.loop.advance(0s);
  EXPECT_TRUE(bench.run->is_over());
  EXPECT_TRUE(bench.tools.started[0]->is_dropped);
  EXPECT_TRUE(bench.tools.started[1]->is_dropped);
}

}  // namespace
}  // namespace sluice
