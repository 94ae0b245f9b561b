#include "client/api/callback_thread.hpp"

#include <cstddef>
#include <future>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <vector>

namespace sluice {
namespace {

using ::testing::ElementsAre;

/// A thread that is busy until go_on().
class CallbackThreadTest : public ::testing::Test {
 protected:
  CallbackThreadTest() {
    std::promise<void> begun;
    thread.run(
        [&begun, wait = gate.get_future().share()] {
          begun.set_value();
          wait.wait();
        },
        1);
    begun.get_future().wait();
  }
  auto says(std::string word) {
    return [this, word = std::move(word)] { said.push_back(word); };
  }
  /// Waits for all jobs.
  void go_on() {
    std::promise<void> done;
    thread.run([&done] { done.set_value(); }, 0);
    gate.set_value();
    done.get_future().wait();
  }

  std::promise<void> gate;
  std::vector<std::string> said;
  CallbackThread thread;
};

TEST_F(CallbackThreadTest, WhatIsWithdrawnIsNotRun) {
  thread.run(says("second"), 2);
  thread.run(says("third"), 3);
  thread.withdraw(2);
  thread.withdraw(1);  // has begun
  thread.withdraw(9);
  go_on();
  EXPECT_THAT(said, ElementsAre("third"));
}

TEST_F(CallbackThreadTest, TheOldestJobsMakeRoom) {
  const CallbackThread::Room room{.jobs = 3, .bytes = 100};
  EXPECT_FALSE(thread.run_within(room, says("a"), 10));
  thread.run(says("kept"), 2);
  EXPECT_FALSE(thread.run_within(room, says("b"), 10));
  EXPECT_FALSE(thread.run_within(room, says("c"), 10));
  EXPECT_TRUE(thread.run_within(room, says("d"), 10)) << "there were three";
  EXPECT_TRUE(thread.run_within(room, says("e"), 90)) << "they hold too much";
  go_on();
  EXPECT_THAT(said, ElementsAre("kept", "d", "e"));
}

TEST_F(CallbackThreadTest, AJobThatIsLargerThanTheRoomIsRunAlone) {
  const CallbackThread::Room room{.jobs = 3, .bytes = 100};
  thread.run_within(room, says("a"), 10);
  EXPECT_TRUE(thread.run_within(room, says("b"), 1000));
  go_on();
  EXPECT_THAT(said, ElementsAre("b"));
}

TEST_F(CallbackThreadTest, GoesOnAfterAnException) {
  thread.run([] { throw 1; }, 2);
  thread.run(says("next"), 3);
  go_on();
  EXPECT_THAT(said, ElementsAre("next"));
}

}  // namespace
}  // namespace sluice
