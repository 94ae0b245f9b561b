#include "engine/llama/admission_queue.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <vector>

namespace sluice {
namespace {

using Queue = AdmissionQueue<std::string>;

Queue filled() {
  Queue queue;
  queue.push({.priority = 0, .arrival = 1}, "a");
  queue.push({.priority = 0, .arrival = 2}, "b");
  queue.push({.priority = 5, .arrival = 3}, "urgent");
  queue.push({.priority = -1, .arrival = 0}, "idle");
  return queue;
}

TEST(AdmissionQueue, HigherPriorityFirstThenArrival) {
  Queue queue = filled();
  std::vector<std::string> order;
  while (!queue.empty()) order.push_back(queue.pop());
  EXPECT_THAT(order, testing::ElementsAre("urgent", "a", "b", "idle"));
}

TEST(AdmissionQueue, WhoComesBackKeepsItsPlace) {
  Queue queue = filled();
  queue.pop();
  const std::string a = queue.pop();
  queue.push({.priority = 0, .arrival = 1}, a);
  EXPECT_EQ(queue.front(), "a");
}

TEST(AdmissionQueue, TakesOutWhatWasCancelled) {
  Queue queue = filled();
  std::vector<std::string> taken;
  queue.take_if([](const std::string& item) { return item.size() == 1; },
                [&](std::string item) { taken.push_back(std::move(item)); });
  EXPECT_THAT(taken, testing::ElementsAre("a", "b"));
  EXPECT_EQ(queue.size(), 2U);
}

TEST(AdmissionQueue, KnowsEverybodysPosition) {
  const Queue queue = filled();
  std::vector<std::string> seen;
  queue.visit([&](const std::string& item, std::uint32_t position) {
    EXPECT_EQ(position, seen.size());
    seen.push_back(item);
  });
  EXPECT_EQ(seen.size(), 4U);
}

}  // namespace
}  // namespace sluice
