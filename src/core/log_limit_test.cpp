#include "core/log_limit.hpp"

#include <gtest/gtest.h>

namespace sluice {
namespace {

using namespace std::chrono_literals;

TEST(LogLimit, LetsOneThroughInItsPeriodAndCountsTheOthers) {
  LogLimit limit;
  const TimePoint start{};
  EXPECT_EQ(limit.take(start), 0);
  EXPECT_EQ(limit.take(start), std::nullopt);
  EXPECT_EQ(limit.take(start + LogLimit::kPeriod - 1ns), std::nullopt);
  EXPECT_EQ(limit.take(start + LogLimit::kPeriod), 2);
  EXPECT_EQ(limit.take(start + LogLimit::kPeriod), std::nullopt);
  EXPECT_EQ(limit.take(start + 5 * LogLimit::kPeriod), 1);
}

}  // namespace
}  // namespace sluice
