#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "stream/stream_error.hpp"
#include "stream/stream_test_support.hpp"

namespace sluice {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

/// Ends `stream` and reads it to its end.
void finish_and_read(StreamBench& bench, const std::shared_ptr<ChunkStream>& stream) {
  stream->finish();
  ReadingCursor reader(stream, stream->first());
  bench.executor.run();
  ASSERT_TRUE(stream->delivered());
}

// --- quota and number ---------------------------------------------------------------------------

TEST(StreamQuota, CountsStreamsUnderWayOfEachClient) {
  StreamBench::Setup setup;
  setup.per_client = 3;
  StreamBench bench(setup);
  std::vector<std::shared_ptr<ChunkStream>> streams;
  for (int i = 0; i < 3; ++i) streams.push_back(bench.start());
  const auto refused = bench.streams->start({.principal = "alice", .method = "run"});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, kLimitReached);
  EXPECT_NE(refused.error().message.find("streams-per-client"), std::string::npos);
  EXPECT_TRUE(bench.start({.principal = "bob"}));
  // An ended stream no longer counts, although it can still be read.
  streams[1]->finish();
  EXPECT_NE(bench.start(), nullptr);
  EXPECT_EQ(bench.start(), nullptr);
  streams[0]->fail({1, "x"});
  bench.streams->discard(*streams[2]);
  EXPECT_NE(bench.start(), nullptr);
  EXPECT_NE(bench.start(), nullptr);
  EXPECT_EQ(bench.start(), nullptr);
}

TEST(StreamQuota, PrivateStreamsAreNoClients) {
  StreamBench::Setup setup;
  setup.per_client = 1;
  setup.max_streams = 1;
  StreamBench bench(setup);
  const auto of_nobody = bench.streams->start_private("", "tools/call", "alice");
  const auto of_session = bench.streams->start_private("session:1", "tools/call", "alice");
  ASSERT_NE(bench.start(), nullptr);
  EXPECT_EQ(bench.streams->streams_of("alice", 9).size(), 1U);
  EXPECT_FALSE(bench.streams->find(of_nobody->id(), "alice"));
  EXPECT_FALSE(bench.streams->find(of_nobody->id(), ""));
  EXPECT_FALSE(bench.streams->find(of_session->id(), "alice"));
  EXPECT_TRUE(bench.streams->find(of_session->id(), "session:1"));
  // Discarding them makes no room for others.
  bench.streams->discard(*of_nobody);
  bench.streams->discard(*of_session);
  EXPECT_EQ(bench.start({.principal = "bob"}), nullptr);
}

TEST(StreamNumber, WhatHasBeenReadMakesRoomThenWhatHasEnded) {
  StreamBench::Setup setup;
  setup.max_streams = 4;
  StreamBench bench(setup);
  std::vector<std::shared_ptr<ChunkStream>> streams;
  for (int i = 0; i < 4; ++i) streams.push_back(bench.start());
  const auto refused = bench.streams->start({.principal = "alice", .method = "run"});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, kLimitReached);
  EXPECT_NE(refused.error().message.find("at its limit of streams"), std::string::npos);

  streams[0]->append(ChunkKind::text, "unread");
  streams[0]->finish();
  finish_and_read(bench, streams[2]);
  finish_and_read(bench, streams[1]);
  EXPECT_NE(bench.start(), nullptr);
  EXPECT_EQ(bench.streams->find(streams[2]->id(), "alice").error().code, kStreamExpired)
      << "the one not accessed for longest";
  EXPECT_TRUE(bench.streams->find(streams[1]->id(), "alice"));
  EXPECT_NE(bench.start(), nullptr);
  EXPECT_FALSE(bench.streams->find(streams[1]->id(), "alice"));
  EXPECT_TRUE(bench.streams->find(streams[0]->id(), "alice"));
  EXPECT_NE(bench.start(), nullptr);
  EXPECT_EQ(bench.streams->find(streams[0]->id(), "alice").error().code, kStreamExpired);
  EXPECT_EQ(bench.start(), nullptr) << "none of the others has ended";
  EXPECT_EQ(bench.streams->counters().open, 4U);
}

