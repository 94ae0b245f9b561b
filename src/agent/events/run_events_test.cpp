#include "agent/events/run_events.hpp"

#include <chrono>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace sluice {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Type = AgentEventType;

AgentEvent progress_of(std::string call_id, std::size_t bytes) {
  return {.type = Type::tool_progress,
          .call_id = std::move(call_id),
          .data = {{"progress", 1}, {"message", std::string(bytes, 'x')}}};
}

TEST(RunEventsTest, WhatProgressSaysCounts) {
  RunEvents events({.max_call_bytes = 10'000});
  EXPECT_TRUE(events.push(progress_of("one", 4'000)));
  EXPECT_FALSE(events.push(progress_of("one", 6'000)));
  EXPECT_TRUE(events.push(progress_of("two", 4'000))) << "each call has limits of its own";
  EXPECT_FALSE(events.is_full());
}

TEST(RunEventsTest, ResultsHoldTheModelUp) {
  RunEvents events({.max_call_bytes = 10'000});
  std::vector<std::string> room;
  events.on_room([&room](const std::string& call_id) { room.push_back(call_id); });
  const AgentEvent done{.type = Type::tool_output_done,
                        .call_id = "one",
                        .data = {{"result", std::string(6'000, 'x')}}};
  events.push(done);
  EXPECT_FALSE(events.is_full());
  events.push(done);
  EXPECT_TRUE(events.is_full());
  EXPECT_FALSE(events.push({.type = Type::output_text_delta, .text = "x"}));
  EXPECT_TRUE(events.poll());
  EXPECT_THAT(room, IsEmpty());
  EXPECT_TRUE(events.poll());
  EXPECT_THAT(room, ElementsAre(""));
  EXPECT_FALSE(events.is_full());
}

TEST(RunEventsTest, WhoPollsWhileAnotherWaitsIsRefused) {
  RunEvents events({});
  std::thread waits([&events] { EXPECT_TRUE(events.wait(1h)); });
  for (bool is_refused = false; !is_refused; std::this_thread::yield()) {
    try {
      EXPECT_FALSE(events.poll());
    } catch (const std::logic_error&) {
      is_refused = true;
    }
  }
  events.push({.type = Type::run_started});
  waits.join();
}

TEST(RunEventsTest, AWaiterForgetsNobodyElse) {
  RunEvents events({});
  int told = 0;
  const int first = 1;
  const int second = 2;
  events.on_next([&told] { ++told; }, &first);
  EXPECT_THROW(events.on_next([] {}, &second), std::logic_error);
  events.forget_next(&second);
  events.push({.type = Type::run_started});
  EXPECT_EQ(told, 1);
  EXPECT_TRUE(events.poll());
  events.on_next([&told] { ++told; }, &first);
  events.forget_next(&first);
  events.push({.type = Type::run_started});
  EXPECT_EQ(told, 1);
}

AgentEvent chunk_of(std::string call_id, std::uint64_t number) {
  return {.type = Type::tool_output_delta,
          .call_id = std::move(call_id),
          .text = "x",
          .first = number,
          .last = number};
}

TEST(RunEventsTest, ACallIsTakenUpBehindWhatWasTaken) {
  for (const auto overflow : {OutputOverflow::block, OutputOverflow::coalesce}) {
    RunEvents events({.overflow = overflow});
    const auto position = [&events] {
      const CallPosition at = events.position_of("one");
      return at.text + " " + std::to_string(at.next);
    };
    EXPECT_EQ(position(), " 0");
    events.mark("one", {"begin", 0});
    EXPECT_EQ(position(), "begin 0") << "nothing waits before it";
    events.push(chunk_of("one", 0));
    events.mark("one", {"a", 1});
    events.push(chunk_of("two", 0));
    EXPECT_EQ(position(), "begin 0");
    EXPECT_TRUE(events.poll());
    EXPECT_EQ(position(), "a 1");
    events.push(chunk_of("one", 1));
    events.push(chunk_of("one", 2));
    events.mark("one", {"c", 3});
    EXPECT_TRUE(events.poll());
    EXPECT_EQ(position(), "a 1") << "of another call";
    while (events.poll()) {
    }
    EXPECT_EQ(position(), "c 3");
    events.push({.type = Type::tool_output_done, .call_id = "one"});
    EXPECT_TRUE(events.poll());
    EXPECT_EQ(position(), " 0");
  }
}

TEST(RunEventsTest, TheEarliestPositionCountsIfNothingWasTaken) {
  RunEvents events({.overflow = OutputOverflow::block});
  for (std::uint64_t i = 0; i < 3; ++i) {
    events.push(chunk_of("one", i));
    if (i > 0) events.mark("one", {std::to_string(i), i + 1});
  }
  EXPECT_EQ(events.position_of("one").text, "1");
}

}  // namespace
}  // namespace sluice
