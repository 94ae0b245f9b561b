#include "cli/proxy/proxy_targets.hpp"

#include <chrono>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/options/exit_code.hpp"

namespace sluice {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(ProxyTargetsTest, ANameThatCannotBeOneIsSaidToBeWrong) {
  ProxyTargets targets;
  targets.words = {"a_b=http://localhost/mcp", "c=http://localhost/mcp"};
  const auto upstreams = upstreams_of(targets, std::chrono::seconds(1));
  ASSERT_FALSE(upstreams);
  EXPECT_EQ(upstreams.error().code, kExitUsage);
  EXPECT_THAT(upstreams.error().message,
              AllOf(HasSubstr("\"a_b\""), HasSubstr("letters, digits and '-'")));
  targets.words = {"http:///?a=b"};
  const auto address = upstreams_of(targets, std::chrono::seconds(1));
  ASSERT_FALSE(address);
  EXPECT_THAT(address.error().message, HasSubstr("the target is not understood"));
}

TEST(ProxyTargetsTest, NamesDifferInMoreThanCase) {
  ProxyTargets targets;
  targets.words = {"A=http://localhost/mcp", "a=http://localhost/mcp"};
  const auto upstreams = upstreams_of(targets, std::chrono::seconds(1));
  ASSERT_FALSE(upstreams);
  EXPECT_EQ(upstreams.error().code, kExitUsage);
  EXPECT_THAT(upstreams.error().message, HasSubstr("A and a: names must differ in more than case"));
}

}  // namespace
}  // namespace sluice