TEST(StreamNumber, WhoLeavesMostUnreadMakesRoomForOthers) {
  StreamBench::Setup setup;
  setup.max_streams = 6;
  StreamBench bench(setup);
  const auto end = [&](const std::string& client) {
    const auto stream = bench.start({.principal = client});
    if (stream != nullptr) stream->finish();
    return stream;
  };
  const auto of_bob = end("bob");
  std::vector<std::shared_ptr<ChunkStream>> greedy;
  for (int i = 0; i < 20; ++i) greedy.push_back(end("mallory"));
  EXPECT_TRUE(bench.streams->find(of_bob->id(), "bob"));
  EXPECT_EQ(bench.streams->find(greedy[14]->id(), "mallory").error().code, kStreamExpired);
  EXPECT_TRUE(bench.streams->find(greedy[15]->id(), "mallory"));
  const auto of_carol = end("carol");
  ASSERT_NE(of_carol, nullptr);
  EXPECT_FALSE(bench.streams->find(greedy[15]->id(), "mallory"));
  EXPECT_TRUE(bench.streams->find(of_bob->id(), "bob"));
  EXPECT_TRUE(bench.streams->find(of_carol->id(), "carol"));
  EXPECT_EQ(bench.streams->counters().open, 6U);
  EXPECT_EQ(bench.streams->counters().unread, 6U);
}

TEST(StreamNumber, CallsThatNobodyReadsMakeRoomToo) {
  StreamBench::Setup setup;
  setup.max_streams = 6;
  StreamBench bench(setup);
  std::vector<std::shared_ptr<ChunkStream>> under_way;
  for (int i = 0; i < 10; ++i) {
    under_way.push_back(bench.streams->start_private("session:1", "tools/call", "mallory"));
  }
  EXPECT_EQ(bench.streams->counters().open, 10U) << "private streams are limited elsewhere";
  for (int i = 0; i < 100; ++i) {
    bench.streams->start_private("session:1", "tools/call", "mallory")->finish();
  }
  EXPECT_EQ(bench.streams->counters().open, 17U);
  EXPECT_NE(bench.start({.principal = "bob"}), nullptr);
  for (const auto& stream : under_way) EXPECT_FALSE(stream->ended());
}

TEST(StreamNumber, AReaderHearsLaterThatItsStreamHasMadeRoom) {
  StreamBench::Setup setup;
  setup.max_streams = 1;
  StreamBench bench(setup);
  const auto stream = bench.start_pushed();
  ReadingCursor reader(stream, 0);
  reader.slow = true;
  stream->append(ChunkKind::text, "x");
  stream->finish();
  EXPECT_NE(bench.start(), nullptr);
  EXPECT_FALSE(reader.dropped) << "it must not be notified from within start()";
  bench.executor.run();
  EXPECT_TRUE(reader.dropped);
  EXPECT_EQ(stream->memory(), 0U);
}

TEST(StreamNumber, ARefusedStartTakesNothingFromTheQuota) {
  StreamBench::Setup setup;
  setup.max_streams = 1;
  setup.per_client = 2;
  StreamBench bench(setup);
  const auto stream = bench.start();
  for (int i = 0; i < 5; ++i) {
    const auto refused = bench.streams->start({.principal = "alice", .method = "run"});
    ASSERT_FALSE(refused);
    // If a refused start took from the quota, the quota would soon refuse instead.
    EXPECT_NE(refused.error().message.find("at its limit of streams"), std::string::npos) << i;
  }
  finish_and_read(bench, stream);
  EXPECT_NE(bench.start(), nullptr);
}

TEST(StreamNumber, APollerInTheMiddleKeepsItsStreamWhileThereAreOthers) {
  StreamBench::Setup setup;
  setup.max_streams = 2;
  StreamBench bench(setup);
  const auto stream = bench.start();
  stream->append(ChunkKind::text, "x");
  stream->poll_from(0);
  finish_and_read(bench, stream);
  for (int i = 0; i < 3; ++i) finish_and_read(bench, bench.start());
  EXPECT_TRUE(bench.streams->find(stream->id(), "alice"))
      << "a cursor has read it, but the poller has not";
  stream->note_delivered();
  EXPECT_NE(bench.start(), nullptr);
  EXPECT_NE(bench.start(), nullptr);
  EXPECT_FALSE(bench.streams->find(stream->id(), "alice"));
}

TEST(StreamNumber, EvictedStreamsAreFreedAtOnce) {
  StreamBench::Setup setup;
  setup.max_streams = 8;
  StreamBench bench(setup);
  // Only the manager holds these streams.
  for (int i = 0; i < 100; ++i) {
    const auto stream = bench.start();
    ASSERT_NE(stream, nullptr);
    stream->append(ChunkKind::text, "x");
    finish_and_read(bench, stream);
  }
  EXPECT_EQ(bench.streams->counters().open, 8U);
  EXPECT_EQ(bench.streams->counters().tombstones, 92U);
}

// --- memory over all streams --------------------------------------------------------------------

