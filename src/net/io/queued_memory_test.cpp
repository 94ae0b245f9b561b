#include "net/io/queued_memory.hpp"

#include <gtest/gtest.h>

namespace sluice {
namespace {

TEST(QueuedMemoryTest, KeepsEachUntilItsBytesHaveLeft) {
  QueuedMemory queued;
  std::vector<std::weak_ptr<int>> given;
  for (std::uint64_t i = 1; i <= 100; ++i) {
    auto memory = std::make_shared<int>(0);
    given.push_back(memory);
    queued.keep(std::move(memory), 10 * i);
  }
  queued.keep(nullptr, 1010);
  for (std::uint64_t left = 0; left <= 1000; left += 7) {
    queued.release(left);
    for (std::uint64_t i = 1; i <= 100; ++i) EXPECT_EQ(given[i - 1].expired(), 10 * i <= left);
  }
  queued.release(1000);
  EXPECT_TRUE(given.back().expired());
}

TEST(QueuedMemoryTest, KeepsNothingOnceItIsCleared) {
  QueuedMemory queued;
  auto memory = std::make_shared<int>(0);
  const std::weak_ptr given = memory;
  queued.keep(std::move(memory), 10);
  queued.clear();
  EXPECT_TRUE(given.expired());
  queued.release(20);
  memory = std::make_shared<int>(0);
  const std::weak_ptr next = memory;
  queued.keep(std::move(memory), 30);
  queued.release(29);
  EXPECT_FALSE(next.expired());
}

}  // namespace
}  // namespace sluice
