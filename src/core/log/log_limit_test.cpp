#include "core/log/log_limit.hpp"

#include <exception>
#include <gtest/gtest.h>

#include "core/log/log.hpp"

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

TEST(LogLimit, MayAllowSeveralInAPeriod) {
  LogLimit limit(4, 1s);
  const TimePoint start{};
  for (int i = 0; i < 4; ++i) EXPECT_EQ(limit.take(start), 0);
  EXPECT_EQ(limit.take(start), std::nullopt);
  EXPECT_EQ(limit.take(start + 249ms), std::nullopt);
  EXPECT_EQ(limit.take(start + 250ms), 2);
  EXPECT_EQ(limit.take(start + 250ms), std::nullopt);
  EXPECT_EQ(limit.take(start + 10s), 1);
}

TEST(LogLimit, AnExceptionThatIsLoggedMaySayNothing) {
  struct Speechless final : std::exception {
    [[nodiscard]] const char* what() const noexcept override { return nullptr; }
  };
  LogLimit limit;
  testing::internal::CaptureStderr();
  try {
    throw Speechless();
  } catch (...) {
    log_exception(limit, "it failed");
  }
  EXPECT_NE(testing::internal::GetCapturedStderr().find("it failed"), std::string::npos);
}

}  // namespace
}  // namespace sluice
