#include "auth/own_addresses.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>

namespace sluice {
namespace {

constexpr std::string_view kLoopback("\x7f\0\0\1", 4);

TEST(OwnAddresses, AreThoseOfTheMachine) {
  OwnAddresses addresses{TimePoint()};
  EXPECT_TRUE(addresses.has(kLoopback, TimePoint()));
  EXPECT_FALSE(addresses.has(std::string_view("\xc0\0\2\1", 4), TimePoint()));
  EXPECT_FALSE(addresses.has("", TimePoint()));
}

TEST(OwnAddresses, StayWhenThereIsNoDescriptorToReadThem) {
  OwnAddresses addresses{TimePoint()};
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  const rlimit none{.rlim_cur = 0, .rlim_max = limit.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  const bool is_own = addresses.has(kLoopback, TimePoint() + 2 * OwnAddresses::kPeriod);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
  EXPECT_TRUE(is_own);
}

}  // namespace
}  // namespace sluice
