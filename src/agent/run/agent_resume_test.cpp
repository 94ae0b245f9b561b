// Runs that break off and go on with what was kept of them.

#include <algorithm>
#include <functional>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <map>
#include <optional>
#include <random>
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

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(AgentResumeTest, ACallIsKeptAsBegunBeforeItBegins) {
  KeptBench bench;
  bench.start();
  bench.keeper.keeps_at_once = false;
  bench.model.call("other");
  bench.model.end();
  bench.loop.run();
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(bench.tools.started.empty());
    ASSERT_TRUE(bench.keeper.is_waiting());
    bench.keeper.finish();
    bench.loop.run();
  }
  EXPECT_EQ(bench.tools.started.size(), 1U);
  EXPECT_EQ(text_at(bench.state().at("calls").at(0).get_object(), "state"), "begun");
}

TEST(AgentResumeTest, WhatHadNotBegunBegins) {
  KeptBench first({.max_running = 1});
  first.start();
  first.model.call("other", {{"n", 1}});
  first.model.call("other", {{"n", 2}});
  first.model.end();
  first.loop.run();
  EXPECT_EQ(first.tools.started.size(), 1U);
  KeptBench second;
  ASSERT_TRUE(second.resume(first.state()));
  ASSERT_EQ(second.tools.started.size(), 1U) << "the other has begun before";
  EXPECT_EQ(to_json(second.tools.started[0]->arguments), R"({"n":2})");
  second.tools.end(0, "two");
  second.loop.run();
  const auto& shown = second.shown();
  ASSERT_EQ(shown.size(), 4U);
  EXPECT_THAT(shown[2].content, HasSubstr("not known whether"));
  EXPECT_EQ(shown[3].content, "two");
}

TEST(AgentResumeTest, WhatOnlyReadsIsMadeAgain) {
  KeptBench first;
  first.start();
  first.model.call("look");
  first.model.end();
  first.loop.run();
  KeptBench second;
  ASSERT_TRUE(second.resume(first.state()));
  ASSERT_EQ(second.tools.started.size(), 1U);
  EXPECT_EQ(second.tools.started[0]->task, "");
}

TEST(AgentResumeTest, ATaskIsTakenUpAgain) {
  KeptBench first;
  first.start();
  first.model.call("other");
  first.model.end();
  first.loop.run();
  first.tools.started[0]->sink->on_task("task-7");
  first.loop.run();
  KeptBench second;
  ASSERT_TRUE(second.resume(first.state()));
  ASSERT_EQ(second.tools.started.size(), 1U);
  EXPECT_EQ(second.tools.started[0]->task, "task-7");
  second.tools.end(0, "done");
  second.loop.run();
  EXPECT_EQ(last_shown(second), "done");
}

TEST(AgentResumeTest, AnEndThatTheModelHasNotSeenIsShown) {
  KeptBench first;
  first.start();
  first.model.call("other");
  first.model.call("look");
  first.model.end();
  first.loop.run();
  first.tools.end(0, "one");
  first.loop.run();
  KeptBench second;
  ASSERT_TRUE(second.resume(first.state()));
  second.tools.end(0, "two");
  second.loop.run();
  EXPECT_EQ(second.shown()[2].content, "one");
  EXPECT_EQ(second.shown()[3].content, "two");
}

TEST(AgentResumeTest, AnEndIsToldOnceItIsKept) {
  KeptBench first;
  first.start();
  first.model.call("other");
  first.model.end();
  first.take();
  const auto known = [&] {
    return std::string(text_at(first.run->state().at("calls").at(0).get_object(), "state"));
  };
  EXPECT_EQ(known(), "begun");
  first.keeper.keeps_at_once = false;
  first.tools.end(0, "done");
  EXPECT_THAT(first.names(), IsEmpty());
  EXPECT_EQ(first.model.asked.size(), 1U);
  EXPECT_EQ(known(), "unkept");
  const json::object snapshot = first.run->state();
  first.keeper.finish();
  EXPECT_THAT(first.names(), ElementsAre("tool.output.done"));
  EXPECT_EQ(text_at(first.state().at("calls").at(0).get_object(), "state"), "ended");
  EXPECT_EQ(first.model.asked.size(), 2U);
  KeptBench second;
  ASSERT_TRUE(second.resume(snapshot)) << "whoever has it knows the end";
  EXPECT_EQ(last_shown(second), "done");
}

