#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <vector>

#include "stream/stream_error.hpp"
#include "stream/stream_test_support.hpp"

namespace sluice {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(StreamStall, ASlowCursorLosesTheStreamAndTheOthersGoOn) {
  StreamBench bench(small(8));
  const auto stream = bench.start_pushed();
  CountingProducer producer;
  producer.drive(stream);
  ReadingCursor slow(stream, 0);
  ReadingCursor quick(stream, 0);
  slow.slow = true;
  fill(*stream);
  bench.executor.run();
  bench.executor.advance(seconds(30) - milliseconds(1));
  EXPECT_FALSE(slow.dropped);
  EXPECT_EQ(producer.writable_calls, 0);
  bench.executor.advance(milliseconds(1));
  ASSERT_TRUE(slow.dropped);
  EXPECT_EQ(slow.dropped->code, kStreamInvalidState);
  EXPECT_NE(slow.dropped->message.find("stalled"), std::string::npos);
  EXPECT_EQ(slow.stream(), nullptr);
  EXPECT_FALSE(quick.dropped);
  EXPECT_EQ(producer.writable_calls, 1);
  EXPECT_EQ(producer.cancels, 0);
  EXPECT_EQ(bench.streams->counters().stalled_readers, 1U);
  stream->append(ChunkKind::text, "on");
  bench.executor.run();
  EXPECT_EQ(quick.text, "xxxxxxxxon");
}

TEST(StreamStall, ASlowPollerMakesWayForACursor) {
  StreamBench bench(small(8));
  const auto stream = bench.start();
  CountingProducer producer;
  producer.drive(stream);
  stream->poll_from(0);
  ReadingCursor quick(stream, 0);
  fill(*stream);
  bench.executor.run();
  bench.executor.advance(seconds(30));
  EXPECT_EQ(producer.writable_calls, 1);
  EXPECT_FALSE(quick.dropped);
  // The poller returns too late. It gets a clear error that names the position to continue from.
  const Result<void> gap = stream->check_position(0);
  ASSERT_FALSE(gap);
  EXPECT_EQ(gap.error().code, kStreamInvalidState);
  EXPECT_NE(gap.error().data.find("oldest_seq"), std::string::npos);
}

TEST(StreamStall, TheLastReaderToStallEndsTheStream) {
  StreamBench bench(small(8));
  const auto stream = bench.start();
  CountingProducer producer;
  producer.drive(stream);
  stream->poll_from(0);
  fill(*stream);
  bench.executor.run();
  bench.executor.advance(seconds(30));
  EXPECT_EQ(stream->state(), StreamState::failed);
  EXPECT_EQ(producer.cancels, 1);
  EXPECT_EQ(stream->error().code, kStreamInvalidState);
  // The kept chunks stay readable, and the last chunk says what happened.
  EXPECT_EQ(kept_text(*stream, 0), "xxxxxxxx");
  EXPECT_NE(stream->trailer().find("stalled"), std::string::npos);
  EXPECT_TRUE(stream->check_position(0));
}

TEST(StreamStall, AStreamWithoutAProducerOutlivesItsReaders) {
  StreamBench bench(small(8));
  const auto stream = bench.start_pushed();
  ReadingCursor slow(stream, 0);
  slow.slow = true;
  fill(*stream);
  bench.executor.run();
  bench.executor.advance(seconds(30));
  EXPECT_TRUE(slow.dropped);
  EXPECT_FALSE(stream->ended());
  EXPECT_FALSE(stream->offer(ChunkKind::text, "left out"));
  ReadingCursor again(stream, 0);
  again.read_all();
  bench.executor.run();
  EXPECT_TRUE(stream->offer(ChunkKind::text, "new"));
  bench.executor.run();
  EXPECT_EQ(again.text, "xxxxxxxxnew");
}

TEST(StreamStall, AReaderThatHasNotComeIsNotBlamed) {
  StreamBench bench(small(8));
  const auto stream = bench.start();
  CountingProducer producer;
  producer.drive(stream);
  fill(*stream);
  bench.executor.advance(seconds(200));
  EXPECT_FALSE(stream->ended());
  stream->poll_from(0);
  stream->poll_from(8);
  bench.executor.run();
  EXPECT_EQ(producer.writable_calls, 1);
}

TEST(StreamStall, AReaderThatMovesKeepsTheStream) {
  StreamBench bench(small(1000));
  const auto stream = bench.start();
  CountingProducer producer;
  producer.drive(stream);
  fill(*stream);
  for (Seq seq = 1; seq < 100; ++seq) {
    bench.executor.advance(seconds(20));
    ASSERT_TRUE(bench.streams->find(stream->id(), "alice")) << seq;
    stream->poll_from(seq);
  }
  bench.executor.advance(seconds(60));
  EXPECT_TRUE(stream->ended()) << "the reader stopped moving";
}

TEST(StreamStall, AskingForTheSameAgainIsNotMoving) {
  StreamBench bench(small(8));
  const auto stream = bench.start();
  CountingProducer producer;
  producer.drive(stream);
  stream->poll_from(0);
  fill(*stream);
  for (int i = 0; i < 4; ++i) {
    bench.executor.advance(seconds(10));
    if (!stream->ended()) stream->poll_from(0);
  }
  EXPECT_TRUE(stream->ended());
}

TEST(StreamStall, AStreamThatItsReadersLeftWaitsForItsExpiry) {
  StreamBench bench(small(8));
  const auto stream = bench.start_pushed();
  CountingProducer producer;
  producer.drive(stream);
  {
    const ReadingCursor reader(stream, 0);
  }
  fill(*stream);
  bench.executor.advance(seconds(200));
  EXPECT_FALSE(stream->ended());
  ReadingCursor again(stream, 0);
  again.read_all();
  bench.executor.run();
  EXPECT_EQ(again.text, "xxxxxxxx");
  EXPECT_EQ(producer.writable_calls, 1);
}

TEST(StreamStall, WhoJoinsLateHasTheWholeTime) {
  StreamBench bench(small(8));
  const auto stream = bench.start_pushed();
  fill(*stream);
  bench.executor.advance(seconds(29));
  ReadingCursor late(stream, 0);
  bench.executor.advance(seconds(25));
  EXPECT_FALSE(late.dropped);
  bench.executor.advance(seconds(10));
  EXPECT_TRUE(late.dropped) << "it did not move for the whole stall limit";
}

TEST(StreamStall, AReaderThatStopsAcknowledgingIsDropped) {
  StreamBench bench(small(8));
  const auto stream = bench.start_pushed();
  ReadingCursor reader(stream, 0);
  reader.hold_until_acknowledged();
  fill(*stream);
  bench.executor.run();
  EXPECT_EQ(reader.text, "xxxxxxxx");
  EXPECT_EQ(stream->first(), 0U);
  bench.executor.advance(seconds(30));
  EXPECT_TRUE(reader.dropped);
}

TEST(StreamStall, ADroppedReaderMayDestroyTheOthers) {
  StreamBench bench(small(8));
  const auto stream = bench.start_pushed();
  CountingProducer producer;
  producer.drive(stream);
  std::vector<std::unique_ptr<ReadingCursor>> readers;
  int drops = 0;
  for (int i = 0; i < 4; ++i) {
    readers.push_back(std::make_unique<ReadingCursor>(stream, 0));
    readers.back()->slow = true;
    readers.back()->when_dropped = [&] {
      ++drops;
      // A closing connection takes all of its cursors with it.
      std::vector<std::unique_ptr<ReadingCursor>> gone;
      gone.swap(readers);
    };
  }
  fill(*stream);
  bench.executor.run();
  bench.executor.advance(seconds(30));
  EXPECT_EQ(drops, 1);
  EXPECT_TRUE(stream->ended());
}

TEST(StreamStall, ReadersAtSeveralPlacesAreDroppedTogether) {
  StreamBench bench(small(8));
  const auto stream = bench.start_pushed();
  ReadingCursor one(stream, 0);
  ReadingCursor two(stream, 0);
  ReadingCursor quick(stream, 0);
  one.slow = true;
  stream->append(ChunkKind::text, "x");
  bench.executor.run();
  two.slow = true;
  fill(*stream);
  bench.executor.run();
  bench.executor.advance(seconds(30));
  EXPECT_TRUE(one.dropped);
  EXPECT_TRUE(two.dropped);
  EXPECT_FALSE(quick.dropped);
  EXPECT_FALSE(stream->ended());
}

}  // namespace
}  // namespace sluice
