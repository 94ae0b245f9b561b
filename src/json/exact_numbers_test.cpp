#include "json/exact_numbers.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sluice {
namespace {

using ::testing::HasSubstr;

TEST(ExactNumbers, WhatIsSentAsItIsHasNoFault) {
  for (const char* const text : {"0",
                                 "-0",
                                 "0.0",
                                 "0e5",
                                 "1.0",
                                 "1e2",
                                 "100e-2",
                                 "1E+2",
                                 "2.50",
                                 "-0.001",
                                 "0.1",
                                 "1e22",
                                 "9007199254740993",
                                 "-9223372036854775808",
                                 "18446744073709551615",
                                 "9007199254740992.0",
                                 "1.7976931348623157e308",
                                 "5e-324",
                                 "3.141592653589793",
                                 "52.520006600000002",
                                 "0.1000000000000000055511151231257827",
                                 "0.00000000000000000000000000000000000000000000000001",
                                 R"({"1e999":["1e999\\",1]})"}) {
    EXPECT_EQ(inexact_number_in(text), "") << text;
  }
}

TEST(ExactNumbers, WhatWouldBeAnotherNumberIsSaid) {
  EXPECT_THAT(inexact_number_in("18446744073709551616"), HasSubstr("more than 64 bits"));
  EXPECT_THAT(inexact_number_in(R"({"a":[1,-1e999]})"), HasSubstr("larger than any"));
  for (const char* const text : {"1e-400", "-0.1e-323", R"({"a":1e-99999999999999999999999})"}) {
    EXPECT_THAT(inexact_number_in(text), HasSubstr("nearer to 0")) << text;
  }
  for (const char* const text :
       {"9007199254740993.0", "9007199254740993e0", "0.10000000000000000001",
        "123456789012345678901e0", "3e-324", "3.14159265358979323846"}) {
    EXPECT_THAT(inexact_number_in(text), HasSubstr("more digits")) << text;
  }
}

}  // namespace
}  // namespace sluice