TEST(AgentResumeTest, ACallMayBeCancelledInTheAnswerThatMakesIt) {
  KeptBench first;
  first.start();
  first.keeper.keeps_at_once = false;
  first.model.call("other", {}, "a");
  first.model.call("tool_cancel", {{"call_id", "a"}});
  first.model.end();
  first.loop.run();
  ASSERT_TRUE(first.keeper.is_waiting());
  while (first.keeper.is_waiting()) {
    first.keeper.finish();
    first.loop.run();
    KeptBench second;
    const auto resumed = second.resume(first.state());
    ASSERT_TRUE(resumed) << resumed.error().message;
    EXPECT_TRUE(second.tools.started.empty());
    EXPECT_THAT(last_shown(second), HasSubstr("a is cancelled"));
  }
}

TEST(AgentResumeTest, ADetachedCallGetsItsEnd) {
  KeptBench first(reacting(ReactionPolicy::When::every_chunk));
  first.start();
  first.model.call("other");
  first.model.end();
  first.loop.run();
  first.tools.write(0, "half");
  first.loop.run();
  first.model.say("Half of it.");
  first.model.end();
  first.loop.run();
  KeptBench second;
  ASSERT_TRUE(second.resume(first.state()));
  EXPECT_THAT(last_shown(second), HasSubstr("final"));
  EXPECT_THAT(last_shown(second), HasSubstr("not known whether"));
  EXPECT_EQ(second.shown()[3].content, "Half of it.");
}

TEST(AgentResumeTest, AnAnswerThatWasBeingGivenIsAskedForAgain) {
  KeptBench first;
  first.start("Hello");
  first.model.say("I am");
  first.loop.run();
  KeptBench second;
  ASSERT_TRUE(second.resume(first.state()));
  EXPECT_EQ(last_shown(second), "Hello");
}

TEST(AgentResumeTest, ApprovalIsAskedForAgain) {
  AgentOptions options;
  options.approval = [](const AgentTool&, const json::object&) { return std::string("it writes"); };
  KeptBench first(options);
  first.start();
  first.model.call("other");
  first.model.end();
  first.loop.run();
  KeptBench second(options);
  ASSERT_TRUE(second.resume(first.state()));
  const auto events = second.take();
  const auto asked =
      std::ranges::find(events, AgentEventType::approval_required, &AgentEvent::type);
  ASSERT_NE(asked, events.end());
  EXPECT_TRUE(second.run->approve(asked->call_id));
  second.loop.run();
  EXPECT_EQ(second.tools.started.size(), 1U);
}

TEST(AgentResumeTest, AConversationGoesOn) {
  KeptBench first({.budget = {.turns = 1}});
  first.start("Hello");
  first.model.say("Hi.");
  first.model.end();
  first.loop.run();
  EXPECT_EQ(first.state().at("is_over"), true);
  KeptBench second({.instructions = "Be short.", .budget = {.turns = 1}});
  ASSERT_TRUE(second.resume(first.state(), "And now?"));
  std::vector<std::string> texts;
  for (const ChatMessage& message : second.shown()) texts.push_back(message.content);
  EXPECT_THAT(texts, ElementsAre("Be short.", "Hello", "Hi.", "And now?"));
  second.model.say("Now this.");
  second.model.end();
  EXPECT_EQ(second.take().back().text, "Now this.") << "it has a budget of its own";

  KeptBench third;
  ASSERT_TRUE(third.resume(second.state()));
  const auto events = third.take();
  EXPECT_EQ(events.back().type, AgentEventType::run_done);
  EXPECT_EQ(events.back().text, "Now this.");
}

TEST(AgentResumeTest, ACancelledRunGoesOnWithItsHistory) {
  KeptBench first;
  first.start("Hello");
  first.model.call("other");
  first.model.end();
  first.loop.run();
  first.run->cancel();
  first.loop.run();
  KeptBench second;
  ASSERT_TRUE(second.resume(first.state(), "And now?"));
  EXPECT_EQ(why_not_strict(second.shown(), false), "");
  EXPECT_TRUE(second.tools.started.empty());
}

