// What the model and the user are shown of what tools write.

#include <algorithm>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/run/agent_run_test_support.hpp"

namespace sluice {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

/// A run whose tool writes, and whose model is shown that at once.
struct WritingBench : RunBench {
  WritingBench() : RunBench(reacting(ReactionPolicy::When::every_chunk)) {
    start();
    model.call("stream");
    model.end(Completion::Reason::tool_calls);
    loop.run();
  }
  void write(ToolChunk chunk) {
    tools.started[0]->sink->on_output(std::move(chunk));
    loop.run();
  }
};

TEST(AgentOutput, TheModelIsToldWhatAnImageIs) {
  WritingBench bench;
  const json::object image{{"type", "image"}, {"mimeType", "image/png"}, {"data", "AAAA"}};
  bench.write({.content = image});
  EXPECT_THAT(bench.shown().back().content,
              AllOf(HasSubstr("[image: image/png]"), Not(HasSubstr("AAAA"))));
  const auto events = bench.take();
  const auto written =
      std::ranges::find(events, AgentEventType::tool_output_delta, &AgentEvent::type);
  ASSERT_NE(written, events.end());
  EXPECT_EQ(written->data.at("content"), image);
}

TEST(AgentOutput, OfACallThatIsMadeAnewOnlyTheNewOutputIsShown) {
  WritingBench bench;
  bench.write({.text = "two "});
  bench.model.say("[[pass]]");
  bench.model.end();
  bench.take();
  bench.write({.text = "two ", .is_restart = true});
  EXPECT_THAT(bench.shown().back().content,
              AllOf(HasSubstr("made anew"), HasSubstr("two "), Not(HasSubstr("two two"))));
  const auto events = bench.take();
  const auto written =
      std::ranges::find(events, AgentEventType::tool_output_delta, &AgentEvent::type);
  ASSERT_NE(written, events.end());
  EXPECT_EQ(written->data.at("restart"), true);
}

TEST(AgentOutput, AnUpdateSaysThatTheCallWasMadeAnew) {
  WritingBench bench;
  bench.write({.text = "two "});
  bench.model.say("Two, so far.");
  bench.model.end();
  bench.take();
  bench.write({.text = "four "});
  bench.write({.text = "two ", .is_restart = true});
  EXPECT_THAT(bench.shown().back().content, AllOf(HasSubstr("four"), Not(HasSubstr("made anew"))));
  bench.model.say("Four.");
  bench.model.end();
  bench.loop.run();
  EXPECT_THAT(bench.shown().back().content,
              AllOf(HasSubstr("made anew"), HasSubstr("two "), Not(HasSubstr("four"))));
}

}  // namespace
}  // namespace sluice
