#include "server/streams/text_accumulator.hpp"

#include <gtest/gtest.h>
#include <memory>
#include <string>

#include "core/sharing/client_memory.hpp"

namespace sluice {
namespace {

TEST(TextAccumulator, KeepsTextOfAnyLengthAndChargesIt) {
  MemoryBudget budget{std::size_t{32} << 20U};
  ClientMemory clients{budget};
  for (const std::size_t part : {1UL, 1000UL, 65'536UL, 200'000UL}) {
    std::string expected;
    {
      TextAccumulator text(clients.of("alice"));
      EXPECT_TRUE(text.empty());
      for (int i = 0; i < 12; ++i) {
        expected.append(part, static_cast<char>('a' + i));
        ASSERT_TRUE(text.append(std::string(part, static_cast<char>('a' + i))));
      }
      EXPECT_FALSE(text.empty());
      // A text of a few bytes lies in its string.
      EXPECT_GE(budget.used() + sizeof(std::string), expected.size());
      EXPECT_LE(budget.used(), 2 * expected.size() + 65'536);
      EXPECT_EQ(text.take(), expected) << part;
    }
    EXPECT_EQ(budget.used(), 0U);
  }
}

TEST(TextAccumulator, DropsATextThatIsTooLong) {
  TextAccumulator text(nullptr);
  ASSERT_TRUE(text.append(std::string(TextAccumulator::kMost, 'x')));
  EXPECT_FALSE(text.is_too_long());
  ASSERT_TRUE(text.append("x"));
  EXPECT_TRUE(text.is_too_long());
  ASSERT_TRUE(text.append("x"));
  EXPECT_EQ(text.take(), "");
}

TEST(TextAccumulator, AppendsNothingWithoutMemory) {
  MemoryBudget budget{std::size_t{1} << 20U};
  ClientMemory clients{budget};
  TextAccumulator text(clients.of("alice"));
  std::string expected;
  const std::string part(10'000, 'x');
  while (text.append(part)) expected.append(part);
  EXPECT_LT(expected.size(), std::size_t{1} << 20U);
  EXPECT_EQ(text.take(), expected);
}

}  // namespace
}  // namespace sluice
