#include "core/turns/turn_watch.hpp"

#include <chrono>
#include <gtest/gtest.h>
#include <string>

#include "core/manual_executor.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;

class TurnWatchTest : public testing::Test {
 protected:
  /// Work that begins and then takes `time`.
  void work(const std::string& name, Duration time) {
    watch.begin({"tool", name});
    loop.stall(time);
  }
  /// What is logged by the end of the turn.
  std::string logged() {
    testing::internal::CaptureStderr();
    loop.run();
    return testing::internal::GetCapturedStderr();
  }
  [[nodiscard]] static bool names(const std::string& log, const std::string& tool) {
    return log.contains("user code blocks its event loop") && log.contains("tool=" + tool + " ");
  }

  ManualExecutor loop;
  TurnWatch watch{loop};
};

TEST_F(TurnWatchTest, LongWorkIsNamed) {
  work("slow", 100ms);
  const std::string log = logged();
  EXPECT_TRUE(names(log, "slow")) << log;
  EXPECT_TRUE(log.contains("ms=100")) << log;
}

TEST_F(TurnWatchTest, ShortWorkIsNot) {
  work("quick", 99ms);
  EXPECT_EQ(logged(), "");
  loop.advance(1h);
  EXPECT_EQ(logged(), "");
}

TEST_F(TurnWatchTest, TheWorkThatTookLongIsTheOneThatIsNamed) {
  testing::internal::CaptureStderr();
  work("first", 10ms);
  work("slow", 200ms);
  work("last", 10ms);
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_TRUE(names(log, "slow")) << log;
  EXPECT_EQ(logged(), "");
}

TEST_F(TurnWatchTest, WhatFollowsTheEndIsNoUserCode) {
  work("quick", 10ms);
  watch.end();
  loop.stall(1s);
  EXPECT_EQ(logged(), "");
  watch.end();
  loop.stall(1s);
  EXPECT_EQ(logged(), "");
}

TEST_F(TurnWatchTest, ManyShortPiecesOfTheSameWorkHoldUpTheLoopTogether) {
  for (int i = 0; i < 20; ++i) work("often", 5ms);
  EXPECT_TRUE(names(logged(), "often"));
  for (int turn = 0; turn < 20; ++turn) {
    work("often", 5ms);
    EXPECT_EQ(logged(), "");
  }
}

TEST_F(TurnWatchTest, LinesAreLimited) {
  work("slow", 1s);
  EXPECT_TRUE(names(logged(), "slow"));
  work("slow", 1s);
  EXPECT_EQ(logged(), "");
  loop.advance(LogLimit::kPeriod);
  work("slow", 1s);
  EXPECT_TRUE(logged().contains("left_out=1"));
}

}  // namespace
}  // namespace sluice
