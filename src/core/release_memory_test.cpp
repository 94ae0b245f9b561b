#include "core/release_memory.hpp"

#include <gtest/gtest.h>
#include <string>
#include <vector>

namespace sluice {
namespace {

TEST(ReleaseMemoryTest, NothingIsKept) {
  std::string text(1000, 'x');
  release_memory(text);
  EXPECT_TRUE(text.empty());
  EXPECT_EQ(text.capacity(), std::string().capacity());
  std::vector<int> numbers(1000);
  release_memory(numbers);
  EXPECT_EQ(numbers.capacity(), 0U);
}

}  // namespace
}  // namespace sluice
