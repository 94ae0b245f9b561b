#include "stream/stream.hpp"

#include <gtest/gtest.h>
#include <string>

#include "stream/stream_error.hpp"
#include "stream/stream_test_support.hpp"

namespace sluice {
namespace {

using std::chrono::seconds;

TEST(ChunkStream, GoesThroughItsStates) {
  StreamBench bench;
  const auto stream = bench.start();
  EXPECT_EQ(to_string(stream->state()), "initializing");
  EXPECT_FALSE(stream->ended());
  EXPECT_TRUE(stream->append(ChunkKind::text, "a"));
  EXPECT_EQ(to_string(stream->state()), "active");
  stream->finish(R"("usage":{})");
  EXPECT_EQ(to_string(stream->state()), "finished");
  EXPECT_TRUE(stream->ended());
  EXPECT_EQ(stream->trailer(), R"("usage":{})");
  EXPECT_EQ(stream->next(), 2U);
}

TEST(ChunkStream, IgnoresWhatComesAfterItsEnd) {
  StreamBench bench;
  const auto stream = bench.start();
  stream->finish("\"a\":1");
  EXPECT_FALSE(stream->append(ChunkKind::text, "late"));
  stream->finish("\"b\":2");
  stream->fail({1, "late"});
  EXPECT_EQ(stream->state(), StreamState::finished);
  EXPECT_EQ(stream->next(), 1U);
  EXPECT_EQ(stream->trailer(), "\"a\":1");
  EXPECT_EQ(bench.streams->counters().ended, 1U);
}

TEST(ChunkStream, FailsWithAnErrorInItsLastChunk) {
  StreamBench bench;
  const auto stream = bench.start();
  ASSERT_TRUE(stream->append(ChunkKind::text, "before"));
  stream->fail({kBusy, "no \"luck\"", R"({"x":1})"}, "\"more\":2");
  EXPECT_EQ(stream->state(), StreamState::failed);
  EXPECT_EQ(stream->error().message, "no \"luck\"");
  EXPECT_EQ(stream->trailer(),
            R"("error":{"code":-31000,"message":"no \"luck\"","data":{"x":1}},"more":2)");
  // Chunks before the error stay readable.
  EXPECT_EQ(kept_text(*stream, 0), "before");
}

TEST(ChunkStream, KeepsTextAsTheInsideOfAJsonString) {
  StreamBench bench;
  const auto stream = bench.start();
  ASSERT_TRUE(stream->append(ChunkKind::text, "a\"b\\c\n\x01\xC3\xA9"));
  EXPECT_EQ(kept_text(*stream, 0), "a\\\"b\\\\c\\n\\u0001\xC3\xA9");
}

// --- polling ------------------------------------------------------------------------------------

TEST(StreamPoll, FreesWhatIsAcknowledgedAndKeepsTheRest) {
  StreamBench bench(small(100, 1 << 20, 1 << 20));
  const auto stream = bench.start();
  for (const char* text : {"a", "b", "c", "d"}) ASSERT_TRUE(stream->append(ChunkKind::text, text));
  stream->poll_from(0);
  EXPECT_EQ(kept_text(*stream, 0), "abcd");
  // After a lost reply, polling the same position again returns the same chunks.
  stream->poll_from(0);
  EXPECT_EQ(kept_text(*stream, 0), "abcd");
  stream->poll_from(3);
  EXPECT_EQ(stream->first(), 3U);
  EXPECT_EQ(kept_text(*stream, 3), "d");
  stream->poll_from(4);
  EXPECT_EQ(stream->first(), 4U);
  EXPECT_EQ(stream->bytes(), 0U);
}

TEST(StreamPoll, ChecksPositionsAtBothEnds) {
  StreamBench bench(small(100));
  const auto stream = bench.start();
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(stream->append(ChunkKind::text, "x"));
  stream->poll_from(2);
  EXPECT_TRUE(stream->check_position(2));
  EXPECT_TRUE(stream->check_position(5));

  const Result<void> gap = stream->check_position(1);
  ASSERT_FALSE(gap);
  EXPECT_EQ(gap.error().code, kStreamInvalidState);
  EXPECT_EQ(gap.error().data, R"({"oldest_seq":2,"next_seq":5})");
  EXPECT_NE(gap.error().message.find("oldest kept seq is 2"), std::string::npos);

  const Result<void> ahead = stream->check_position(6);
  ASSERT_FALSE(ahead);
  EXPECT_EQ(ahead.error().code, kStreamInvalidState);
  EXPECT_EQ(ahead.error().data, R"({"oldest_seq":2,"next_seq":5})");
  EXPECT_NE(ahead.error().message.find("ahead"), std::string::npos);
  EXPECT_FALSE(stream->check_position(~Seq{0}));
}

TEST(StreamPoll, ALowerPositionThanAcknowledgedIsAGapOnce) {
  StreamBench bench(small(100));
  const auto stream = bench.start();
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(stream->append(ChunkKind::text, "x"));
  stream->poll_from(4);
  EXPECT_FALSE(stream->check_position(3));
  EXPECT_TRUE(stream->check_position(4));
}

// --- limits and back-pressure -------------------------------------------------------------------

TEST(StreamLimit, PausesAtMaxChunksAndNotBefore) {
  StreamBench bench(small(4));
  const auto stream = bench.start();
  EXPECT_TRUE(stream->append(ChunkKind::text, "1"));
  EXPECT_TRUE(stream->append(ChunkKind::text, "2"));
  EXPECT_TRUE(stream->append(ChunkKind::text, "3"));
  EXPECT_FALSE(stream->paused());
  EXPECT_FALSE(stream->append(ChunkKind::text, "4"));
  EXPECT_TRUE(stream->paused());
  EXPECT_EQ(kept_text(*stream, 0), "1234");
  EXPECT_EQ(bench.streams->counters().pauses, 1U);
}

TEST(StreamLimit, PausesAtMaxBytesAndNotBefore) {
  StreamBench bench(small(1000, 100));
  const auto stream = bench.start();
  EXPECT_TRUE(stream->append(ChunkKind::text, std::string(99, 'x')));
  EXPECT_FALSE(stream->append(ChunkKind::text, "x"));
  EXPECT_EQ(stream->bytes(), 100U);
}

TEST(StreamLimit, TheEndFitsIntoAFullStream) {
  StreamBench bench(small(4));
  const auto stream = bench.start();
  fill(*stream);
  stream->finish();
  EXPECT_EQ(stream->next(), 5U);
  EXPECT_FALSE(stream->paused());
  stream->poll_from(4);
  bool end = false;
  stream->read(4, [&](const Chunk& chunk) { return end = chunk.kind == ChunkKind::end; });
  EXPECT_TRUE(end);
}

TEST(StreamLimit, WakesTheProducerWhenAQuarterIsFreeAtTheEndOfTheTurn) {
  StreamBench bench(small(8));
  const auto stream = bench.start();
  CountingProducer producer;
  producer.drive(stream);
  EXPECT_EQ(fill(*stream), 8);
  stream->poll_from(1);
  bench.executor.run();
  EXPECT_EQ(producer.writable_calls, 0) << "seven of eight chunks is still too full";
  EXPECT_FALSE(stream->append(ChunkKind::text, "x")) << "false until on_writable()";
  stream->poll_from(3);
  EXPECT_EQ(producer.writable_calls, 0) << "on_writable() never comes from within a call";
  EXPECT_FALSE(stream->append(ChunkKind::text, "x"));
  stream->poll_from(4);
  bench.executor.run();
  EXPECT_EQ(producer.writable_calls, 1);
  EXPECT_FALSE(stream->paused());
  EXPECT_TRUE(stream->append(ChunkKind::text, "x"));
  bench.executor.run();
  EXPECT_EQ(producer.writable_calls, 1);
}

TEST(StreamLimit, TheSmallestLimitsStillMoveOn) {
  for (std::size_t chunks = 1; chunks <= 5; ++chunks) {
    for (const std::size_t retained : {std::size_t{0}, std::size_t{1} << 20U}) {
      StreamBench bench(small(chunks, 1 << 20, retained));
      const auto stream = bench.start_pushed();
      CountingProducer producer;
      producer.drive(stream);
      ReadingCursor reader(stream, 0);
      int made = 0;
      const auto produce = [&] {
        while (made < 50) {
          ++made;
          if (!stream->append(ChunkKind::text, "x")) return;
        }
      };
      producer.when_writable = produce;
      produce();
      bench.executor.run();
      EXPECT_EQ(reader.text, std::string(50, 'x')) << chunks << " chunks";
      EXPECT_LE(stream->next() - stream->first(), chunks);
    }
  }
}

// Chunks too small to ever reach the retained bytes must not keep a stream full.
TEST(StreamLimit, RetainedChunksNeverHoldUpTheProducer) {
  StreamBench bench(small(64, 1 << 20, 64 << 10));
  const auto stream = bench.start_pushed();
  CountingProducer producer;
  producer.drive(stream);
  ReadingCursor reader(stream, 0);
  reader.slow = true;
  EXPECT_EQ(fill(*stream), 64);
  bench.executor.run();
  // The reader moves one chunk at a time, and the stream must keep up.
  for (Seq seq = 1; seq <= 16; ++seq) {
    EXPECT_EQ(producer.writable_calls, 0) << seq;
    reader.pass(seq);
    bench.executor.run();
  }
  EXPECT_EQ(producer.writable_calls, 1);
  EXPECT_FALSE(stream->paused());
  reader.pass(64);
  fill(*stream);
  EXPECT_EQ(stream->first(), 64U);
  reader.pass(stream->next());
  bench.executor.run();
  EXPECT_EQ(producer.writable_calls, 2);
}

// A reader has passed the last chunk as soon as it is written, but may be disconnected before it
// arrives.
TEST(StreamLimit, TheLastChunkIsRetainedHoweverLongItIs) {
  StreamBench bench(small(64, 1 << 20, 1 << 10));
  const auto stream = bench.start_pushed();
  const std::string text(200 << 10, 'x');
  {
    ReadingCursor reader(stream, 0);
    stream->append(ChunkKind::message, text);
    bench.executor.run();
    stream->append(ChunkKind::message, text);
    stream->finish();
    bench.executor.run();
    EXPECT_EQ(reader.text.size(), 2 * text.size());
  }
  EXPECT_EQ(stream->first(), 1U) << "the chunk before the last is not retained";
  std::string kept;
  stream->read(1, [&](const Chunk& chunk) {
    kept.append(chunk.escaped);
    return true;
  });
  EXPECT_EQ(kept, text);
}

TEST(StreamLimit, AProducerMayAppendFromOnRoomAndEndThere) {
  StreamBench bench(small(4));
  const auto stream = bench.start_pushed();
  CountingProducer producer;
  producer.drive(stream);
  ReadingCursor reader(stream, 0);
  producer.when_writable = [&] {
    stream->append(ChunkKind::text, "y");
    if (producer.writable_calls == 3) {
      stream->finish();
    } else {
      fill(*stream);
    }
  };
  fill(*stream);
  bench.executor.run();
  EXPECT_EQ(producer.writable_calls, 3);
  EXPECT_TRUE(reader.ended);
  EXPECT_EQ(reader.text, "xxxxyxxxyxxxy");
  bench.executor.advance(seconds(61));
  EXPECT_FALSE(reader.dropped);
}

// --- cancelling ---------------------------------------------------------------------------------

TEST(StreamCancel, TellsTheProducerOnce) {
  StreamBench bench;
  const auto stream = bench.start();
  CountingProducer producer;
  producer.drive(stream);
  EXPECT_TRUE(stream->cancel());
  EXPECT_FALSE(stream->cancel());
  EXPECT_EQ(producer.cancels, 1);
  stream->append(ChunkKind::text, "last");
  stream->finish();
  EXPECT_FALSE(stream->cancel());
  EXPECT_EQ(kept_text(*stream, 0), "last");
}

TEST(StreamCancel, MayEndTheStreamAtOnce) {
  StreamBench bench;
  const auto stream = bench.start();
  CountingProducer producer;
  producer.when_cancelled = [&] { stream->fail({kBusy, "cancelled"}); };
  producer.drive(stream);
  EXPECT_TRUE(stream->cancel());
  EXPECT_EQ(stream->state(), StreamState::failed);
}

}  // namespace
}  // namespace sluice