TEST(AgentResumeTest, AToolThatIsGoneIsSaidSo) {
  KeptBench first;
  first.start();
  first.model.call("look");
  first.model.end();
  first.loop.run();
  RunBench second;
  ASSERT_TRUE(second.run->restore(first.state()));
  second.run->resume({});
  second.loop.run();
  EXPECT_THAT(last_shown(second), HasSubstr("no such tool any more"));
}

TEST(AgentResumeTest, WhatCannotBeKeptFails) {
  KeptBench bench;
  bench.start();
  bench.keeper.fails = true;
  bench.model.call("other");
  bench.model.end();
  const auto events = bench.take();
  EXPECT_TRUE(bench.tools.started.empty());
  EXPECT_EQ(text_at(events.back().data, "status"), "failed");
  EXPECT_THAT(std::string(text_at(events.back().data, "reason")), HasSubstr("the disk is full"));
}

TEST(AgentResumeTest, TheEndIsToldOnceItIsKept) {
  for (const bool fails : {false, true}) {
    KeptBench bench;
    bench.start("Hello");
    bench.keeper.keeps_at_once = false;
    bench.model.say("Hi.");
    bench.model.end();
    bench.keeper.fails = fails;
    std::optional<std::string> status;
    const auto look = [&] {
      for (const AgentEvent& event : bench.take()) {
        if (event.type == AgentEventType::run_done) status = text_at(event.data, "status");
      }
    };
    look();
    while (bench.keeper.is_waiting()) {
      EXPECT_TRUE(bench.run->is_over());
      EXPECT_FALSE(status);
      bench.keeper.finish();
      look();
    }
    EXPECT_EQ(status, fails ? "failed" : "completed");
    if (!fails) EXPECT_EQ(bench.state().at("is_over"), true);
  }
}

/// Calls `visit` with each copy of `value` that has another value in one place.
void each_change(const json::value& value, const std::function<void(const json::value&)>& visit) {
  const std::vector<json::value> others = {nullptr, -1, "x", json::array(), json::object(), true};
  const std::function<void(const json::value&, const std::function<void(json::value)>&)> walk =
      [&](const json::value& at, const std::function<void(json::value)>& put) {
        for (const json::value& other : others) put(other);
        if (at.is_object()) {
          for (const auto& [name, member] : at.get_object()) {
            json::object without = at.get_object();
            without.erase(name);
            put(without);
            walk(member, [&, key = std::string(name)](json::value changed) {
              json::object copy = at.get_object();
              copy[key] = std::move(changed);
              put(std::move(copy));
            });
          }
        } else if (at.is_array()) {
          for (std::size_t i = 0; i < at.get_array().size(); ++i) {
            json::array without = at.get_array();
            without.erase(without.begin() + static_cast<std::ptrdiff_t>(i));
            put(without);
            walk(at.get_array()[i], [&, i](json::value changed) {
              json::array copy = at.get_array();
              copy[i] = std::move(changed);
              put(std::move(copy));
            });
          }
        }
      };
  walk(value, visit);
}

TEST(AgentResumeTest, AHistoryWithACallThatIsNoneIsRefused) {
  KeptBench first;
  first.start("Hello");
  first.model.call("other", {{"n", 1}});
  first.model.end();
  first.loop.run();
  first.tools.end(0, "seen");
  first.loop.run();
  const json::object kept = first.state();
  const auto refusal = [&](std::string_view member, const json::value& value) {
    json::value changed = kept;
    changed.at_pointer("/history/messages/1/calls/0").get_object()[member] = value;
    const auto restored = KeptBench().resume(changed.get_object());
    return restored ? std::string() : restored.error().message;
  };
  EXPECT_EQ(refusal("arguments", "{}"), "");
  EXPECT_EQ(refusal("arguments", ""), "");
  for (const json::value& value : {json::value("{"), json::value("[]"), json::value("no"),
                                   json::value(nullptr), json::value(json::object())}) {
    EXPECT_THAT(refusal("arguments", value), HasSubstr("a call of a message")) << to_json(value);
  }
  EXPECT_THAT(refusal("name", ""), HasSubstr("a call of a message"));
  EXPECT_THAT(refusal("name", 5), HasSubstr("a call of a message"));
}

