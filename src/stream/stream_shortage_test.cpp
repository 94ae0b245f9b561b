// What streams do when an allocation fails: nothing is lost, and what could not be done is done
// later.

#include <chrono>
#include <cstddef>
#include <gtest/gtest.h>
#include <memory>
#include <new>
#include <string>
#include <utility>

#include "core/allocation_failure_test_support.hpp"
#include "core/sharing/client_memory.hpp"
#include "stream/stream_test_support.hpp"

namespace sluice {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

/// Calls `work` with the n-th allocation failing, for each n that it may reach. The first is that
/// of the test's own timer.
template <class Work>
void fail_some_allocations(const Work& work) {
  for (std::size_t failing = 2; failing < 20; ++failing) work(failing);
}

/// Lets time pass while the n-th allocation fails.
void advance_without(StreamBench& bench, std::size_t failing, Duration time) {
  allocations_left = failing;
  try {
    bench.executor.advance(time);
  } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch)
  }
  allocations_left = 0;
}

TEST(StreamShortage, ALackOfMemoryLeavesNoPartOfAStream) {
  StreamBench bench;
  fail_each_allocation([&] {
    const auto stream = bench.start({.principal = "a client with a name that needs memory"});
    ASSERT_NE(stream, nullptr);
    {
      const ReadingCursor reader(stream, 0);
      stream->append(ChunkKind::text, "x");
      bench.executor.run();
    }
    stream->finish();
    bench.executor.run();
  });
  const StreamCounters& counters = bench.streams->counters();
  EXPECT_EQ(counters.started, counters.open);
  bench.streams->end_all({1, "x"});
  EXPECT_EQ(counters.active, 0U);
  EXPECT_EQ(bench.policy.quota.in_use(), 0U);
  bench.executor.advance(std::chrono::hours(1));
  EXPECT_EQ(counters.open, 0U);
  const auto stream = bench.start();
  ReadingCursor reader(stream, 0);
  stream->append(ChunkKind::text, "y");
  bench.executor.run();
  EXPECT_EQ(reader.text, "y") << "streams are still flushed";
}

TEST(StreamShortage, ExpiryGoesOnAfterALackOfMemory) {
  fail_some_allocations([](std::size_t failing) {
    StreamBench::Setup setup;
    setup.limits.expiry = seconds(1);
    setup.limits.tombstone = seconds(1);
    StreamBench bench(setup);
    const auto unended = bench.start({.principal = "a client with a name that needs memory"});
    bench.start()->finish();
    bench.executor.run();
    advance_without(bench, failing, seconds(1));
    bench.executor.advance(seconds(3));
    expect_nothing_left(bench);
    EXPECT_EQ(bench.streams->counters().tombstones, 0U);
    EXPECT_EQ(bench.policy.quota.in_use(), 0U);
  });
}

TEST(StreamShortage, EndsAStreamWholeOrNotAtAllWithoutMemory) {
  StreamBench bench;
  fail_each_allocation([&] {
    const auto stream = bench.start_pushed();
    ReadingCursor reader(stream, 0);
    try {
      stream->finish("a trailer that needs memory");
    } catch (const std::bad_alloc&) {
      EXPECT_FALSE(stream->ended());
      stream->finish();
    }
    bench.executor.run();
    EXPECT_TRUE(reader.ended);
    EXPECT_EQ(stream->next(), 1U);
  });
}

TEST(StreamShortage, AReaderMayLeaveWithoutMemory) {
  StreamBench::Setup setup;
  setup.limits.max_chunks = 4;
  StreamBench bench(setup);
  const auto stream = bench.start_pushed();
  CountingProducer producer;
  producer.drive(stream);
  auto slow = std::make_unique<ReadingCursor>(stream, 0);
  slow->slow = true;
  while (stream->append(ChunkKind::text, "x")) {
  }
  bench.executor.run();
  ReadingCursor quick(stream, 0);
  quick.read_all();
  bench.executor.run();
  ASSERT_EQ(producer.writable_calls, 0) << "the slow reader holds the stream up";
  allocations_left = 1;
  slow.reset();
  allocations_left = 0;
  bench.executor.advance(seconds(1));
  EXPECT_EQ(producer.writable_calls, 1);
}

TEST(StreamShortage, StreamsThatWaitForMemoryGoOnAfterAFailure) {
  fail_some_allocations([](std::size_t failing) {
    StreamBench::Setup setup;
    setup.memory = 200'000;
    StreamBench bench(setup);
    MemoryHold others(bench.policy.memory.of("alice"));
    ASSERT_TRUE(others.add(95'000));
    CountingProducer producer;
    const auto one = bench.start_pushed();
    const auto two = bench.start_pushed();
    producer.drive(one);
    producer.drive(two);
    const ReadingCursor first(one, 0);
    const ReadingCursor second(two, 0);
    for (const auto& stream : {one, two}) {
      while (stream->append(ChunkKind::text, "x")) {
      }
    }
    ASSERT_TRUE(one->paused() && two->paused());
    advance_without(bench, failing, milliseconds(60));
    others = MemoryHold();
    bench.executor.advance(seconds(3));
    EXPECT_EQ(producer.writable_calls, 2) << failing;
  });
}

TEST(StreamShortage, ReadersThatStallAreDroppedAfterAFailure) {
  fail_some_allocations([](std::size_t failing) {
    StreamBench::Setup setup;
    setup.limits.max_chunks = 4;
    setup.limits.stall = seconds(2);
    StreamBench bench(setup);
    const auto stream = bench.start_pushed();
    CountingProducer producer;
    producer.drive(stream);
    ReadingCursor slow(stream, 0);
    slow.slow = true;
    while (stream->append(ChunkKind::text, "x")) {
    }
    bench.executor.run();
    advance_without(bench, failing, seconds(2));
    for (int i = 0; i < 6; ++i) bench.executor.advance(seconds(1));
    EXPECT_EQ(slow.stream(), nullptr) << failing;
    EXPECT_EQ(producer.cancels, 1) << failing;
  });
}

}  // namespace
}  // namespace sluice
