#include "auth/operators.hpp"

#include <gtest/gtest.h>

namespace sluice {
namespace {

TEST(OperatorsTest, AreTheClientsOfTheirKeys) {
  Operators operators({"alice"});
  EXPECT_TRUE(operators.has({.id = "key:alice"}));
  EXPECT_FALSE(operators.has({.id = "alice"})) << "an address, or something else";
  EXPECT_FALSE(operators.has({.id = "key:bob"}));
  EXPECT_FALSE(operators.has({.id = "key:"}));
  operators.replace({"bob"});
  EXPECT_FALSE(operators.has({.id = "key:alice"}));
  EXPECT_TRUE(operators.has({.id = "key:bob"}));
}

}  // namespace
}  // namespace sluice
