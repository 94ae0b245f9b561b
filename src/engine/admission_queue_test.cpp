#include "engine/admission_queue.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <vector>

namespace sluice {
namespace {

using Queue = AdmissionQueue<std::string>;
using testing::ElementsAre;

Queue filled() {
  Queue queue;
  queue.push({.priority = 0, .arrival = 1}, "a");
  queue.push({.priority = 0, .arrival = 2}, "b");
  queue.push({.priority = 5, .arrival = 3}, "urgent");
  queue.push({.priority = -1, .arrival = 0}, "idle");
  return queue;
}

std::vector<std::string> drained(Queue& queue) {
  std::vector<std::string> order;
  std::vector<std::string> announced;
  queue.visit([&](const std::string& item, std::uint32_t position) {
    EXPECT_EQ(position, announced.size());
    announced.push_back(item);
  });
  while (!queue.empty()) {
    EXPECT_EQ(queue.front(), announced[order.size()]);
    order.push_back(queue.pop());
  }
  EXPECT_EQ(order, announced);
  return order;
}

TEST(AdmissionQueue, HigherPriorityFirstThenArrival) {
  Queue queue = filled();
  EXPECT_THAT(drained(queue), ElementsAre("urgent", "a", "b", "idle"));
}

TEST(AdmissionQueue, WhoComesBackKeepsItsPlace) {
  Queue queue = filled();
  EXPECT_EQ(queue.pop(), "urgent");
  EXPECT_EQ(queue.pop(), "a");
  queue.push({.priority = 0, .arrival = 1}, "a again");
  EXPECT_EQ(queue.front(), "a again");
  EXPECT_EQ(queue.size(), 3U);
}

TEST(AdmissionQueue, TakesOutWhatIsNoLongerWanted) {
  Queue queue = filled();
  std::vector<std::string> taken;
  queue.take_if([](const std::string& item) { return item.size() == 1; },
                [&](std::string item) { taken.push_back(std::move(item)); });
  EXPECT_THAT(taken, ElementsAre("a", "b"));
  EXPECT_THAT(drained(queue), ElementsAre("urgent", "idle"));
}

TEST(AdmissionQueue, PrincipalsAreServedInTurn) {
  Queue queue;
  for (std::uint64_t i = 0; i < 4; ++i) {
    queue.push({.client = "many", .arrival = i}, "m" + std::to_string(i));
  }
  queue.push({.client = "few", .arrival = 10}, "f0");
  queue.push({.client = "third", .arrival = 11}, "t0");
  queue.push({.client = "few", .arrival = 12}, "f1");
  EXPECT_THAT(drained(queue), ElementsAre("m0", "f0", "t0", "m1", "f1", "m2", "m3"));
}

TEST(AdmissionQueue, PriorityPassesNobodyElse) {
  Queue queue;
  for (std::uint64_t i = 0; i < 3; ++i) {
    queue.push({.client = "loud", .priority = 10, .arrival = i}, "loud");
  }
  queue.push({.client = "quiet", .priority = -10, .arrival = 5}, "quiet");
  EXPECT_THAT(drained(queue), ElementsAre("loud", "quiet", "loud", "loud"));
}

/// A client that always has one more item does not keep out one that has many waiting.
TEST(AdmissionQueue, ComingAgainIsNoAdvantage) {
  Queue queue;
  std::uint64_t arrival = 0;
  for (int i = 0; i < 5; ++i) queue.push({.client = "many", .arrival = arrival++}, "m");
  std::string order;
  for (int i = 0; i < 8; ++i) {
    if (i % 2 == 0) queue.push({.client = "again", .arrival = arrival++}, "a");
    order += queue.pop();
  }
  EXPECT_EQ(order, "mamamama");
}

}  // namespace
}  // namespace sluice
