#include "engine/llama/scheduling/slot_chooser.hpp"

#include <gtest/gtest.h>
#include <numeric>
#include <vector>

namespace sluice {
namespace {

using Tokens = std::vector<std::int32_t>;

constexpr std::size_t kMinCopy = 64;

Tokens range(int from, int count) {
  Tokens tokens(static_cast<std::size_t>(count));
  std::iota(tokens.begin(), tokens.end(), from);
  return tokens;
}

TEST(ChooseSlot, NoneWhenAllAreBusy) {
  const Tokens held = range(0, 4);
  const std::vector<SlotView> slots = {{.tokens = held, .free = false}};
  EXPECT_FALSE(choose_slot(slots, held, kMinCopy));
}

TEST(ChooseSlot, TakesTheLongestCommonPrefix) {
  const Tokens shorter = range(0, 5);
  const Tokens longer = range(0, 8);
  const Tokens prompt = range(0, 10);
  const std::vector<SlotView> slots = {{.tokens = shorter, .free = true, .last_used = 1},
                                       {.tokens = longer, .free = true, .last_used = 2},
                                       {.tokens = {}, .free = true}};
  const auto choice = choose_slot(slots, prompt, kMinCopy);
  ASSERT_TRUE(choice);
  EXPECT_EQ(choice->slot, 1U);
  EXPECT_EQ(choice->keep, 8U);
  EXPECT_FALSE(choice->copy_from);
}

TEST(ChooseSlot, NeverKeepsTheLastTokenOfThePrompt) {
  const Tokens held = range(0, 10);
  const std::vector<SlotView> slots = {{.tokens = held, .free = true}};
  EXPECT_EQ(choose_slot(slots, held, kMinCopy)->keep, 9U);
}

TEST(ChooseSlot, AnEmptySlotSparesAnUnrelatedConversation) {
  Tokens held = range(100, 50);
  held[0] = 0;  // only the first token, which every prompt has
  const Tokens prompt = range(0, 50);
  const std::vector<SlotView> slots = {{.tokens = held, .free = true, .last_used = 9},
                                       {.tokens = {}, .free = true}};
  const auto choice = choose_slot(slots, prompt, kMinCopy);
  EXPECT_EQ(choice->slot, 1U);
  EXPECT_EQ(choice->keep, 0U);
}

TEST(ChooseSlot, OtherwiseTheLongestUnusedGivesWay) {
  const Tokens first = range(100, 5);
  const Tokens second = range(200, 5);
  const std::vector<SlotView> slots = {{.tokens = first, .free = true, .last_used = 7},
                                       {.tokens = second, .free = true, .last_used = 3}};
  EXPECT_EQ(choose_slot(slots, range(0, 5), kMinCopy)->slot, 1U);
}

TEST(ChooseSlot, CopiesALongBeginningFromABusySlot) {
  const Tokens busy = range(0, 100);
  Tokens prompt = range(0, 90);
  prompt.push_back(7);
  const std::vector<SlotView> slots = {{.tokens = busy, .free = false},
                                       {.tokens = {}, .free = true}};
  const auto choice = choose_slot(slots, prompt, kMinCopy);
  ASSERT_TRUE(choice);
  EXPECT_EQ(choice->slot, 1U);
  EXPECT_EQ(choice->keep, 90U);
  EXPECT_EQ(choice->copy_from, 0U);
}

TEST(ChooseSlot, DoesNotCopyForAFewTokens) {
  const Tokens busy = range(0, 100);
  const std::vector<SlotView> slots = {{.tokens = busy, .free = false},
                                       {.tokens = {}, .free = true}};
  const auto choice = choose_slot(slots, range(0, 20), kMinCopy);
  EXPECT_EQ(choice->keep, 0U);
  EXPECT_FALSE(choice->copy_from);
}

}  // namespace
}  // namespace sluice
