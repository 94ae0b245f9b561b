#include "core/sharing/client_memory.hpp"

#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace sluice {
namespace {

/// Takes bytes one by one until the share has no more. Returns how many.
std::size_t take_all(MemoryShare& share) {
  std::size_t taken = 0;
  while (share.try_acquire(1)) ++taken;
  return taken;
}

TEST(ClientMemory, LeavesRoomForWhoComesNext) {
  MemoryBudget budget(1000);
  ClientMemory clients(budget);
  std::vector<std::shared_ptr<MemoryShare>> greedy;
  std::vector<std::size_t> taken;
  for (int i = 0; i < 4; ++i) {
    greedy.push_back(clients.of("client " + std::to_string(i)));
    taken.push_back(take_all(*greedy.back()));
  }
  EXPECT_EQ(taken, (std::vector<std::size_t>{500, 250, 125, 63}));
  EXPECT_TRUE(greedy[0]->is_short());
  const std::shared_ptr<MemoryShare> next = clients.of("next");
  EXPECT_FALSE(next->is_short());
  EXPECT_TRUE(next->try_acquire(20));
  greedy[0]->release(500);
  EXPECT_GT(take_all(*next), 200U);
  EXPECT_FALSE(next->try_acquire(1000));
}

TEST(ClientMemory, AClientHasOneShare) {
  MemoryBudget budget(1000);
  ClientMemory clients(budget);
  std::shared_ptr<MemoryShare> first = clients.of("a");
  std::shared_ptr<MemoryShare> second = clients.of("a");
  EXPECT_EQ(first, second);
  EXPECT_NE(first, clients.of("b"));
  EXPECT_TRUE(first->try_acquire(300));
  second->release(300);
  first = second = nullptr;
  EXPECT_TRUE(clients.of("a")->try_acquire(400));
}

TEST(ClientMemory, ANetworkOfIpv6IsOneClient) {
  MemoryBudget budget(1000);
  ClientMemory clients(budget);
  const std::shared_ptr<MemoryShare> one = clients.of("2001:db8::1");
  EXPECT_EQ(one, clients.of("2001:db8::2"));
  EXPECT_NE(one, clients.of("2001:db8:0:1::1"));
}

TEST(ClientMemory, AClientMayComeAndGoOnManyThreadsAtOnce) {
  MemoryBudget budget(1'000'000);
  ClientMemory clients(budget);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&clients] {
      for (int n = 0; n < 5000; ++n) {
        const std::shared_ptr<MemoryShare> share = clients.of("a");
        if (share->try_acquire(10)) share->release(10);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(budget.used(), 0U);
}

TEST(ClientMemory, ItsSharesMayOutliveIt) {
  std::shared_ptr<MemoryShare> share;
  {
    MemoryBudget budget(1000);
    ClientMemory clients(budget);
    share = clients.of("a");
    EXPECT_TRUE(share->try_acquire(10));
    share->release(10);
  }
  share->release(0);
}

}  // namespace
}  // namespace sluice
