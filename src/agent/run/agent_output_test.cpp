// What the model and the user are shown of what tools write.

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <expected>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <memory>
#include <optional>
#include <ranges>
#include <string>
#include <string_view>
#include <utility>

#include "agent/history/strict_history_test_support.hpp"
#include "agent/run/agent_run_test_support.hpp"
#include "agent/run/kept_run_test_support.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

/// A run whose tool writes, and whose model is shown that at once.
struct WritingBench : RunBench {
  explicit WritingBench(AgentOptions options = reacting(ReactionPolicy::When::every_chunk))
      : RunBench(std::move(options)) {
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

const json::object kGif{{"type", "image"}, {"mimeType", "image/gif"}, {"data", "R0lGODlh"}};

AgentOptions seeing(Guardrails guardrails = {}) {
  AgentOptions options = reacting(ReactionPolicy::When::every_chunk);
  options.max_images = 1;
  options.guardrails = std::move(guardrails);
  return options;
}

TEST(AgentOutput, AModelThatSeesIsShownTheLastImage) {
  WritingBench bench(seeing());
  bench.write({.content = kGif});
  ASSERT_EQ(bench.shown().back().images.size(), 1U);
  EXPECT_EQ(*bench.shown().back().images[0].base64, "R0lGODlh");
  EXPECT_EQ(bench.shown().back().images[0].mime_type, "image/gif");
  bench.model.say("A picture.");
  bench.model.end();
  bench.loop.run();
  bench.tools.started[0]->sink->on_end({.text = "done", .result = {{"content", {kGif}}}});
  bench.loop.run();
  EXPECT_EQ(bench.shown().back().images.size(), 1U);
  const auto images = [](const ChatMessage& message) { return message.images.size(); };
  EXPECT_EQ(std::ranges::max(bench.shown() | std::views::transform(images)), 1U);
  EXPECT_EQ(std::ranges::count(bench.shown() | std::views::transform(images), 1U), 1);
}

TEST(AgentOutput, ImagesOfACallThatIsMadeAnewAreForgotten) {
  WritingBench bench(seeing());
  bench.write({.content = kGif});
  bench.model.say("[[pass]]");
  bench.model.end();
  bench.take();
  bench.write({.text = "two ", .is_restart = true});
  EXPECT_TRUE(bench.shown().back().images.empty());
}

TEST(AgentOutput, AGuardrailWithholdsTheImageWithItsText) {
  WritingBench bench(
      seeing({.result = [](const AgentTool&, std::string) -> std::expected<std::string, Error> {
                return std::unexpected(Error{1, "no"});
              },
              .chunk = [](const AgentTool&, std::string) -> std::expected<std::string, Error> {
                return "a picture";
              }}));
  bench.write({.content = kGif});
  EXPECT_THAT(bench.shown().back().content, HasSubstr("a picture"));
  EXPECT_TRUE(bench.shown().back().images.empty());
  bench.model.say("Yes.");
  bench.model.end();
  bench.loop.run();
  bench.tools.started[0]->sink->on_end({.text = "done", .result = {{"content", {kGif}}}});
  bench.loop.run();
  EXPECT_THAT(bench.shown().back().content, HasSubstr("withheld"));
  EXPECT_TRUE(bench.shown().back().images.empty());
}

TEST(AgentOutput, AServerThatRefusesImagesIsAskedWithoutThem) {
  WritingBench bench(seeing());
  bench.write({.content = kGif});
  ASSERT_EQ(bench.shown().back().images.size(), 1U);
  const std::size_t asked = bench.model.asked.size();
  bench.model.refuse();
  bench.loop.run();
  ASSERT_EQ(bench.model.asked.size(), asked + 1);
  EXPECT_TRUE(bench.shown().back().images.empty());
  EXPECT_THAT(bench.shown().back().content, HasSubstr("[image: image/gif]"));
  bench.model.say("A picture.");
  bench.model.end();
  bench.take();
  bench.tools.started[0]->sink->on_end({.text = "done", .result = {{"content", {kGif}}}});
  bench.loop.run();
  EXPECT_TRUE(bench.shown().back().images.empty()) << "nor later";
  bench.model.refuse();
  bench.loop.run();
  EXPECT_TRUE(bench.run->is_over()) << "it was not for the images";
}

TEST(AgentOutput, WhereRolesAlternateImagesAreLeftToTheirText) {
  AgentOptions options = seeing();
  options.alternates = true;
  WritingBench bench(std::move(options));
  bench.write({.content = kGif});
  EXPECT_THAT(bench.shown().back().content, HasSubstr("[image: image/gif]"));
  EXPECT_TRUE(bench.shown().back().images.empty());
}

TEST(AgentOutput, ImagesAreNotKept) {
  WritingBench bench(seeing());
  bench.write({.content = kGif});
  EXPECT_THAT(to_json(bench.run->state()),
              AllOf(HasSubstr("[image: image/gif]"), Not(HasSubstr("R0lGODlh"))));
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

TEST(AgentOutput, ATemplateThatDemandsItGetsRolesThatAlternate) {
  RunBench bench;
  bench.model.alternates = true;
  bench.run = std::make_shared<AgentRun>(
      bench.loop, bench.events, bench.agent_of(reacting(ReactionPolicy::When::every_chunk)));
  bench.start();
  bench.model.call("stream", {}, "a");
  bench.model.end(Completion::Reason::tool_calls);
  bench.loop.run();
  ASSERT_TRUE(bench.run->inject({.text = "Well?"}));
  ASSERT_TRUE(bench.run->inject({.text = "And?"}));
  bench.loop.run();
  EXPECT_THAT(bench.shown().back().content, AllOf(HasSubstr("Well?"), HasSubstr("And?")));
  EXPECT_EQ(why_not_strict(bench.shown(), true), "");
  EXPECT_EQ(bench.shown().size(), 3U);
  bench.model.say("Soon.");
  bench.model.end();
  bench.tools.write(0, "half");
  bench.loop.run();
  ASSERT_TRUE(bench.run->inject({.text = "Now?", .when = RunInput::When::interrupt}));
  bench.loop.run();
  EXPECT_THAT(bench.shown().back().content, AllOf(HasSubstr("half"), HasSubstr("Now?")));
  EXPECT_EQ(why_not_strict(bench.shown(), true), "");
}

TEST(AgentOutput, ARuleGivesSingleCallsAnotherPolicy) {
  AgentOptions options;
  options.policies["other"].when = ReactionPolicy::When::every_chunk;
  options.policy_rule = [](const AgentTool& tool, const json::object& arguments) {
    std::optional<ReactionPolicy> policy;
    if (tool.name == "stream" && arguments.contains("loud")) {
      policy = ReactionPolicy{.when = ReactionPolicy::When::every_chunk};
    }
    return policy;
  };
  RunBench bench(options);
  bench.start();
  bench.model.call("stream", {}, "quiet");
  bench.model.call("stream", {{"loud", true}}, "loud");
  bench.model.call("other", {}, "by_tool");
  bench.model.end(Completion::Reason::tool_calls);
  bench.loop.run();
  for (const auto& [call, asked] : {std::pair(0, 1U), std::pair(1, 2U), std::pair(2, 3U)}) {
    bench.tools.write(static_cast<std::size_t>(call), "news");
    bench.loop.run();
    EXPECT_EQ(bench.model.asked.size(), asked) << "call " << call;
    bench.model.end();
    bench.loop.run();
  }
}

TEST(AgentOutput, ThePolicyOfACallChangesWhileItRuns) {
  RunBench bench;
  bench.start();
  bench.model.call("stream", {}, "a");
  bench.model.call("stream", {{"n", 2}}, "b");
  bench.model.end(Completion::Reason::tool_calls);
  bench.loop.run();
  bench.tools.write(0, "so far");
  bench.tools.write(1, "of b");
  bench.loop.run();
  ASSERT_EQ(bench.model.asked.size(), 1U);
  ReactionPolicy loud{.when = ReactionPolicy::When::every_chunk, .max_reactions = 1};
  ASSERT_TRUE(bench.run->set_policy("a", loud));
  bench.loop.run();
  ASSERT_EQ(bench.model.asked.size(), 2U) << "what waits counts";
  EXPECT_THAT(bench.shown()[2].content, HasSubstr("so far"));
  EXPECT_THAT(bench.shown()[3].content, Not(HasSubstr("of b")));
  bench.model.end();
  bench.tools.write(0, "more");
  bench.loop.run();
  EXPECT_EQ(bench.model.asked.size(), 2U) << "its reactions are used up";
  loud.max_reactions = 2;
  ASSERT_TRUE(bench.run->set_policy("a", loud));
  bench.loop.run();
  EXPECT_EQ(bench.model.asked.size(), 3U);
  bench.model.end();
  ASSERT_TRUE(bench.run->set_policy("a", {}));
  bench.tools.write(0, "and more");
  bench.loop.run();
  EXPECT_EQ(bench.model.asked.size(), 3U);
  EXPECT_FALSE(bench.run->set_policy("a", {.when = ReactionPolicy::When::every_n, .every = 0}));
  EXPECT_FALSE(bench.run->set_policy("c", loud));
  bench.tools.end(0, "done");
  EXPECT_FALSE(bench.run->set_policy("a", loud)) << "it has ended";
}

TEST(AgentOutput, ProgressIsToldToTheUserAndKeepsACallAlive) {
  AgentOptions options = reacting(ReactionPolicy::When::every_chunk);
  options.idle_timeout = 10s;
  WritingBench bench(options);
  bench.take();
  for (int i = 1; i <= 3; ++i) {
    bench.loop.advance(9s);
    bench.tools.started[0]->sink->on_progress(i, 3, i == 2 ? "two of three" : "");
  }
  EXPECT_FALSE(bench.tools.started[0]->is_dropped);
  EXPECT_EQ(bench.model.asked.size(), 1U) << "it is no output";
  std::string told;
  for (const AgentEvent& event : bench.take()) {
    EXPECT_EQ(name_of(event.type), "sluice:tool.progress");
    EXPECT_EQ(event.call_id, "call_1");
    told += to_json(event.data);
  }
  EXPECT_EQ(told, R"({"progress":1,"total":3}{"progress":2,"total":3,"message":"two of three"})"
                  R"({"progress":3,"total":3})");
  bench.loop.advance(10s);
  EXPECT_TRUE(bench.tools.started[0]->is_dropped) << "it is silent now";
}

/// What running tools write is no part of what is kept, nor of what the model is shown later.
TEST(AgentOutput, TenThousandChunksLeaveNoTrace) {
  using enum ReactionPolicy::When;
  for (const ReactionPolicy::When when : {pass_through, on_demand, on_idle}) {
    const AgentOptions options = reacting(when);
    KeptBench first(options);
    first.start();
    first.model.call("look");
    first.model.end();
    first.loop.run();
    const std::size_t asked = first.model.asked.size();
    for (int i = 0; i < 10'000; ++i) {
      first.tools.write(0, "line " + std::to_string(i) + " of what is built\n");
      first.loop.run();
      first.take();
    }
    if (when == on_idle) {
      EXPECT_EQ(first.model.asked.size(), asked + 1) << "the model is still busy with the first";
      first.model.say("I see.");
      first.model.end();
      first.loop.run();
      EXPECT_THAT(last_shown(first), HasSubstr("line 9999 "));
    } else {
      EXPECT_EQ(first.model.asked.size(), asked);
    }
    const json::object state = first.run->state();
    // An update shows the end of what was written, at most max_update bytes.
    EXPECT_LT(to_json(state).size(), when == on_idle ? 12'000U : 2'000U);
    KeptBench second(options);
    ASSERT_TRUE(second.resume(parse_json(to_json(state)).value().get_object()));
    for (const AgentEvent& event : second.take()) {
      EXPECT_NE(event.type, AgentEventType::tool_output_delta);
    }
    second.tools.end(0, "built");
    if (!second.model.asked.empty()) second.model.end();  // it could ask for output
    second.loop.run();
    std::size_t shown = 0;
    for (const ChatMessage& message : second.shown()) shown += message.content.size();
    EXPECT_LT(shown, when == on_idle ? 10'000U : 500U);
    EXPECT_EQ(second.shown().front().content, "go") << "the conversation is whole";
    EXPECT_TRUE(std::ranges::any_of(
        second.shown(), [](const ChatMessage& each) { return each.content.contains("built"); }));
  }
}

TEST(AgentOutput, AMarkThatIsBrokenOffIsNotShownAndLeavesNoTrace) {
  for (const std::string_view begun : {"[", " [[pa", "[[pass]", "[[pass]]"}) {
    for (const bool is_cancelled : {true, false}) {
      RunBench bench;
      bench.start();
      bench.model.say(std::string(begun));
      bench.loop.run();
      is_cancelled ? bench.run->cancel() : bench.model.end(Completion::Reason::length);
      for (const AgentEvent& event : bench.take()) {
        EXPECT_NE(event.type, AgentEventType::output_text_delta) << begun;
      }
      EXPECT_THAT(bench.run->history().messages(), SizeIs(1)) << begun;
    }
  }
}

}  // namespace
}  // namespace sluice
