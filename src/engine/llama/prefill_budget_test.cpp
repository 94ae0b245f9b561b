#include "engine/llama/prefill_budget.hpp"

#include <gtest/gtest.h>

namespace sluice {
namespace {

using namespace std::chrono_literals;

TEST(PrefillBudget, GrowsWhileStepsAreShort) {
  PrefillBudget budget(512, 100ms);
  EXPECT_EQ(budget.tokens(), 64U);
  for (int i = 0; i < 10; ++i) budget.observe(budget.tokens(), 10ms);
  EXPECT_EQ(budget.tokens(), 512U);
}

TEST(PrefillBudget, ShrinksWhenStepsAreLongButNotToNothing) {
  PrefillBudget budget(512, 100ms);
  budget.observe(64, 300ms);
  EXPECT_EQ(budget.tokens(), 32U);
  for (int i = 0; i < 10; ++i) budget.observe(budget.tokens(), 10s);
  EXPECT_EQ(budget.tokens(), PrefillBudget::kLeast);
}

TEST(PrefillBudget, StaysWhereStepsAreRight) {
  PrefillBudget budget(512, 100ms);
  budget.observe(64, 80ms);
  EXPECT_EQ(budget.tokens(), 64U);
}

TEST(PrefillBudget, ASmallStepDoesNotMakeItGrow) {
  PrefillBudget budget(512, 100ms);
  budget.observe(3, 1ms);
  budget.observe(0, 1ms);
  EXPECT_EQ(budget.tokens(), 64U);
}

TEST(PrefillBudget, NeverExceedsTheBatch) {
  EXPECT_EQ(PrefillBudget(32).tokens(), 32U);
}

}  // namespace
}  // namespace sluice
