#include "net/loop/timer_heap.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <map>
#include <memory>
#include <random>
#include <utility>
#include <vector>

namespace sluice {
namespace {

using ::testing::ElementsAre;

TimePoint at(int time) {
  return TimePoint(Duration(time));
}

class TimerHeapTest : public ::testing::Test {
 public:
  TimerHeap::TimerId add(int time, int name) {
    return heap.add(at(time), [this, name] { ran.push_back(name); });
  }
  void run(int now) {
    for (Executor::Task task; heap.take_due(at(now), task);) task();
  }

  TimerHeap heap;
  std::vector<int> ran;
};

TEST_F(TimerHeapTest, GivesTimersInOrderWhenTheyAreDue) {
  add(30, 3);
  add(10, 1);
  add(20, 2);
  add(10, 11);
  EXPECT_EQ(heap.next(), at(10));
  run(9);
  EXPECT_THAT(ran, ElementsAre());
  run(20);
  EXPECT_THAT(ran, ElementsAre(1, 11, 2));
  EXPECT_EQ(heap.next(), at(30));
  run(100);
  EXPECT_TRUE(heap.empty());
}

TEST_F(TimerHeapTest, ForgetsByIdAndNotWhatReusesItsPlace) {
  const TimerHeap::TimerId first = add(10, 1);
  add(20, 2);
  heap.remove(first);
  const TimerHeap::TimerId second = add(5, 3);
  EXPECT_NE(first, second);
  heap.remove(first);
  heap.remove(0);
  heap.remove(~TimerHeap::TimerId{0});
  EXPECT_EQ(heap.size(), 2U);
  run(100);
  EXPECT_THAT(ran, ElementsAre(3, 2));
  heap.remove(second);
  EXPECT_TRUE(heap.empty());
}

TEST_F(TimerHeapTest, ATaskMayComeBackWhileItIsDestroyed) {
  struct Adds {
    explicit Adds(TimerHeapTest& owner) : test(&owner) {}
    ~Adds() { test->add(1, 9); }
    TimerHeapTest* test;
  };
  const TimerHeap::TimerId id =
      heap.add(at(5), [held = std::make_unique<Adds>(*this)] { (void)held; });
  heap.remove(id);
  run(5);
  EXPECT_THAT(ran, ElementsAre(9));
}

TEST_F(TimerHeapTest, AgreesWithAMapUnderRandomUse) {
  std::mt19937 random(7);
  std::map<std::pair<int, int>, TimerHeap::TimerId> expected;
  int now = 0;
  for (int i = 0; i < 50'000; ++i) {
    const unsigned choice = random() % 8;
    if (choice < 4) {
      const int time = now + static_cast<int>(random() % 500);
      expected[{time, i}] = add(time, i);
    } else if (choice < 7 && !expected.empty()) {
      auto chosen = expected.begin();
      std::advance(chosen, static_cast<int>(random() % expected.size()));
      heap.remove(chosen->second);
      expected.erase(chosen);
    } else {
      now += static_cast<int>(random() % 30);
      ran.clear();
      run(now);
      std::vector<int> due;
      while (!expected.empty() && expected.begin()->first.first <= now) {
        due.push_back(expected.begin()->first.second);
        expected.erase(expected.begin());
      }
      ASSERT_EQ(ran, due);
    }
    ASSERT_EQ(heap.size(), expected.size());
    if (!expected.empty()) ASSERT_EQ(heap.next(), at(expected.begin()->first.first));
  }
}

}  // namespace
}  // namespace sluice
