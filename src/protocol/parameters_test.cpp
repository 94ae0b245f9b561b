#include "protocol/parameters.hpp"

#include <gtest/gtest.h>
#include <limits>

namespace sluice {
namespace {

TEST(Parameters, NullIsNone) {
  const json::object params = {{"a", nullptr}, {"b", false}};
  EXPECT_EQ(find_parameter(params, "a"), nullptr);
  EXPECT_NE(find_parameter(params, "b"), nullptr);
  EXPECT_EQ(find_parameter(params, "c"), nullptr);
}

TEST(Parameters, IntegersMayBeWrittenAsFractions) {
  for (const auto& [text, integer] :
       {std::pair("0", 0LL), std::pair("-7", -7LL), std::pair("1.0", 1LL),
        std::pair("-1e2", -100LL),
        std::pair("9223372036854775807", std::numeric_limits<long long>::max()),
        std::pair("9007199254740991.0", 9007199254740991LL), std::pair("-0", 0LL)}) {
    EXPECT_EQ(integer_of(parse_json(text).value()), integer) << text;
  }
  for (const char* const text : {"1.5", "1e300", "1e999", "18446744073709551615",
                                 "9007199254740993.0", "\"1\"", "null", "true", "[1]", "{}"}) {
    EXPECT_EQ(integer_of(parse_json(text).value()), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace sluice
