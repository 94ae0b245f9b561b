// Whole runs whose model asks for the output of tools, or looks at it when it has nothing else to
// do.

#include <chrono>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>

#include "agent/history/strict_history_test_support.hpp"
#include "agent/run/agent_run_test_support.hpp"
#include "json/members.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

/// A run whose tool `a` runs.
struct PolicyBench : RunBench {
  explicit PolicyBench(AgentOptions options) : RunBench(std::move(options)) {
    start();
    model.call("stream", {}, "a");
    answer();
  }
  /// The model ends its answer.
  void answer(std::string text = {}) {
    if (!text.empty()) model.say(std::move(text));
    model.end();
    loop.run();
  }
  void write(std::string text) {
    tools.write(0, std::move(text));
    loop.run();
  }
};

TEST(AgentPolicies, OnDemandTheModelAsksForTheOutput) {
  PolicyBench bench(reacting(ReactionPolicy::When::on_demand));
  ASSERT_THAT(bench.model.asked, SizeIs(2)) << "it is asked while the tool runs";
  EXPECT_EQ(bench.shown().back().content, R"({"status":"running","call_id":"a"})");
  bench.write("one ");
  bench.write("two ");
  bench.model.call("tool_status", {{"call_id", "a"}});
  bench.answer();
  ASSERT_THAT(bench.model.asked, SizeIs(3));
  EXPECT_THAT(bench.shown().back().content,
              AllOf(HasSubstr(R"("status":"running")"), HasSubstr(R"("so_far":"one two ")")));
  bench.answer("It has come to two.");
  bench.write("three ");
  bench.loop.advance(1min);
  EXPECT_THAT(bench.model.asked, SizeIs(3)) << "it has not asked again";
  bench.tools.end(0, "four");
  bench.loop.run();
  ASSERT_THAT(bench.model.asked, SizeIs(4));
  EXPECT_THAT(bench.shown().back().content, AllOf(HasSubstr("final"), HasSubstr("four")));
  EXPECT_THAT(bench.shown(), Not(Contains(Field(&ChatMessage::content, HasSubstr("interim")))));
  EXPECT_EQ(why_not_strict(bench.shown(), false), "");
  bench.answer("Four.");
  EXPECT_EQ(text_at(bench.take().back().data, "status"), "completed");
  EXPECT_EQ(bench.run->reactions(), 0U);
  EXPECT_EQ(bench.run->turns(), 4U);
}

TEST(AgentPolicies, OnIdleTheModelLooksWhenItHasNothingElseToDo) {
  AgentOptions options = reacting(ReactionPolicy::When::on_idle);
  options.policy.interrupts = true;  // which an idle model cannot be
  PolicyBench bench(options);
  EXPECT_THAT(bench.model.asked, SizeIs(1)) << "there is nothing to look at";
  bench.write("one ");
  ASSERT_THAT(bench.model.asked, SizeIs(2));
  bench.write("two ");
  bench.loop.advance(1min);
  EXPECT_FALSE(bench.model.last().is_cancelled);
  EXPECT_THAT(bench.model.asked, SizeIs(2)) << "it has something to do";
  bench.answer("One.");
  ASSERT_THAT(bench.model.asked, SizeIs(3)) << "now it has not";
  EXPECT_THAT(bench.shown().back().content, AllOf(HasSubstr("interim"), HasSubstr("two ")));
  // What the user wants goes first, and the output with it.
  bench.write("three ");
  ASSERT_TRUE(bench.run->inject({.text = "How far?"}));
  bench.answer("Two.");
  ASSERT_THAT(bench.model.asked, SizeIs(4));
  EXPECT_THAT(bench.shown(), Contains(Field(&ChatMessage::content, "How far?")));
  EXPECT_THAT(bench.shown().back().content, HasSubstr("three "));
  bench.answer("Three.");
  bench.loop.advance(1min);
  EXPECT_THAT(bench.model.asked, SizeIs(4)) << "it has seen all";
  EXPECT_EQ(bench.run->reactions(), 2U);
  bench.tools.end(0, "four");
  bench.loop.run();
  EXPECT_THAT(bench.shown().back().content, AllOf(HasSubstr("final"), HasSubstr("four")));
}

}  // namespace
}  // namespace sluice
