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
using std::chrono::seconds;

/// Ends `stream` and reads it to its end.
void finish_and_read(StreamBench& bench, const std::shared_ptr<ChunkStream>& stream) {
  stream->finish();
  ReadingCursor reader(stream, stream->first());
  bench.executor.run();
  ASSERT_TRUE(stream->delivered());
}

// --- telling readers ------------------------------------------------------------------------

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

// --- ids ------------------------------------------------------------------------------------

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

// --- expiry ---------------------------------------------------------------------------------

TEST(StreamExpiry, EndsAStreamThatNobodyReadsAndRemembersItForAWhile) {
  StreamBench bench;
  auto stream = bench.start();
  const std::string id(stream->id());
  CountingProducer producer;
  producer.drive(stream);
  stream->append(ChunkKind::text, "unread");
  bench.executor.advance(minutes(5) - milliseconds(1));
  EXPECT_TRUE(bench.streams->find(id, "alice")) << "which counts as access";
  bench.executor.advance(minutes(5) - milliseconds(1));
  EXPECT_EQ(producer.cancels, 0);
  bench.executor.advance(seconds(2));
  EXPECT_EQ(producer.cancels, 1);
  EXPECT_EQ(stream->state(), StreamState::failed);
  EXPECT_EQ(stream->error().code, kStreamExpired);
  stream.reset();
  EXPECT_EQ(bench.streams->find(id, "alice").error().code, kStreamExpired);
  EXPECT_EQ(bench.streams->find(id, "bob").error().code, kStreamNotFound)
      << "a tombstone is as private as the stream was";
  EXPECT_EQ(bench.streams->counters().expired, 1U);
  EXPECT_EQ(bench.streams->counters().tombstones, 1U);
  bench.executor.advance(minutes(5) - seconds(2));
  EXPECT_EQ(bench.streams->find(id, "alice").error().code, kStreamExpired);
  bench.executor.advance(seconds(3));
  EXPECT_EQ(bench.streams->find(id, "alice").error().code, kStreamNotFound);
  EXPECT_EQ(bench.streams->counters().tombstones, 0U);
  expect_nothing_left(bench);
  EXPECT_EQ(bench.executor.timers(), 0U) << "an idle manager has no timers";
}

TEST(StreamExpiry, IsPutOffByEveryAccess) {
  StreamBench bench;
  const auto stream = bench.start();
  const std::string id(stream->id());
  for (int i = 0; i < 5; ++i) {
    bench.executor.advance(minutes(4));
    EXPECT_TRUE(bench.streams->find(id, "alice"));
  }
  bench.executor.advance(minutes(4));
  {
    const ReadingCursor reader(stream, 0);
  }
  bench.executor.advance(minutes(4));
  EXPECT_TRUE(bench.streams->find(id, "alice"));
  // Appending chunks does not count as access.
  stream->append(ChunkKind::text, "x");
  bench.executor.advance(minutes(5));
  EXPECT_FALSE(bench.streams->find(id, "alice"));
}

TEST(StreamExpiry, NeverComesWhileSomebodyIsAttached) {
  StreamBench bench;
  const auto stream = bench.start_pushed();
  {
    ReadingCursor reader(stream, 0);
    bench.executor.advance(minutes(60));
    EXPECT_FALSE(reader.dropped);
    EXPECT_FALSE(stream->ended());
  }
  bench.executor.advance(minutes(5) + seconds(1));
  EXPECT_TRUE(stream->ended());
}

TEST(StreamExpiry, TakesOnlyTheStreamsThatAreDue) {
  StreamBench bench;
  std::vector<std::string> ids;
  for (int i = 0; i < 10; ++i) {
    ids.emplace_back(bench.start()->id());
    bench.executor.advance(seconds(30));
  }
  bench.executor.advance(seconds(2));
  for (std::size_t i = 0; i < ids.size(); ++i) {
    EXPECT_EQ(bench.streams->find(ids[i], "alice").has_value(), i > 0) << i;
  }
}

