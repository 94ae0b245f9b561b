#include "client/api/calls/call_holds.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <set>

#include "core/manual_executor.hpp"

namespace sluice::detail {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using namespace std::chrono_literals;

class CallHoldsTest : public ::testing::Test {
 protected:
  void hold(int call) {
    holds->hold(&calls.at(static_cast<std::size_t>(call)), [this, call](bool is_paused) {
      is_paused ? (void)paused.insert(call) : (void)paused.erase(call);
    });
  }
  void release(int call) { holds->release(&calls.at(static_cast<std::size_t>(call))); }

  std::array<char, 3> calls{};
  std::set<int> paused;
  ManualExecutor loop;
  std::shared_ptr<CallHolds> holds = std::make_shared<CallHolds>(loop, 15s);
};

TEST_F(CallHoldsTest, ACallThatIsReadAgainGoesOn) {
  hold(0);
  EXPECT_THAT(paused, ElementsAre(0));
  release(0);
  EXPECT_THAT(paused, IsEmpty());
  loop.advance(14s);
  hold(0);
  loop.advance(14s);
  EXPECT_THAT(paused, ElementsAre(0)) << "the time is that of each hold";
  loop.advance(1s);
  EXPECT_THAT(paused, IsEmpty());
}

TEST_F(CallHoldsTest, CallsHoldUpAConnectionTogetherForTheTimeOfOne) {
  hold(0);
  loop.advance(14s);
  hold(1);
  loop.advance(1s);
  EXPECT_THAT(paused, IsEmpty());
  hold(2);
  EXPECT_THAT(paused, IsEmpty()) << "a third call held up the server that had just been read again";
  release(1);
  hold(2);
  EXPECT_THAT(paused, ElementsAre(2)) << "somebody has taken events";
}

TEST_F(CallHoldsTest, TheEndOfACallSaysNothingOfItsReader) {
  hold(0);
  loop.advance(15s);
  holds->end(&calls.at(0));
  hold(1);
  EXPECT_THAT(paused, IsEmpty()) << "calls that follow each other hold up for ever";
  loop.advance(15s);
  hold(1);
  EXPECT_THAT(paused, ElementsAre(1)) << "the server had time";
  holds->end(&calls.at(1));
  EXPECT_THAT(paused, IsEmpty());
}

TEST_F(CallHoldsTest, CallsThatEndSoonerHoldUpForTheTimeOfOneTogether) {
  Duration held_for{};
  for (int call = 0; call < 3; ++call) {
    hold(call);
    for (int second = 0; second < 7; ++second) {
      loop.advance(1s);
      if (!paused.empty()) held_for += 1s;
    }
    holds->end(&calls.at(static_cast<std::size_t>(call)));
    loop.advance(1s);
  }
  EXPECT_EQ(held_for, 14s);
  loop.advance(15s);
  hold(0);
  loop.advance(14s);
  EXPECT_THAT(paused, ElementsAre(0)) << "the server had time";
}

TEST_F(CallHoldsTest, TheTimeGoesOnWhileOneCallFollowsAnother) {
  hold(0);
  loop.advance(10s);
  hold(1);
  release(0);
  EXPECT_THAT(paused, ElementsAre(1));
  loop.advance(5s);
  EXPECT_THAT(paused, IsEmpty());
}

TEST_F(CallHoldsTest, MayEndWhileItHolds) {
  hold(0);
  holds.reset();
  loop.advance(15s);
  EXPECT_THAT(paused, ElementsAre(0));
}

}  // namespace
}  // namespace sluice::detail
