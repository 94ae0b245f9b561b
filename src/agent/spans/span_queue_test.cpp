#include "agent/spans/span_queue.hpp"

#include <chrono>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/manual_executor.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using Kind = SpanQueue::Outcome::Kind;

/// A queue, and a receiver that answers when a test lets it.
struct QueueBench {
  explicit QueueBench(SpanQueue::Options options = {.max_waiting = 4,
                                                    .max_batch = 2,
                                                    .interval = 1s})
      : queue(loop, options, [this](const std::vector<Span>& batch, SpanQueue::Done done) {
          std::string names;
          for (const Span& span : batch) names += span.name;
          sent.push_back(names);
          answer_ = std::move(done);
        }) {}

  void add(std::string name) { queue.add({.name = std::move(name)}); }
  void answer(Kind kind, std::optional<Duration> wait = {}) {
    const auto done = std::exchange(answer_, nullptr);
    done({.kind = kind, .why = "why", .wait = wait});
  }

  ManualExecutor loop;
  std::vector<std::string> sent;
  SpanQueue queue;

 private:
  SpanQueue::Done answer_;
};

TEST(SpanQueue, SpansWaitForOthers) {
  QueueBench bench;
  bench.add("a");
  bench.loop.advance(999ms);
  EXPECT_THAT(bench.sent, IsEmpty());
  bench.loop.advance(1ms);
  EXPECT_THAT(bench.sent, ElementsAre("a"));
  bench.add("b");
  bench.add("c");
  EXPECT_THAT(bench.sent, SizeIs(1)) << "one request at a time";
  bench.answer(Kind::taken);
  EXPECT_THAT(bench.sent, ElementsAre("a", "bc"));
}

TEST(SpanQueue, AFullBatchIsSentAtOnce) {
  QueueBench bench;
  bench.add("a");
  bench.add("b");
  EXPECT_THAT(bench.sent, ElementsAre("ab"));
}

TEST(SpanQueue, WhatIsTooMuchIsDropped) {
  QueueBench bench;
  for (const char* name : {"a", "b", "c", "d", "e", "f", "g", "h"}) bench.add(name);
  bench.answer(Kind::taken);
  bench.answer(Kind::taken);
  bench.answer(Kind::taken);
  bench.loop.advance(1h);
  EXPECT_THAT(bench.sent, ElementsAre("ab", "cd", "ef"));
}

TEST(SpanQueue, ABatchIsTriedAgainALimitedNumberOfTimes) {
  QueueBench bench;
  bench.add("a");
  bench.loop.advance(1s);
  for (int i = 0; i < 5; ++i) {
    bench.answer(Kind::try_again);
    bench.loop.advance(30s);
  }
  EXPECT_THAT(bench.sent, SizeIs(6));
  bench.add("b");
  bench.answer(Kind::try_again);
  bench.loop.advance(1s);
  EXPECT_EQ(bench.sent.back(), "b") << "the queue goes on without it";
}

TEST(SpanQueue, TheReceiverSaysHowLongToWait) {
  QueueBench bench;
  bench.add("a");
  bench.loop.advance(1s);
  bench.answer(Kind::try_again, 20s);
  bench.loop.advance(19s);
  EXPECT_THAT(bench.sent, SizeIs(1));
  bench.loop.advance(1s);
  EXPECT_THAT(bench.sent, SizeIs(2));
}

TEST(SpanQueue, WhatIsRefusedIsNotSentAgain) {
  QueueBench bench;
  bench.add("a");
  bench.loop.advance(1s);
  bench.answer(Kind::refused);
  bench.loop.advance(1h);
  EXPECT_THAT(bench.sent, SizeIs(1));
}

TEST(SpanQueue, AFlushEndsOnceAllIsSent) {
  QueueBench bench;
  for (const char* name : {"a", "b", "c"}) bench.add(name);
  bool is_flushed = false;
  bench.queue.flush([&] { is_flushed = true; });
  bench.answer(Kind::taken);
  EXPECT_THAT(bench.sent, ElementsAre("ab", "c"));
  EXPECT_FALSE(is_flushed);
  bench.answer(Kind::refused);
  EXPECT_TRUE(is_flushed);
  is_flushed = false;
  bench.queue.flush([&] { is_flushed = true; });
  EXPECT_TRUE(is_flushed) << "there is nothing to send";
}

TEST(SpanQueue, AnAnswerMayComeAfterTheQueueIsGone) {
  SpanQueue::Done answer;
  ManualExecutor loop;
  {
    SpanQueue queue(loop, {.max_waiting = 1, .max_batch = 1, .interval = 1s},
                    [&](const auto&, SpanQueue::Done done) { answer = std::move(done); });
    queue.add({.name = "a"});
  }
  answer({.kind = Kind::try_again});
  loop.advance(1h);
}

}  // namespace
}  // namespace sluice
