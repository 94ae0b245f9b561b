#include "core/turns/turn_work.hpp"

#include <algorithm>
#include <gtest/gtest.h>
#include <string>

#include "core/manual_executor.hpp"

namespace sluice {
namespace {

TEST(TurnWork, ClientsHaveTheirTurnsAtWhatIsLeft) {
  ManualExecutor loop;
  TurnWork work(loop);
  std::string order;
  const auto make = [&](const std::string& client, std::size_t bytes) {
    work.run(client, [&work, &order, client, bytes] {
      order += client;
      work.worked(bytes);
    });
  };
  make("a", TurnWork::kTurn);
  EXPECT_EQ(order, "a");
  EXPECT_FALSE(work.has_left());
  for (int i = 0; i < 4; ++i) make("a", 1);
  for (int i = 0; i < 2; ++i) make("b", 1);
  EXPECT_EQ(order, "a");
  loop.run();
  EXPECT_EQ(order, "aababaa") << "in the order of their names, one after another";
  EXPECT_TRUE(work.has_left());
}

TEST(TurnWork, CountsWhatWaitsUntilItIsDone) {
  ManualExecutor loop;
  TurnWork work(loop);
  std::size_t seen = 0;
  bool waits_again = false;
  work.wait("a", [&] {
    seen = work.under_way();
    work.wait("a", [&] { waits_again = true; });
  });
  TurnWork::Mark mark = work.mark();
  EXPECT_EQ(work.under_way(), 2U);
  loop.run();
  EXPECT_EQ(seen, 2U);
  EXPECT_TRUE(waits_again);
  EXPECT_EQ(work.under_way(), 1U);
  mark = nullptr;
  EXPECT_EQ(work.under_way(), 0U);
}

TEST(TurnWork, SoMuchIsDoneInATurn) {
  ManualExecutor loop;
  TurnWork work(loop);
  int made = 0;
  work.worked(TurnWork::kTurn);
  for (int i = 0; i < 100; ++i) {
    work.wait("a", [&] {
      ++made;
      work.worked(TurnWork::kTurn / 4);
    });
  }
  struct Turns final : Executor::TurnHook {
    void on_turn_end() override {
      most = std::max(most, *made - before);
      before = *made;
      if (before < 100) loop->at_turn_end(*this);
    }
    ManualExecutor* loop = nullptr;
    int* made = nullptr;
    int before = 0;
    int most = 0;
  } turns;
  turns.loop = &loop;
  turns.made = &made;
  loop.at_turn_end(turns);
  loop.run();
  EXPECT_EQ(made, 100);
  EXPECT_EQ(turns.most, 4);
}

TEST(TurnWork, WhatWaitsGoesWithIt) {
  ManualExecutor loop;
  {
    TurnWork work(loop);
    work.wait("a", [] { FAIL(); });
  }
  loop.run();
}

}  // namespace
}  // namespace sluice
