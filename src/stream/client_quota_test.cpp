#include "stream/client_quota.hpp"

#include <atomic>
#include <gtest/gtest.h>
#include <thread>
#include <utility>
#include <vector>

#include "core/allocation_failure_test_support.hpp"

namespace sluice {
namespace {

TEST(ClientQuota, CountsANetworkOfIpv6AsOneClient) {
  ClientQuota quota(2);
  ClientQuota::Unit first = quota.take("2001:db8::1");
  EXPECT_TRUE(first);
  const ClientQuota::Unit second = quota.take("2001:db8::2");
  EXPECT_TRUE(second);
  EXPECT_FALSE(quota.take("2001:db8::3"));
  EXPECT_TRUE(quota.take("2001:db8:0:1::3"));
  first.release();
  EXPECT_TRUE(quota.take("2001:db8::3"));
}

TEST(ClientQuota, OfNoneRefusesAll) {
  ClientQuota quota(0);
  EXPECT_FALSE(quota.take("a"));
  EXPECT_EQ(quota.in_use(), 0U);
}

TEST(ClientQuota, AUnitIsReturnedOnce) {
  ClientQuota quota(9);
  ClientQuota::Unit one = quota.take("a");
  ClientQuota::Unit other = std::move(one);
  EXPECT_EQ(quota.in_use(), 1U);
  one = quota.take("b");
  one = std::move(other);
  other = {};
  EXPECT_EQ(quota.in_use(), 1U);
  one.release();
  one.release();
  EXPECT_EQ(quota.in_use(), 0U);
}

TEST(ClientQuota, NeedsNoMemoryToReturnAUnit) {
  ClientQuota quota(9);
  fail_each_allocation([&] {
    ClientQuota::Unit unit = quota.take("a client with a name that needs memory");
    allocations_left = 1;
    unit.release();
    EXPECT_EQ(allocations_left, 1U);
  });
  EXPECT_EQ(quota.in_use(), 0U);
}

TEST(ClientQuota, IsSharedByLoops) {
  ClientQuota quota(64);
  std::vector<std::thread> threads;
  std::vector<std::vector<ClientQuota::Unit>> held(4);
  for (auto& mine : held) {
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) {
        ClientQuota::Unit unit = quota.take("a");
        if (unit && i % 2 == 1) mine.push_back(std::move(unit));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(held[0].size() + held[1].size() + held[2].size() + held[3].size(), 64U);
  EXPECT_FALSE(quota.take("a"));
  held.clear();
  EXPECT_EQ(quota.in_use(), 0U);
}

}  // namespace
}  // namespace sluice
