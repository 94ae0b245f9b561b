#include "stream/stream_manager.hpp"

#include <ctime>
#include <functional>
#include <gtest/gtest.h>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "stream/stream_error.hpp"
#include "stream/stream_test_support.hpp"

namespace sluice {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;

// --- telling readers ----------------------------------------------------------------------------

TEST(StreamManager, AClientWithManyReadersDelaysNoOther) {
  StreamBench bench;
  std::vector<std::shared_ptr<ChunkStream>> streams;
  std::vector<std::unique_ptr<ReadingCursor>> readers;
  std::size_t told = 0;
  std::size_t told_before = 0;
  const auto read = [&](const std::shared_ptr<ChunkStream>& stream, std::function<void()> when) {
    readers.push_back(std::make_unique<ReadingCursor>(stream, 0));
    readers.back()->when_told = std::move(when);
  };
  for (int i = 0; i < 20; ++i) {
    streams.push_back(bench.start({.principal = "mallory", .priority = 10}));
    for (int n = 0; n < 1000; ++n) read(streams.back(), [&] { ++told; });
  }
  streams.push_back(bench.start({.principal = "alice"}));
  read(streams.back(), [&] { told_before = told; });
  for (const auto& stream : streams) stream->append(ChunkKind::text, "x");
  bench.executor.run();
  EXPECT_EQ(told, 20'000U) << "each is told once";
  EXPECT_EQ(readers.back()->text, "x");
  EXPECT_LE(told_before, 6'000U);
}

TEST(StreamManager, AStreamWithManyReadersDelaysNoOther) {
  StreamBench bench;
  const auto crowded = bench.start({.principal = "mallory", .priority = 10});
  const auto other = bench.start({.principal = "alice"});
  std::vector<std::unique_ptr<ReadingCursor>> readers;
  for (int i = 0; i < 20'000; ++i) {
    readers.push_back(std::make_unique<ReadingCursor>(crowded, 0));
  }
  const auto told = [&] {
    return std::ranges::count_if(readers, [](const auto& each) { return each->told > 0; });
  };
  std::ptrdiff_t told_before = 0;
  ReadingCursor reader(other, 0);
  reader.when_told = [&] {
    told_before = told();
    // One of those that are not told yet leaves, and there is something new for all.
    readers.erase(readers.begin() + 10);
    crowded->append(ChunkKind::text, "y");
  };
  crowded->append(ChunkKind::text, "x");
  other->append(ChunkKind::text, "x");
  bench.executor.run();
  EXPECT_LE(told_before, 6'000);
  EXPECT_EQ(told(), 19'999);
  for (const auto& each : readers) ASSERT_EQ(each->text, "xy");
}

TEST(StreamManager, AFlushForManyReadersDelaysNoOther) {
  StreamBench bench;
  const auto stream = bench.start();
  std::vector<std::unique_ptr<ReadingCursor>> readers;
  std::size_t told = 0;
  for (int i = 0; i < 5'000; ++i) {
    readers.push_back(std::make_unique<ReadingCursor>(stream, 0));
    readers.back()->when_told = [&] { ++told; };
  }
  // Something new and a flush in each of many turns.
  std::string text;
  std::function<void()> go_on = [&] {
    text.push_back('x');
    told = 0;
    stream->append(ChunkKind::text, "x");
    stream->flush();
    EXPECT_LE(told, 2'000U);
    if (text.size() < 50) bench.executor.post([&] { bench.executor.post(go_on); });
  };
  go_on();
  EXPECT_GE(told, 100U);
  bench.executor.run();
  for (const auto& each : readers) ASSERT_EQ(each->text, text);
}

TEST(StreamManager, PrivateStreamsOfOneClientHaveOneTurn) {
  StreamBench bench;
  std::vector<std::shared_ptr<ChunkStream>> streams;
  std::vector<std::unique_ptr<ReadingCursor>> readers;
  std::size_t told = 0;
  std::size_t told_before = 0;
  for (int i = 0; i < 100; ++i) {
    const std::string session = "session:" + std::to_string(i);
    streams.push_back(bench.streams->start_private(session, "tools/call", "mallory"));
    for (int n = 0; n < 200; ++n) {
      readers.push_back(std::make_unique<ReadingCursor>(streams.back(), 0));
      readers.back()->when_told = [&] { ++told; };
    }
  }
  streams.push_back(bench.streams->start_private("session:last", "tools/call", "zoe"));
  ReadingCursor reader(streams.back(), 0);
  reader.when_told = [&] { told_before = told; };
  for (const auto& stream : streams) stream->append(ChunkKind::text, "x");
  bench.executor.run();
  EXPECT_EQ(reader.text, "x");
  EXPECT_LE(told_before, 6'000U);
  EXPECT_EQ(told, 20'000U);
}

TEST(StreamManager, AProducerThatThrowsDelaysNoOtherStream) {
  StreamBench bench({.limits = {.max_chunks = 8, .retained_bytes = 0}});
  CountingProducer producer;
  producer.when_writable = [] { throw std::runtime_error("in a producer"); };
  const auto failing = bench.start({.principal = "alice", .priority = 1});
  producer.drive(failing);
  ReadingCursor drained(failing, 0);
  const auto other = bench.start({.principal = "alice"});
  ReadingCursor reader(other, 0);
  while (failing->append(ChunkKind::text, "x")) {
  }
  other->append(ChunkKind::text, "x");
  bench.executor.run();
  EXPECT_EQ(producer.writable_calls, 1);
  EXPECT_EQ(reader.text, "x");
  failing->append(ChunkKind::text, "y");
  bench.executor.run();
  EXPECT_EQ(drained.text, "xxxxxxxxy");
}

TEST(StreamManager, ReadersThatCannotWaitForALaterTurnAreToldNow) {
  for (std::size_t failing = 1; failing < 8; ++failing) {
    StreamBench bench;
    const auto stream = bench.start({.principal = "a client with a long name"});
    ReadingCursor reader(stream, 0);
    stream->append(ChunkKind::text, "1");
    bench.streams->work().worked(TurnWork::kTurn);
    allocations_left = failing;
    try {
      bench.executor.run();
    } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch)
    }
    allocations_left = 0;
    stream->append(ChunkKind::text, "2");
    bench.executor.run();
    EXPECT_EQ(reader.text, "12") << failing;
  }
}

// --- ids ----------------------------------------------------------------------------------------

TEST(StreamManager, MakesIdsOfSixteenLettersAndDigits) {
  StreamBench bench;
  std::set<std::string> ids;
  for (int i = 0; i < 1000; ++i) ids.insert(std::string(bench.start()->id()));
  EXPECT_EQ(ids.size(), 1000U);
  for (const std::string& id : ids) {
    EXPECT_EQ(id.size(), 16U);
    EXPECT_EQ(id.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789"), std::string::npos);
  }
}

TEST(StreamManager, IdsSayWhichLoopTheyBelongTo) {
  ManualExecutor executor;
  StreamPolicy policy(StreamLimits{}, 1 << 20, 1000, 1000);
  for (std::size_t loop = 0; loop < 4; ++loop) {
    StreamManager streams(executor, policy, loop, 4);
    for (int i = 0; i < 50; ++i) {
      const auto stream = streams.start({.principal = "a", .method = "run"});
      EXPECT_EQ(StreamManager::loop_of((*stream)->id(), 4), loop);
    }
  }
  EXPECT_EQ(StreamManager::loop_of("anything at all", 1), 0U);
}

TEST(StreamManager, FindsAStreamForItsPrincipalOnly) {
  StreamBench bench;
  const auto stream = bench.start();
  const std::string id(stream->id());
  const auto found = bench.streams->find(id, "alice");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->get(), stream.get());
  for (const auto& missing :
       {bench.streams->find(id, "bob"), bench.streams->find(id, ""),
        bench.streams->find("", "alice"), bench.streams->find(id.substr(1), "alice"),
        bench.streams->find(id + "x", "alice"), bench.streams->find(std::string(16, '0'), "alice"),
        bench.streams->find(std::string(1 << 20, 'a'), "alice")}) {
    ASSERT_FALSE(missing);
    EXPECT_EQ(missing.error().code, kStreamNotFound);
  }
}

TEST(StreamManager, ClampsPriorities) {
  StreamBench bench;
  EXPECT_EQ(bench.start({.principal = "a", .priority = 1000000})->priority(),
            StreamManager::kMaxPriority);
  EXPECT_EQ(bench.start({.principal = "a", .priority = -1000000})->priority(),
            StreamManager::kMinPriority);
}

// --- order --------------------------------------------------------------------------------------

TEST(StreamManager, TellsReadersOfHigherPriorityFirst) {
  StreamBench bench;
  std::vector<std::shared_ptr<ChunkStream>> streams;
  std::vector<std::unique_ptr<ReadingCursor>> readers;
  std::vector<int> order;
  for (const int priority : {0, -3, 7, 2, -10, 10}) {
    streams.push_back(
        bench.start({.principal = "alice", .priority = priority, .expects_poller = false}));
    readers.push_back(std::make_unique<ReadingCursor>(streams.back(), 0));
    readers.back()->when_told = [&order, priority] { order.push_back(priority); };
    streams.back()->append(ChunkKind::text, "x");
  }
  bench.executor.run();
  EXPECT_EQ(order, (std::vector<int>{10, 7, 2, 0, -3, -10}));
}

TEST(StreamManager, ListsTheStreamsThatAPrincipalStartedLast) {
  StreamBench bench;
  const auto a = bench.start();
  const auto b = bench.start();
  bench.start({.principal = "bob"});
  const auto c = bench.start();
  a->poll_from(0);
  EXPECT_EQ(bench.streams->streams_of("alice", 9),
            (std::vector<std::shared_ptr<ChunkStream>>{c, b, a}));
  EXPECT_EQ(bench.streams->streams_of("alice", 2),
            (std::vector<std::shared_ptr<ChunkStream>>{c, b}));
  EXPECT_TRUE(bench.streams->streams_of("nobody", 9).empty());
  bench.streams->discard(*b);
  EXPECT_EQ(bench.streams->streams_of("alice", 2),
            (std::vector<std::shared_ptr<ChunkStream>>{c, a}));
}

TEST(StreamManager, ListsOnePrincipalOfAClientThatIsSeveral) {
  StreamBench bench;
  const auto one = bench.start({.principal = "2001:db8::1"});
  bench.start({.principal = "2001:db8::2"});
  EXPECT_EQ(bench.streams->streams_of("2001:db8::1", 9),
            (std::vector<std::shared_ptr<ChunkStream>>{one}));
}

// --- what others have costs nothing -------------------------------------------------------------

/// CPU seconds of this thread that `work` takes.
template <class Work>
double seconds_of(const Work& work) {
  const auto now = [] {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  };
  const double begin = now();
  work();
  return now() - begin;
}

/// Leaves `count` ended streams of `principal` that nobody has read.
void leave_unread(StreamBench& bench, const std::string& principal, int count) {
  for (int i = 0; i < count; ++i) {
    const auto stream = bench.start({.principal = principal, .expects_poller = false});
    stream->append(ChunkKind::text, "x");
    stream->finish();
  }
  bench.executor.run();
}

TEST(StreamManager, AListOfStreamsDoesNotLookAtThoseOfOthers) {
  StreamBench bench;
  const auto own = bench.start();
  const auto list = [&bench] {
    for (int i = 0; i < 1000; ++i) ASSERT_EQ(bench.streams->streams_of("alice", 1000).size(), 1U);
  };
  list();
  const double alone = seconds_of(list);
  leave_unread(bench, "mallory", 20000);
  EXPECT_LT(seconds_of(list), 30 * alone + 0.01);
}

TEST(StreamMemory, WhatNobodyHasReadIsNotSearchedForIt) {
  StreamBench::Setup setup;
  setup.memory = std::size_t{32} << 20U;
  StreamBench bench(setup);
  // It waits for memory that only another stream of the same client holds.
  const auto hog = bench.start_pushed();
  const auto waiting = bench.start_pushed();
  while (hog->append(ChunkKind::text, std::string(60000, 'x')) || !hog->paused()) {
    const auto more = bench.start_pushed();
    while (more->append(ChunkKind::text, std::string(60000, 'x'))) {
    }
    if (!waiting->append(ChunkKind::text, "a")) break;
  }
  ASSERT_TRUE(waiting->paused());
  const auto wait = [&bench] {
    for (int i = 0; i < 200; ++i) bench.executor.advance(milliseconds(50));
  };
  wait();
  const double alone = seconds_of(wait);
  leave_unread(bench, "alice", 20000);
  leave_unread(bench, "mallory", 20000);
  wait();
  ASSERT_TRUE(waiting->paused());
  EXPECT_LT(seconds_of(wait), 30 * alone + 0.01);
}

// --- the end of things --------------------------------------------------------------------------

TEST(StreamManager, EndsAllAndDeliversTheError) {
  StreamBench bench;
  const auto stream = bench.start_pushed();
  const auto ended = bench.start();
  ended->finish();
  CountingProducer producer;
  producer.drive(stream);
  ReadingCursor reader(stream, 0);
  stream->append(ChunkKind::text, "a");
  bench.streams->end_all({kBusy, "shutdown"});
  EXPECT_EQ(producer.cancels, 1);
  EXPECT_EQ(ended->state(), StreamState::finished);
  bench.executor.run();
  EXPECT_EQ(reader.text, "a");
  EXPECT_TRUE(reader.ended);
  EXPECT_EQ(stream->error().message, "shutdown");
  EXPECT_EQ(bench.streams->counters().unread, 1U);
}

TEST(StreamManager, DiscardsAStreamWithItsReadersAndProducer) {
  StreamBench bench;
  const auto stream = bench.start();
  const std::string id(stream->id());
  CountingProducer producer;
  producer.drive(stream);
  ReadingCursor reader(stream, 0);
  stream->append(ChunkKind::text, "x");
  bench.streams->discard(*stream);
  bench.streams->discard(*stream);
  EXPECT_EQ(producer.cancels, 1);
  ASSERT_TRUE(reader.dropped);
  EXPECT_EQ(reader.stream(), nullptr);
  EXPECT_EQ(bench.streams->find(id, "alice").error().code, kStreamNotFound);
  bench.executor.run();
  expect_nothing_left(bench);
}

TEST(StreamManager, AHandleToARemovedStreamIsHarmless) {
  StreamBench bench;
  const auto stream = bench.start();
  stream->append(ChunkKind::text, "x");
  bench.streams->discard(*stream);
  stream->poll_from(0);
  stream->append(ChunkKind::text, "y");
  stream->finish();
  stream->flush();
  EXPECT_FALSE(stream->cancel());
  const Result<void> gone = stream->check_position(0);
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().code, kStreamExpired);
  {
    ReadingCursor late(stream, 0);
    EXPECT_EQ(late.stream(), nullptr);
  }
  bench.executor.advance(minutes(6));
  EXPECT_EQ(bench.streams->counters().open, 0U);
  EXPECT_TRUE(bench.streams->streams_of("alice", 1).empty());
}

TEST(StreamManager, AReaderMayDiscardItsStreamWhileItIsTold) {
  StreamBench bench;
  const auto stream = bench.start_pushed();
  ReadingCursor one(stream, 0);
  ReadingCursor two(stream, 0);
  const auto discard = [&] { bench.streams->discard(*stream); };
  one.when_told = discard;
  two.when_told = discard;
  stream->append(ChunkKind::text, "x");
  bench.executor.run();
  EXPECT_EQ(one.told + two.told, 1);
  EXPECT_TRUE(one.dropped);
  EXPECT_TRUE(two.dropped);
}

TEST(StreamManager, GoesBeforeItsStreamsHandles) {
  StreamBench::Setup setup;
  setup.limits.max_chunks = 4;
  StreamBench bench(setup);
  auto held = bench.start();
  auto paused = bench.start();
  while (paused->append(ChunkKind::text, "x")) {
  }
  CountingProducer producer;
  producer.drive(held);
  auto reader = std::make_unique<ReadingCursor>(held, 0);
  held->append(ChunkKind::text, "x");
  bench.streams = nullptr;
  EXPECT_EQ(producer.cancels, 1);
  ASSERT_TRUE(reader->dropped);
  EXPECT_EQ(bench.executor.timers(), 0U);
  bench.executor.run();
  reader = nullptr;
  held = nullptr;
  paused = nullptr;
  EXPECT_EQ(bench.policy.budget.used(), 0U);
}

}  // namespace
}  // namespace sluice
