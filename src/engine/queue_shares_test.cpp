#include "engine/queue_shares.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <vector>

namespace sluice {
namespace {

using Tickets = std::vector<std::unique_ptr<QueueShares::Ticket>>;

std::size_t take_all(QueueShares& shares, const std::string& principal, Tickets& places) {
  std::size_t taken = 0;
  for (auto place = shares.take(principal); place; place = shares.take(principal)) {
    places.push_back(std::move(*place));
    ++taken;
  }
  return taken;
}

TEST(QueueShares, NobodyCanTakeAllPlaces) {
  const auto shares = std::make_shared<QueueShares>(256, 4);
  Tickets first;
  Tickets others;
  EXPECT_EQ(take_all(*shares, "first", first), 128U);
  EXPECT_EQ(take_all(*shares, "second", others), 64U);
  EXPECT_EQ(take_all(*shares, "third", others), 32U);
  first.clear();
  EXPECT_EQ(take_all(*shares, "third", others), 64U);
}

TEST(QueueShares, TheLeastLeavesAPlaceForAnother) {
  for (const std::uint32_t all : {2U, 5U}) {
    const auto shares = std::make_shared<QueueShares>(all, all);
    Tickets places;
    EXPECT_EQ(take_all(*shares, "a", places), all - 1);
    EXPECT_EQ(take_all(*shares, "b", places), 1U);
  }
}

TEST(QueueShares, TheLeastIsForEverybodyUntilAllIsTaken) {
  const auto shares = std::make_shared<QueueShares>(10, 4);
  Tickets places;
  EXPECT_EQ(take_all(*shares, "a", places), 5U);
  EXPECT_EQ(take_all(*shares, "b", places), 4U);
  const auto refused = shares->take("b");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, kBusy);
  EXPECT_THAT(refused.error().message, testing::HasSubstr("your share"));
  EXPECT_EQ(take_all(*shares, "c", places), 1U);
  EXPECT_THAT(shares->take("d").error().message, testing::HasSubstr("queue is full"));
}

}  // namespace
}  // namespace sluice
