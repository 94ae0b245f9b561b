#include "client/api/calls/event_queue.hpp"

#include <cstddef>
#include <cstdint>
#include <gtest/gtest.h>

namespace sluice::detail {
namespace {

CallEvent numbered(std::size_t number) {
  return {.progress = static_cast<double>(number)};
}

TEST(EventQueueTest, KeepsTheOrderWhileItGrowsAndShrinks) {
  EventQueue queue(1000, 1000);
  std::size_t pushed = 0;
  std::size_t popped = 0;
  // Each round leaves one more in the queue, and then each takes one more out.
  for (std::size_t round = 0; round < 100; ++round) {
    const std::size_t in = round < 50 ? 3 : 1;
    for (std::size_t i = 0; i < in; ++i) queue.push(numbered(pushed++), 1);
    for (std::size_t i = 0; i < 2; ++i) EXPECT_EQ(queue.pop().progress, popped++);
  }
  EXPECT_EQ(pushed, popped);
  EXPECT_TRUE(queue.empty());
}

TEST(EventQueueTest, TheNextEventSaysHowManyWereDroppedBeforeIt) {
  EventQueue queue(2, 1000);
  for (std::size_t i = 0; i < 5; ++i) queue.push(numbered(i), 1);
  const CallEvent first = queue.pop();
  EXPECT_EQ(first.progress, 3);
  EXPECT_EQ(first.dropped, 3U);
  EXPECT_EQ(queue.pop().dropped, 0U);
}

TEST(EventQueueTest, WhatWasTakenIsNotCounted) {
  EventQueue queue(10, 100);
  std::uint64_t dropped = 0;
  for (std::size_t i = 0; i < 50; ++i) {
    queue.push(numbered(i), 60);
    dropped += queue.pop().dropped;
  }
  EXPECT_EQ(dropped, 0U);
}

}  // namespace
}  // namespace sluice::detail
