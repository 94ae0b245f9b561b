#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <vector>

#include "stream/stream_error.hpp"
#include "stream/stream_test_support.hpp"

namespace sluice {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

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

}  // namespace
}  // namespace sluice
