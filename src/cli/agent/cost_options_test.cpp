#include "cli/agent/cost_options.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <limits>
#include <optional>

#include "cli/options/exit_code.hpp"

namespace sluice {
namespace {

using ::testing::HasSubstr;

TEST(CostOptions, ReadWhatTheyDocument) {
  AgentOptions options;
  const auto read =
      read_costs({.most = 0.5, .price = "2.5,10", .reaction_price = "0.1,0,0.01"}, true, options);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(options.budget.cost, 0.5);
  ASSERT_TRUE(options.price);
  EXPECT_EQ(options.price->prompt, 2.5);
  EXPECT_EQ(options.price->completion, 10);
  EXPECT_EQ(options.price->cached, std::nullopt);
  ASSERT_TRUE(options.reaction_price);
  EXPECT_EQ(options.reaction_price->prompt, 0.1);
  EXPECT_EQ(options.reaction_price->completion, 0);
  EXPECT_EQ(options.reaction_price->cached, 0.01);
  AgentOptions none;
  ASSERT_TRUE(read_costs({}, false, none));
  EXPECT_EQ(none.budget.cost, 0);
  EXPECT_FALSE(none.price);
}

TEST(CostOptions, RefuseWhatIsNoAmount) {
  for (const char* const text : {"1", "1,", ",1", "1,2,3,4", "1,-2", "nan,1", "1,inf", "1;2", "x,1",
                                 "1,2,", " 1,2", "1,2 "}) {
    AgentOptions options;
    const auto read = read_costs({.price = text}, false, options);
    ASSERT_FALSE(read) << text;
    EXPECT_EQ(read.error().code, kExitUsage);
    EXPECT_THAT(read.error().message, HasSubstr("--price: give "));
  }
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const double most : {0.0, -1.0, kInfinity, std::numeric_limits<double>::quiet_NaN()}) {
    AgentOptions options;
    const auto read = read_costs({.most = most, .price = "1,1"}, false, options);
    ASSERT_FALSE(read) << most;
    EXPECT_EQ(read.error().code, kExitUsage);
    EXPECT_THAT(read.error().message, HasSubstr("--max-cost: give a number above 0"));
  }
}

TEST(CostOptions, NeedWhatTheyAreFor) {
  AgentOptions options;
  const auto no_price = read_costs({.most = 1}, false, options);
  ASSERT_FALSE(no_price);
  EXPECT_THAT(no_price.error().message, HasSubstr("--max-cost needs --price"));
  const auto no_model = read_costs({.price = "1,1", .reaction_price = "1,1"}, false, options);
  ASSERT_FALSE(no_model);
  EXPECT_THAT(no_model.error().message, HasSubstr("belongs to --reaction-model"));
}

}  // namespace
}  // namespace sluice
