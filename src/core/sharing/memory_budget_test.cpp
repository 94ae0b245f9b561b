#include "core/sharing/memory_budget.hpp"

#include <cstddef>
#include <gtest/gtest.h>
#include <thread>
#include <vector>

namespace sluice {
namespace {

TEST(MemoryBudget, GivesToTheLastByteAndNoMore) {
  MemoryBudget budget(100);
  EXPECT_TRUE(budget.try_acquire(60));
  EXPECT_FALSE(budget.try_acquire(41));
  EXPECT_EQ(budget.used(), 60U) << "what is refused takes nothing";
  EXPECT_TRUE(budget.try_acquire(40));
  EXPECT_FALSE(budget.try_acquire(1));
  EXPECT_TRUE(budget.try_acquire(0));
  budget.release(100);
  EXPECT_EQ(budget.used(), 0U);
  EXPECT_EQ(budget.limit(), 100U);
}

TEST(MemoryBudget, DoesNotWrapAround) {
  MemoryBudget budget(100);
  EXPECT_TRUE(budget.try_acquire(50));
  EXPECT_FALSE(budget.try_acquire(~std::size_t{0}));
  EXPECT_FALSE(budget.try_acquire(~std::size_t{0} - 49));
  EXPECT_EQ(budget.used(), 50U);
}

TEST(MemoryBudget, RefusesWhileItIsBeyondItsLimit) {
  MemoryBudget budget(100);
  budget.acquire_beyond_limit(150);
  EXPECT_EQ(budget.used(), 150U);
  EXPECT_FALSE(budget.try_acquire(1));
  budget.release(60);
  EXPECT_TRUE(budget.try_acquire(10));
  EXPECT_FALSE(budget.try_acquire(1));
}

TEST(MemoryBudget, NeverGivesManyThreadsMoreThanThereIs) {
  MemoryBudget budget(1000);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < 4; ++t) {
    threads.emplace_back([&budget, bytes = 7 * (t + 1)] {
      for (int i = 0; i < 20000; ++i) {
        if (!budget.try_acquire(bytes)) continue;
        EXPECT_LE(budget.used(), 1000U);
        budget.release(bytes);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(budget.used(), 0U);
}

}  // namespace
}  // namespace sluice