TEST(StreamExpiry, AProducerThatIsStoppedMayRemoveOtherStreams) {
  StreamBench bench;
  std::vector<std::shared_ptr<ChunkStream>> streams;
  CountingProducer producer;
  for (int i = 0; i < 6; ++i) streams.push_back(bench.start());
  producer.when_cancelled = [&] {
    if (producer.cancels > 1) return;
    for (std::size_t i = 1; i < 5; ++i) bench.streams->discard(*streams[i]);
    bench.start();
  };
  for (const auto& stream : streams) producer.drive(stream);
  bench.executor.advance(minutes(5) + seconds(1));
  EXPECT_EQ(producer.cancels, 6);
  EXPECT_EQ(bench.streams->counters().open, 1U);
  bench.executor.advance(minutes(5) + seconds(1));
  EXPECT_EQ(bench.streams->counters().open, 0U);
}

TEST(StreamExpiry, OfNoTimeAtAllStillEnds) {
  StreamBench::Setup setup;
  setup.limits.expiry = Duration::zero();
  StreamBench bench(setup);
  const auto attached = bench.start_pushed();
  ReadingCursor reader(attached, 0);
  bench.start();
  bench.executor.advance(seconds(1));
  EXPECT_EQ(bench.streams->counters().open, 1U);
  EXPECT_FALSE(reader.dropped);
}

// --- quota and number -----------------------------------------------------------------------

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

// --- memory over all streams ----------------------------------------------------------------

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

// --- order ----------------------------------------------------------------------------------

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

// --- what others have costs nothing ---------------------------------------------------------

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

// --- the end of things ----------------------------------------------------------------------

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

// --- tombstones -----------------------------------------------------------------------------

TEST(StreamStore, KeepsABoundedNumberOfTombstones) {
  StreamBench::Setup setup;
  setup.limits.expiry = minutes(60);
  setup.limits.tombstone = minutes(60);
  setup.max_streams = 1;
  StreamBench bench(setup);
  std::vector<std::string> ids;
  for (std::size_t i = 0; i < StreamStore::kMaxTombstones + 3; ++i) {
    const auto stream = bench.start({.principal = "alice", .expects_poller = false});
    ASSERT_NE(stream, nullptr);
    if (i < 3) ids.emplace_back(stream->id());
    stream->finish();
    stream->note_delivered();
    bench.executor.run();
  }
  // One stream still exists, so two more were buried than the limit allows.
  EXPECT_EQ(bench.streams->counters().tombstones, StreamStore::kMaxTombstones);
  EXPECT_EQ(bench.streams->find(ids[0], "alice").error().code, kStreamNotFound);
  EXPECT_EQ(bench.streams->find(ids[1], "alice").error().code, kStreamNotFound);
  EXPECT_EQ(bench.streams->find(ids[2], "alice").error().code, kStreamExpired);
}

TEST(StreamStore, TellsWhichIdsAreTaken) {
  StreamBench bench;
  StreamStore store;
  const auto stream = bench.start();
  const std::string id(stream->id());
  EXPECT_FALSE(store.contains(id));
  store.insert(stream);
  EXPECT_TRUE(store.contains(id));
  EXPECT_EQ(store.size(), 1U);
  EXPECT_EQ(store.find(id, "alice").presence, StreamStore::Presence::present);
  EXPECT_EQ(store.find(id, "bob").presence, StreamStore::Presence::absent);
  int visited = 0;
  store.for_each([&](const ChunkStream&) { ++visited; });
  EXPECT_EQ(visited, 1);
  const TimePoint until = TimePoint{} + seconds(10);
  store.leave_tombstone(*stream, until);
  EXPECT_EQ(store.size(), 0U);
  EXPECT_TRUE(store.contains(id)) << "an id is not reused while somebody may ask for it";
  EXPECT_EQ(store.find(id, "alice").presence, StreamStore::Presence::expired);
  store.sweep_tombstones(until - Duration(1));
  EXPECT_TRUE(store.contains(id));
  store.sweep_tombstones(until);
  EXPECT_FALSE(store.contains(id));
  EXPECT_EQ(store.tombstones(), 0U);
}

}  // namespace
}  // namespace sluice