TEST(StreamMemory, PausesAClientsStreamsWhenItsShareIsShortAndWakesThemByPriority) {
  StreamBench::Setup setup;
  setup.memory = 128 << 10;
  setup.limits.retained_bytes = 0;
  StreamBench bench(setup);
  std::vector<std::shared_ptr<ChunkStream>> streams;
  std::vector<std::unique_ptr<CountingProducer>> producers;
  std::vector<int> woken;
  for (int i = 0; i < 4; ++i) {
    streams.push_back(bench.start({.principal = "alice", .priority = i % 2 == 0 ? i : -i}));
    producers.push_back(std::make_unique<CountingProducer>());
    producers.back()->when_writable = [&woken, i] { woken.push_back(i); };
    producers.back()->drive(streams.back());
    streams.back()->poll_from(0);
  }
  const std::string text(500, 'x');
  // The first stream takes nearly all memory, so the others must wait.
  while (streams[0]->append(ChunkKind::text, text)) {
  }
  for (std::size_t i = 1; i < 4; ++i) EXPECT_FALSE(streams[i]->append(ChunkKind::text, text));
  EXPECT_LE(bench.policy.budget.used(), bench.policy.budget.limit());
  bench.executor.advance(seconds(1));
  EXPECT_TRUE(woken.empty());
  streams[0]->poll_from(streams[0]->next());
  EXPECT_TRUE(woken.empty());
  bench.executor.advance(milliseconds(100));
  // The first stream's reader made room, so the others are retried.
  EXPECT_EQ(woken, (std::vector<int>{0, 2, 1, 3}));
}

TEST(StreamMemory, TakesBackWhatIsOnlyRetainedOrHasBeenRead) {
  StreamBench::Setup setup;
  setup.memory = 128 << 10;
  setup.limits.retained_bytes = 30 << 10;
  setup.limits.max_bytes = 60 << 10;
  StreamBench bench(setup);
  const auto finished = bench.start_pushed();
  const auto retaining = bench.start_pushed();
  ReadingCursor reader(retaining, 0);
  {
    ReadingCursor done(finished, 0);
    for (int i = 0; i < 40; ++i) finished->append(ChunkKind::text, std::string(500, 'f'));
    finished->finish();
    for (int i = 0; i < 40; ++i) retaining->append(ChunkKind::text, std::string(500, 'r'));
    bench.executor.run();
  }
  EXPECT_EQ(finished->first(), 0U);
  EXPECT_EQ(retaining->first(), 0U);
  // A third stream needs the memory now. It waits, and then gets what nobody else needs.
  const auto third = bench.start();
  CountingProducer producer;
  producer.drive(third);
  const auto produce = [&] {
    while (third->append(ChunkKind::text, std::string(500, 't'))) {
    }
  };
  producer.when_writable = produce;
  produce();
  EXPECT_TRUE(third->paused());
  EXPECT_LT(third->bytes(), std::size_t{25} << 10U);
  bench.executor.advance(seconds(1));
  EXPECT_GT(third->bytes(), std::size_t{50} << 10U);
  EXPECT_FALSE(third->ended());
  EXPECT_EQ(bench.streams->find(finished->id(), "alice").error().code, kStreamExpired);
  EXPECT_EQ(retaining->first(), retaining->next());
  EXPECT_FALSE(reader.dropped);
}

