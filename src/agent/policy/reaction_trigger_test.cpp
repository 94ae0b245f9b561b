#include "agent/policy/reaction_trigger.hpp"

#include <chrono>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sluice {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using enum ReactionPolicy::When;

class ReactionTriggerTest : public ::testing::Test {
 protected:
  void expect(ReactionTrigger& trigger, bool due, Duration at, const char* what) const {
    EXPECT_EQ(trigger.is_due(true, began_ + at), due) << what;
  }
  TimePoint began_{1h};
};

TEST_F(ReactionTriggerTest, PassThroughAndDemandNeverAreByThemselves) {
  for (const auto when : {pass_through, on_demand}) {
    ReactionTrigger trigger({.when = when});
    trigger.on_chunk("x", began_);
    expect(trigger, false, 1h, "chunk");
    EXPECT_FALSE(trigger.next_look());
  }
}

TEST_F(ReactionTriggerTest, AnotherPolicyGoesOnWithWhatWasCounted) {
  ReactionTrigger trigger({.when = pass_through});
  trigger.on_chunk("error", began_);
  trigger.set_policy({.when = match, .pattern = "error"});
  expect(trigger, false, 1s, "it has come before");
  trigger.on_chunk("an error", began_);
  expect(trigger, true, 1s, "a match");
  trigger.set_policy({.when = match, .pattern = "warning"});
  expect(trigger, false, 1s, "no match of this one");
  trigger.set_policy({.when = every_n, .every = 2, .max_reactions = 1});
  expect(trigger, true, 1s, "two chunks");
  trigger.on_reaction(began_);
  trigger.set_policy({.when = every_chunk, .max_reactions = 1});
  EXPECT_TRUE(trigger.is_exhausted());
}

TEST_F(ReactionTriggerTest, EveryChunkAndEveryN) {
  ReactionTrigger each({.when = every_chunk});
  expect(each, false, 0s, "nothing yet");
  each.on_chunk("x", began_);
  expect(each, true, 0s, "a chunk");
  each.on_reaction(began_);
  expect(each, false, 1s, "seen");
  ReactionTrigger third({.when = every_n, .every = 3});
  for (int i = 0; i < 2; ++i) third.on_chunk("x", began_);
  expect(third, false, 1s, "two");
  third.on_chunk("x", began_);
  expect(third, true, 1s, "three");
}

TEST_F(ReactionTriggerTest, APauseOrALimitEndsTheWait) {
  const ReactionPolicy policy{.when = debounce, .quiet = 300ms, .max_wait = 1s, .max_bytes = 10};
  ReactionTrigger trigger(policy);
  trigger.on_chunk("x", began_);
  EXPECT_EQ(trigger.next_look(), began_ + 300ms);
  expect(trigger, false, 299ms, "no pause yet");
  expect(trigger, true, 300ms, "a pause");
  for (Duration at = 200ms; at <= 800ms; at += 200ms) trigger.on_chunk("x", began_ + at);
  EXPECT_EQ(trigger.next_look(), began_ + 1s);
  trigger.on_chunk("yyyyy", began_ + 850ms);
  expect(trigger, true, 850ms, "ten bytes");
}

TEST_F(ReactionTriggerTest, AMatchIsFoundAcrossChunksAndOnce) {
  ReactionTrigger trigger({.when = match, .pattern = "err(or)?:"});
  trigger.on_chunk("all is well\ner", began_);
  expect(trigger, false, 0s, "half of it");
  trigger.on_chunk("ror: no", began_);
  expect(trigger, true, 0s, "all of it");
  trigger.on_reaction(began_);
  trigger.on_chunk(" such file\n", began_);
  expect(trigger, false, 0s, "it was seen");
  trigger.on_chunk(std::string(10'000, 'x') + "err:", began_);
  expect(trigger, true, 0s, "in a long line");
}

TEST_F(ReactionTriggerTest, IdleWantsAnIdleModel) {
  ReactionTrigger trigger({.when = on_idle});
  trigger.on_chunk("x", began_);
  EXPECT_FALSE(trigger.is_due(false, began_));
  EXPECT_TRUE(trigger.is_due(true, began_));
}

TEST_F(ReactionTriggerTest, LimitsHold) {
  ReactionTrigger trigger({.when = every_chunk, .min_interval = 2s, .max_reactions = 2});
  trigger.on_chunk("x", began_);
  trigger.on_reaction(began_);
  trigger.on_chunk("x", began_ + 1s);
  expect(trigger, false, 1s, "too soon");
  EXPECT_EQ(trigger.next_look(), began_ + 2s);
  expect(trigger, true, 2s, "soon enough");
  trigger.on_reaction(began_ + 2s);
  trigger.on_chunk("x", began_ + 9s);
  EXPECT_TRUE(trigger.is_exhausted());
  expect(trigger, false, 1h, "twice was the limit");
  ReactionTrigger costly({.when = every_chunk, .max_reaction_tokens = 5});
  costly.on_chunk("x", began_);
  costly.on_reaction(began_);
  costly.on_answer(5);
  EXPECT_TRUE(costly.is_exhausted());
}

TEST_F(ReactionTriggerTest, TheLongestTimesAreNeverOver) {
  constexpr Duration kLongest = Duration::max();
  ReactionTrigger waits({.when = debounce, .quiet = kLongest, .max_wait = kLongest});
  waits.on_chunk("x", began_);
  expect(waits, false, 24h, "it waits for a pause");
  ReactionTrigger rests({.when = every_chunk, .min_interval = kLongest});
  rests.on_chunk("x", began_);
  rests.on_reaction(began_);
  rests.on_chunk("x", began_);
  expect(rests, false, 24h, "it has reacted once");
}

TEST_F(ReactionTriggerTest, WrongPoliciesAreExplained) {
  EXPECT_THAT(check({.when = match, .pattern = "("}).error().message,
              HasSubstr("match=(: no regular"));
  EXPECT_THAT(check({.when = match}).error().message, HasSubstr("needs a regular expression"));
  EXPECT_THAT(check({.when = every_n, .every = 0}).error().message, HasSubstr("every=0"));
  EXPECT_THAT(check({.when = debounce, .max_bytes = 0}).error().message, HasSubstr("bytes=0"));
  EXPECT_TRUE(check({.when = every_chunk}));
}

}  // namespace
}  // namespace sluice
