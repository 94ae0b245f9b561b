#include "engine/llama/scheduling/prefill_budget.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sluice {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;

using Missing = std::vector<std::uint32_t>;

constexpr auto kOne = PrefillBudget::Clients::one;
constexpr auto kSeveral = PrefillBudget::Clients::several;

PrefillBudget learned(Duration each, std::uint32_t most = 1024) {
  PrefillBudget budget(most);
  budget.observe(100, each * 100);
  return budget;
}

TEST(PrefillBudget, BeginsSmall) {
  EXPECT_THAT(PrefillBudget(1024).share(Missing{500, 10}, 3, kOne), ElementsAre(54, 10));
}

TEST(PrefillBudget, PiecesKeepAStepBesideAnswersShort) {
  const PrefillBudget budget = learned(500us);
  EXPECT_THAT(budget.share(Missing{5000, 10}, 3, kOne), ElementsAre(390, 10));
  EXPECT_THAT(budget.share(Missing{30, 5000, 10}, 7, kOne), ElementsAre(30, 360, 10));
  EXPECT_THAT(learned(1us).share(Missing{5000}, 1, kOne), ElementsAre(1024));
}

TEST(PrefillBudget, PiecesAreWorthAStep) {
  // A step should take the time of 100 tokens, and may take that of 500.
  const PrefillBudget budget = learned(2ms);
  EXPECT_THAT(budget.share(Missing{5000}, 3, kOne), ElementsAre(256));
  EXPECT_THAT(budget.share(Missing{140}, 7, kOne), ElementsAre(140));
  EXPECT_THAT(budget.share(Missing{5000, 140}, 7, kOne), ElementsAre(128, 128));
  EXPECT_THAT(learned(10ms).share(Missing{5000}, 3, kOne), ElementsAre(100));
  EXPECT_THAT(learned(1s).share(Missing{5000}, 1, kOne), ElementsAre(16));
}

TEST(PrefillBudget, WithoutAnswersAStepMayTakeLonger) {
  EXPECT_THAT(learned(2ms).share(Missing{5000, 10}, 0, kOne), ElementsAre(490, 10));
}

TEST(PrefillBudget, ShortPromptsGoInWholeWhileMoreWaitThanAreAnswered) {
  const PrefillBudget budget = learned(10ms);
  const Missing wave(7, 140);
  EXPECT_THAT(budget.share(wave, 1, kOne), ElementsAre(140, 140, 140, 140, 140, 140, 140));
  EXPECT_THAT(budget.share(Missing{140}, 7, kOne), ElementsAre(100));
  // A long prompt does not gain from those that wait with it, and they need not wait for it.
  EXPECT_THAT(budget.share(Missing{5000, 140, 200}, 3, kOne), ElementsAre(50, 140, 200));
  // A step has a maximum of tokens.
  EXPECT_THAT(learned(10ms, 300).share(wave, 1, kOne), ElementsAre(140, 140, 0, 0, 0, 0, 0));
}

TEST(PrefillBudget, BesideAnswersOfAnotherClientEachStepIsShort) {
  // A step should take the time of 100 tokens.
  const PrefillBudget budget = learned(2ms);
  EXPECT_THAT(budget.share(Missing{5000}, 1, kSeveral), ElementsAre(100));
  EXPECT_THAT(budget.share(Missing{140}, 1, kSeveral), ElementsAre(100));
  EXPECT_THAT(budget.share(Missing{5000, 140}, 1, kSeveral), ElementsAre(50, 50));
  EXPECT_THAT(learned(100ms).share(Missing{5000}, 1, kSeveral), ElementsAre(16));
  EXPECT_THAT(budget.share(Missing{5000}, 0, kSeveral), ElementsAre(500));
}

TEST(PrefillBudget, FollowsTheMachine) {
  PrefillBudget budget = learned(1ms);
  budget.observe(100, 1s);
  EXPECT_THAT(budget.share(Missing{5000}, 2, kOne), ElementsAre(100));
  budget.observe(8, 10s);  // too few tokens to say anything about prompts
  EXPECT_THAT(budget.share(Missing{5000}, 2, kOne), ElementsAre(100));
  for (int i = 0; i < 50; ++i) budget.observe(100, 50ms);
  EXPECT_THAT(budget.share(Missing{5000}, 2, kOne), testing::Each(testing::Gt(350U)));
}

}  // namespace
}  // namespace sluice
