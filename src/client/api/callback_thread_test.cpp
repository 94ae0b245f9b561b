#include "client/api/callback_thread.hpp"

#include <cstddef>
#include <cstdint>
#include <future>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <memory>
#include <stop_token>
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

/// Begins a job that waits until it is asked to stop.
std::future<void> begin_patient_job(CallbackThread& thread, std::uint64_t key) {
  auto begun = std::make_shared<std::promise<void>>();
  auto stopped = std::make_shared<std::promise<void>>();
  thread.run(
      [begun, stopped] {
        const std::stop_token stop = CallbackThread::current().get_token();
        begun->set_value();
        std::promise<void> asked;
        const std::stop_callback ask(stop, [&asked] { asked.set_value(); });
        asked.get_future().wait();
        stopped->set_value();
      },
      key);
  begun->get_future().wait();
  return stopped->get_future();
}

TEST(CallbackThread, WhatRunsIsAskedToStop) {
  CallbackThread thread;
  for (const std::uint64_t key : {1U, 2U}) {
    const std::future<void> stopped = begin_patient_job(thread, key);
    thread.withdraw(key);
    stopped.wait();
  }
  const std::future<void> last = begin_patient_job(thread, 3);
  thread.withdraw(1);
  thread.stop();
  last.wait();
  EXPECT_FALSE(CallbackThread::current().stop_possible()) << "this is no job";
}

TEST(CallbackThread, WhatHasNoKeyIsRunBeforeItEnds) {
  std::vector<std::string> said;
  CallbackThread thread;
  begin_patient_job(thread, 1);
  thread.run([&said] { said.emplace_back("question"); }, 2);
  thread.run([&said] { said.emplace_back("news"); }, 0);
  thread.run_within({.jobs = 9, .bytes = 99}, [&said] { said.emplace_back("notification"); }, 1);
  thread.stop();
  EXPECT_THAT(said, ElementsAre("news"));
  thread.run([&said] { said.emplace_back("late"); }, 0);
  EXPECT_THAT(said, ElementsAre("news"));
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