TEST(AgentResumeTest, ABrokenStateIsRefusedOrStillStrict) {
  KeptBench first(reacting(ReactionPolicy::When::every_chunk));
  first.start("Hello");
  first.model.call("other", {{"n", 1}});
  first.model.call("look");
  first.model.end();
  first.loop.run();
  first.tools.write(0, "half");
  first.loop.run();
  first.model.say("Half of it.");
  first.model.call("other", {{"n", 2}});
  first.model.end();
  first.loop.run();
  first.tools.end(2, "two");
  ASSERT_TRUE(first.run->inject({.text = "Wait", .when = RunInput::When::when_idle}));
  first.loop.run();
  int refused = 0;
  int resumed = 0;
  each_change(first.state(), [&](const json::value& changed) {
    if (!changed.is_object()) return;
    KeptBench second;
    second.model.on_asked = [&](FakeModel::Asked& asked) {
      EXPECT_EQ(why_not_strict(asked.request.messages, false), "") << to_json(changed);
    };
    if (const auto restored = second.resume(changed.get_object()); !restored) {
      EXPECT_THAT(restored.error().message, HasSubstr("broken"));
      ++refused;
      return;
    }
    ++resumed;
    for (int i = 0; i < 20 && !second.run->is_over(); ++i) {
      for (std::size_t call = 0; call < second.tools.started.size(); ++call) {
        if (!second.tools.started[call]->is_dropped) second.tools.end(call, "done");
      }
      second.loop.run();
      if (second.model.asked.empty() || second.model.last().sink == nullptr) continue;
      second.model.say("Done.");
      second.model.end();
      second.loop.run();
    }
    EXPECT_TRUE(second.run->is_over()) << to_json(changed);
  });
  EXPECT_GT(refused, 100);
  EXPECT_GT(resumed, 50);
}

/// A process that dies at any time: nothing with effects is done twice, and the run comes to its
/// end.
TEST(AgentResumeTest, NothingWithEffectsIsDoneTwiceWheneverItDies) {
  for (std::uint32_t seed = 0; seed < 2000; ++seed) {
    std::mt19937 random(seed);
    const auto one_in = [&](std::uint32_t n) { return random() % n == 0; };
    std::map<std::string, int> done;  // by the arguments
    json::object kept;
    int next_call = 0;
    bool is_over = false;
    for (int life = 0; life < 50 && !is_over; ++life) {
      KeptBench bench(one_in(2) ? AgentOptions() : reacting(ReactionPolicy::When::every_chunk));
      bench.keeper.keeps_at_once = one_in(3);
      std::size_t counted = 0;
      if (life == 0) {
        bench.start();
      } else {
        ASSERT_TRUE(bench.resume(kept)) << seed;
      }
      for (int step = 0; step < 200 && !is_over; ++step) {
        if (one_in(2)) bench.keeper.finish();
        if (life < 49 && one_in(40) && !bench.keeper.kept.empty()) break;  // it dies
        if (!bench.model.asked.empty() && bench.model.last().sink != nullptr && one_in(3)) {
          const bool calls = next_call < 6 && one_in(2);
          if (calls) {
            bench.model.call(one_in(3) ? "look" : "other", {{"n", ++next_call}});
          } else {
            bench.model.say("Well.");
          }
          bench.model.end();
        }
        for (std::size_t i = 0; i < bench.tools.started.size(); ++i) {
          if (bench.tools.started[i]->is_dropped || !one_in(4)) continue;
          one_in(2) ? bench.tools.write(i, "x") : bench.tools.end(i, "end");
        }
        bench.loop.run();
        for (; counted < bench.tools.started.size(); ++counted) {
          const auto& started = *bench.tools.started[counted];
          if (started.tool != "other") continue;
          EXPECT_EQ(++done[to_json(started.arguments)], 1) << "seed " << seed;
        }
        while (bench.events.poll()) {
        }
        is_over = bench.run->is_over();
      }
      // What was not kept is lost.
      kept = bench.state();
    }
    EXPECT_TRUE(is_over) << "seed " << seed;
  }
}

}  // namespace
}  // namespace sluice
