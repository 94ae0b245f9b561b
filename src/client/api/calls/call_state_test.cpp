#include "client/api/calls/call_state.hpp"

#include <cstddef>
#include <cstdint>
#include <gtest/gtest.h>
#include <optional>
#include <string>
#include <vector>

#include "sluice/client.hpp"

namespace sluice::detail {
namespace {

class CallStateTest : public ::testing::Test {
 protected:
  static ClientCall::State make(std::size_t max_events) {
    return {max_events, [] {}, [](bool) {}};
  }
  static json::object said(std::size_t number, std::size_t length) {
    return {{"progress", number}, {"message", std::string(length, 'x')}};
  }
  /// Ends the call, and counts the events and what was dropped before them.
  void finish(ClientCall::State& state) {
    state.end(json::object());
    while (const std::optional<CallEvent> event = state.next()) {
      ++taken;
      dropped += event->dropped;
      bytes += event->message.size();
    }
  }

  std::uint64_t taken = 0;
  std::uint64_t dropped = 0;
  std::size_t bytes = 0;
};

TEST_F(CallStateTest, LargeEventsAreDroppedBeforeThereAreMany) {
  ClientCall::State state = make(10'000);
  constexpr std::size_t kMessage = std::size_t{1} << 20U;
  for (std::size_t i = 0; i < 100; ++i) state.add(said(i, kMessage));
  finish(state);
  EXPECT_EQ(taken + dropped, 100U);
  EXPECT_GT(taken, 20U);
  EXPECT_LE(2 * bytes, CallOptions::kMaxEventBytes) << "each has its message twice";
}

TEST_F(CallStateTest, APositionComesWithWhatIsBeforeIt) {
  ClientCall::State state = make(10);
  state.mark("one");
  state.mark("two");
  state.add(said(1, 1));
  state.mark("three");
  state.mark("four");
  state.add(said(2, 1));
  state.end(json::object());
  std::vector<std::string> positions;
  while (const std::optional<CallEvent> event = state.next()) {
    positions.push_back(event->resumption);
    EXPECT_EQ(event->has_no_message, positions.size() == 1);
  }
  EXPECT_EQ(positions, (std::vector<std::string>{"two", "four", ""}));
}

TEST_F(CallStateTest, APositionThatIsDroppedIsNothingThatWasSaid) {
  ClientCall::State state = make(1);
  state.mark("one");
  state.add(said(1, 1));
  finish(state);
  EXPECT_EQ(taken, 1U);
  EXPECT_EQ(dropped, 0U);
}

TEST_F(CallStateTest, WhatIsLeftIsNotGivenUp) {
  for (const bool is_left : {true, false}) {
    std::vector<bool> told;
    ClientCall::State state(10, [] {}, [&told](bool left) { told.push_back(left); });
    is_left ? state.leave() : state.cancel();
    state.cancel();
    state.leave();
    EXPECT_EQ(told, std::vector<bool>{is_left});
    EXPECT_TRUE(state.is_ready());
  }
}

TEST_F(CallStateTest, TheServerIsHeldUpSoThatNothingIsDropped) {
  ClientCall::State state = make(10);
  std::vector<Holding> told;
  state.hold_up([&told](Holding holding) { told.push_back(holding); });
  for (std::size_t i = 0; i < 5; ++i) state.add(said(i, 1));
  EXPECT_TRUE(told.empty());
  for (std::size_t i = 5; i < 10; ++i) state.add(said(i, 1));
  EXPECT_EQ(told, std::vector{Holding::up}) << "there is room for what was read already";
  for (std::size_t i = 0; i < 5; ++i) EXPECT_TRUE(state.next());
  EXPECT_EQ(told, (std::vector{Holding::up, Holding::no}));
  finish(state);
  EXPECT_EQ(taken, 5U);
  EXPECT_EQ(dropped, 0U);
  EXPECT_EQ(told, (std::vector{Holding::up, Holding::no}));
}

TEST_F(CallStateTest, ParamsAreKeptOnlyIfTheyAreWanted) {
  using Said = ClientCall::State::Said;
  ClientCall::State state(10, [] {}, [](bool) {}, false);
  state.add({{"progress", 1}, {"total", 2}, {"message", "half"}});
  state.add({{"level", "info"}, {"data", "text"}}, Said::log);
  state.add({{"seq", 1}}, Said::partial_result);
  const std::optional<CallEvent> progress = state.next();
  EXPECT_EQ(progress->message, "half");
  EXPECT_EQ(progress->progress, 1);
  EXPECT_EQ(progress->total, 2);
  EXPECT_TRUE(progress->params.empty());
  const std::optional<CallEvent> log = state.next();
  EXPECT_EQ(log->message, "text");
  EXPECT_TRUE(log->params.empty());
  EXPECT_FALSE(state.next()->params.empty()) << "nothing else has what is in a partial result";
  state.end(json::object());
}

TEST_F(CallStateTest, PartialResultsGoOnWhereOthersBeginAnew) {
  using Said = ClientCall::State::Said;
  ClientCall::State state = make(10);
  state.restart();
  state.add({{"seq", 1}}, Said::partial_result);
  state.add(said(1, 1));
  EXPECT_FALSE(state.next()->is_restart);
  EXPECT_TRUE(state.next()->is_restart);
  state.end(json::object());
}

TEST_F(CallStateTest, APartialResultHasItsTextAndWhatIsMissing) {
  using Said = ClientCall::State::Said;
  ClientCall::State state = make(2);
  const json::object part{{"seq", 3},
                          {"content",
                           {{{"type", "text"}, {"text", "one"}},
                            {{"type", "image"}, {"data", "AA=="}},
                            {{"type", "text"}, {"text", "two"}}}}};
  state.add(part, Said::partial_result, 3);
  std::optional<CallEvent> event = state.next();
  ASSERT_TRUE(event);
  EXPECT_TRUE(event->is_partial_result);
  EXPECT_FALSE(event->is_log);
  EXPECT_EQ(event->message, "one\ntwo");
  EXPECT_EQ(event->params, part);
  EXPECT_EQ(event->dropped, 3U);
  // What was missing before an event that is dropped is missing before the next.
  for (std::size_t i = 0; i < 3; ++i) state.add(part, Said::partial_result, 5);
  state.end(json::object());
  event = state.next();
  ASSERT_TRUE(event);
  EXPECT_EQ(event->dropped, 11U);
  state.next();
  EXPECT_FALSE(state.next());
}

TEST_F(CallStateTest, TheLastEventIsKeptHoweverLargeItIs) {
  ClientCall::State state = make(0);
  state.add(said(1, 10));
  state.add(said(2, CallOptions::kMaxEventBytes));
  finish(state);
  EXPECT_EQ(taken, 1U);
  EXPECT_EQ(dropped, 1U);
}

TEST_F(CallStateTest, WhatWasTakenMakesRoom) {
  ClientCall::State state = make(10);
  for (std::size_t i = 0; i < 5; ++i) {
    state.add(said(i, CallOptions::kMaxEventBytes / 2 - 1000));
    ASSERT_TRUE(state.next());
  }
  state.add(said(6, 10));
  state.add(said(7, 10));
  finish(state);
  EXPECT_EQ(taken, 2U);
  EXPECT_EQ(dropped, 0U);
}

}  // namespace
}  // namespace sluice::detail