TEST(StreamMemory, WhatIsOfferedIsTriedAgainWhenThereIsSome) {
  StreamBench bench;
  const auto stream = bench.start();
  CountingProducer producer;
  producer.drive(stream);
  const std::string text(100'000, 'x');
  bool fits = false;
  producer.when_writable = [&] { fits = stream->offer(ChunkKind::text, text); };
  MemoryShare& share = *stream->memory_share();
  // Neither a share that is short of memory, nor one that only has too little for this chunk.
  for (const std::size_t left : {0U, 50'000U}) {
    MemoryBudget& budget = bench.policy.budget;
    const std::size_t others = left == 0 ? 0 : budget.limit() - budget.used() - 2 * left;
    budget.acquire_beyond_limit(others);
    std::size_t taken = 0;
    for (std::size_t step = 1U << 24U; left == 0 && step > 0; step /= 2) {
      while (share.try_acquire(step)) taken += step;
    }
    ASSERT_EQ(share.is_short(), left == 0);
    EXPECT_FALSE(stream->offer(ChunkKind::text, text));
    bench.executor.advance(seconds(1));
    EXPECT_FALSE(fits);
    share.release(taken);
    budget.release(others);
    bench.executor.advance(seconds(1));
    EXPECT_TRUE(std::exchange(fits, false));
    stream->acknowledge(stream->next());
  }
  stream->finish();
}

TEST(StreamMemory, FailsOnlyTheStreamForWhichThereIsNone) {
  StreamBench::Setup setup;
  setup.memory = 16 << 10;
  StreamBench bench(setup);
  const auto first = bench.start();
  const auto second = bench.start();
  CountingProducer producer;
  producer.drive(second);
  while (first->append(ChunkKind::text, std::string(500, 'x'))) {
  }
  EXPECT_FALSE(second->offer(ChunkKind::text, std::string(4000, 'y')));
  EXPECT_FALSE(second->ended());
  EXPECT_FALSE(second->append(ChunkKind::text, std::string(4000, 'y')));
  EXPECT_EQ(second->state(), StreamState::failed);
  EXPECT_EQ(second->error().code, kLimitReached);
  EXPECT_NE(second->error().message.find("streams.max_total_bytes"), std::string::npos);
  EXPECT_EQ(producer.cancels, 1);
  EXPECT_FALSE(first->ended());
  // Its end can be read nevertheless.
  EXPECT_EQ(second->next(), 1U);
}

TEST(StreamMemory, AShortageThatAnotherStreamMakesDropsNobodyWhoKeepsUp) {
  StreamBench::Setup setup;
  setup.memory = 128 << 10;
  setup.limits.retained_bytes = 0;
  setup.limits.expiry = minutes(60);
  StreamBench bench(setup);
  const auto hog = bench.start({.principal = "alice", .expects_poller = false});
  hog->append(ChunkKind::text, std::string(62 << 10, 'x'));
  const auto stream = bench.start_pushed();
  CountingProducer producer;
  producer.drive(stream);
  ReadingCursor reader(stream, 0);
  EXPECT_FALSE(stream->append(ChunkKind::text, "a"));
  bench.executor.run();
  EXPECT_EQ(reader.text, "a");
  bench.executor.advance(minutes(10));
  EXPECT_FALSE(reader.dropped);
  EXPECT_FALSE(stream->ended());
  EXPECT_EQ(producer.writable_calls, 0);
  bench.streams->discard(*hog);
  EXPECT_LT(bench.policy.budget.used(), 4096U)
      << "memory is freed at once, even though a reference remains";
  bench.executor.advance(milliseconds(60));
  EXPECT_EQ(producer.writable_calls, 1);
}

TEST(StreamMemory, AClientThatTakesAllItMayPausesNobodyElse) {
  StreamBench::Setup setup;
  setup.memory = 64 << 10;
  StreamBench bench(setup);
  const std::string text(500, 'x');
  std::vector<std::shared_ptr<ChunkStream>> held;
  // Calls that nobody reads any more are charged to their client as well.
  for (int i = 0; i < 8; ++i) {
    held.push_back(bench.streams->start_private("session:1", "tools/call", "mallory"));
    for (int n = 0; n < 100 && held.back()->append(ChunkKind::text, text); ++n) {
    }
    held.back()->finish();
  }
  EXPECT_GT(bench.policy.budget.used(), std::size_t{28} << 10U);
  const auto stream = bench.start({.principal = "alice"});
  for (int n = 0; n < 20; ++n) EXPECT_TRUE(stream->append(ChunkKind::text, text)) << n;
}

TEST(StreamMemory, IsAskedForAgainByAStreamThatWasFullFirst) {
  StreamBench::Setup setup;
  setup.memory = 64 << 10;
  setup.limits.max_bytes = 30 << 10;
  setup.limits.retained_bytes = 0;
  StreamBench bench(setup);
  const auto stream = bench.start_pushed();
  CountingProducer producer;
  producer.drive(stream);
  ReadingCursor reader(stream, 0);
  reader.slow = true;
  while (stream->append(ChunkKind::text, std::string(500, 'x'))) {
  }
  bench.executor.run();
  const auto hog = bench.start_pushed();
  while (!hog->paused() && hog->append(ChunkKind::text, std::string(1000, 'y'))) {
  }
  const auto other = bench.start_pushed();
  other->append(ChunkKind::text, std::string(29000, 'z'));
  // The stream is read, but now there is no memory. No further read will wake it.
  reader.read_all();
  bench.executor.run();
  bench.streams->discard(*hog);
  bench.streams->discard(*other);
  bench.executor.advance(milliseconds(100));
  EXPECT_EQ(producer.writable_calls, 1);
}

TEST(StreamMemory, IsAllGivenBack) {
  StreamBench bench;
  {
    std::vector<std::shared_ptr<ChunkStream>> streams;
    for (int i = 0; i < 100; ++i) {
      streams.push_back(bench.start());
      for (int k = 0; k < i; ++k) {
        streams.back()->append(ChunkKind::text, std::string(static_cast<std::size_t>(k), 'x'));
      }
      if (i % 3 == 0) streams.back()->finish();
      if (i % 3 == 1) streams.back()->poll_from(streams.back()->next() / 2);
    }
    bench.executor.run();
    EXPECT_GT(bench.policy.budget.used(), 100000U);
  }
  bench.executor.advance(minutes(11));
  expect_nothing_left(bench);
}

}  // namespace
}  // namespace sluice
