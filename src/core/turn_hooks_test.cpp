#include "core/turn_hooks.hpp"

#include <functional>
#include <gtest/gtest.h>
#include <stdexcept>
#include <string>

#include "core/manual_executor.hpp"

namespace sluice {
namespace {

struct TestHook final : Executor::TurnHook {
  explicit TestHook(std::function<void()> action) : does(std::move(action)) {}
  void on_turn_end() override { does(); }
  std::function<void()> does;
};

TEST(TurnHooksTest, RunInTheOrderInWhichTheyWereAddedOnceATurn) {
  ManualExecutor executor;
  std::string ran;
  TestHook first([&] { ran += '1'; });
  int again = 2;
  TestHook second([&] {
    ran += '2';
    if (again-- > 0) executor.at_turn_end(second);
  });
  executor.at_turn_end(second);
  executor.at_turn_end(first);
  executor.at_turn_end(second);
  executor.run();
  EXPECT_EQ(ran, "2122");
}

TEST(TurnHooksTest, OneMayForgetAnother) {
  ManualExecutor executor;
  std::string ran;
  TestHook last([&] { ran += 'l'; });
  TestHook first([&] {
    ran += 'f';
    executor.forget(last);
    executor.forget(last);
  });
  executor.at_turn_end(first);
  executor.at_turn_end(last);
  executor.run();
  EXPECT_EQ(ran, "f");
  executor.at_turn_end(last);
  executor.run();
  EXPECT_EQ(ran, "fl");
}

TEST(TurnHooksTest, OneThatThrowsLeavesTheOthersForTheNextTurn) {
  TurnHooks hooks;
  std::string ran;
  TestHook bad([] { throw std::runtime_error("no"); });
  TestHook left([&] { ran += 'l'; });
  TestHook added([&] { ran += 'a'; });
  hooks.add(bad);
  hooks.add(left);
  EXPECT_THROW(hooks.run(), std::runtime_error);
  hooks.add(added);
  hooks.run();
  EXPECT_EQ(ran, "la");
  EXPECT_TRUE(hooks.empty());
}

}  // namespace
}  // namespace sluice
