#include "stream/stream.hpp"

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

StreamBench::Setup small(std::size_t chunks, std::size_t bytes = 1 << 20,
                         std::size_t retained = 0) {
  StreamBench::Setup setup;
  setup.limits.max_chunks = chunks;
  setup.limits.max_bytes = bytes;
  setup.limits.retained_bytes = retained;
  setup.limits.stall = seconds(30);
  return setup;
}

/// Appends numbered chunks until the stream is full.
int fill(ChunkStream& stream) {
  int appended = 1;
  while (stream.append(ChunkKind::text, "x")) ++appended;
  return appended;
}

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

// --- polling --------------------------------------------------------------------------------

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

// --- limits and back-pressure ---------------------------------------------------------------

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

// --- cursors --------------------------------------------------------------------------------

TEST(StreamCursor, IsToldAtTheEndOfTheTurnOrOnFlush) {
  StreamBench bench;
  const auto stream = bench.start_pushed();
  ReadingCursor reader(stream, 0);
  stream->append(ChunkKind::text, "a");
  stream->append(ChunkKind::text, "b");
  EXPECT_EQ(reader.told, 0);
  bench.executor.run();
  EXPECT_EQ(reader.told, 1);
  EXPECT_EQ(reader.text, "ab");
  stream->append(ChunkKind::text, "c");
  stream->flush();
  EXPECT_EQ(reader.text, "abc");
  bench.executor.run();
  stream->flush();
  EXPECT_EQ(reader.told, 2);
  stream->finish();
  bench.executor.run();
  EXPECT_TRUE(reader.ended);
  EXPECT_TRUE(stream->delivered());
}

TEST(StreamCursor, SeveralReadEverythingAndWhoComesLateStartsAtTheOldestKept) {
  StreamBench bench(small(100, 1 << 20, 3));
  const auto stream = bench.start_pushed();
  ReadingCursor first(stream, 0);
  ReadingCursor second(stream, 0);
  for (const char* text : {"a", "b", "c", "d", "e"}) {
    stream->append(ChunkKind::text, text);
    bench.executor.run();
  }
  EXPECT_EQ(stream->first(), 2U);
  EXPECT_FALSE(stream->check_position(1));
  ReadingCursor late(stream, stream->first());
  late.read_all();
  stream->append(ChunkKind::text, "f");
  stream->finish();
  bench.executor.run();
  EXPECT_EQ(first.text, "abcdef");
  EXPECT_EQ(second.text, "abcdef");
  EXPECT_EQ(late.text, "cdef");
}

TEST(StreamCursor, HoldsWhatItHasNotPassedBesideAPoller) {
  StreamBench bench(small(100));
  const auto stream = bench.start();
  ReadingCursor reader(stream, 0);
  reader.slow = true;
  for (int i = 0; i < 6; ++i) stream->append(ChunkKind::text, std::string(1, char('a' + i)));
  bench.executor.run();
  stream->poll_from(4);
  EXPECT_EQ(stream->first(), 0U) << "the cursor still holds it";
  reader.read_all();
  bench.executor.run();
  EXPECT_EQ(reader.text, "abcdef");
  stream->poll_from(5);
  EXPECT_EQ(stream->first(), 5U);
}

TEST(StreamCursor, APollerHoldsWhatCursorsHavePassed) {
  StreamBench bench(small(100));
  const auto stream = bench.start();
  stream->poll_from(0);
  ReadingCursor reader(stream, 0);
  for (int i = 0; i < 50; ++i) stream->append(ChunkKind::text, "x");
  bench.executor.run();
  EXPECT_EQ(reader.text.size(), 50U);
  EXPECT_EQ(stream->first(), 0U);
  EXPECT_TRUE(stream->check_position(0));
}

TEST(StreamCursor, LeavesWhatItHasNotReadToTheNext) {
  StreamBench bench(small(8));
  const auto stream = bench.start_pushed();
  {
    ReadingCursor reader(stream, 0);
    stream->append(ChunkKind::text, "a");
    bench.executor.run();
    stream->append(ChunkKind::text, "b");
  }
  for (int i = 0; i < 3; ++i) stream->append(ChunkKind::text, "c");
  bench.executor.run();
  ReadingCursor next(stream, 1);
  next.read_all();
  EXPECT_EQ(next.text, "bccc");
}

TEST(StreamCursor, TrimsWhatItPassesAfterTheEnd) {
  StreamBench bench(small(1000, 1 << 20, 100));
  const auto stream = bench.start_pushed();
  ReadingCursor reader(stream, 0);
  reader.slow = true;
  for (int i = 0; i < 50; ++i) stream->append(ChunkKind::text, std::string(50, 'x'));
  stream->finish();
  bench.executor.run();
  EXPECT_EQ(stream->bytes(), 2500U);
  reader.read_all();
  bench.executor.run();
  EXPECT_LE(stream->bytes(), 100U);
}

TEST(StreamCursor, MayDestroyAnyCursorWhileItIsTold) {
  for (int victim = 0; victim < 3; ++victim) {
    for (int killer = 0; killer < 3; ++killer) {
      StreamBench bench;
      const auto stream = bench.start_pushed();
      std::vector<std::unique_ptr<ReadingCursor>> readers;
      for (int i = 0; i < 3; ++i) readers.push_back(std::make_unique<ReadingCursor>(stream, 0));
      readers[static_cast<std::size_t>(killer)]->when_told = [&readers, victim] {
        readers[static_cast<std::size_t>(victim)] = nullptr;
      };
      stream->append(ChunkKind::text, "a");
      bench.executor.run();
      stream->append(ChunkKind::text, "b");
      bench.executor.run();
      for (int i = 0; i < 3; ++i) {
        if (i == victim) {
          EXPECT_EQ(readers[static_cast<std::size_t>(i)], nullptr);
        } else {
          EXPECT_EQ(readers[static_cast<std::size_t>(i)]->text, "ab");
        }
      }
    }
  }
}

TEST(StreamCursor, MayAttachAnotherWhileItIsTold) {
  StreamBench bench;
  const auto stream = bench.start_pushed();
  ReadingCursor reader(stream, 0);
  ReadingCursor other(stream, 0);
  std::unique_ptr<ReadingCursor> joined;
  reader.when_told = [&] {
    if (joined != nullptr) return;
    joined = std::make_unique<ReadingCursor>(stream, 0);
    joined->read_all();
  };
  stream->append(ChunkKind::text, "a");
  bench.executor.run();
  stream->append(ChunkKind::text, "b");
  bench.executor.run();
  EXPECT_EQ(reader.text, "ab");
  EXPECT_EQ(other.text, "ab");
  EXPECT_EQ(joined->text, "ab");
}

// Readers that have already been notified must receive what is appended and flushed during the
// round.
TEST(StreamCursor, AChunkFlushedWithinARoundReachesEveryone) {
  StreamBench bench;
  const auto stream = bench.start_pushed();
  std::vector<std::unique_ptr<ReadingCursor>> readers;
  for (int i = 0; i < 3; ++i) readers.push_back(std::make_unique<ReadingCursor>(stream, 0));
  int more = 3;
  for (auto& reader : readers) {
    reader->when_told = [&] {
      if (more-- <= 0) return;
      stream->append(ChunkKind::text, "+");
      stream->flush();
    };
  }
  stream->append(ChunkKind::text, "a");
  stream->flush();
  bench.executor.run();
  for (const auto& reader : readers) EXPECT_EQ(reader->text, "a+++");
}

TEST(StreamCursor, AReleaseFreesWhatWasAcknowledged) {
  StreamBench bench(small(100, 1 << 20, 1 << 20));
  const auto stream = bench.start_pushed();
  ReadingCursor reader(stream, 0);
  for (int i = 0; i < 10; ++i) stream->append(ChunkKind::text, "x");
  bench.executor.run();
  EXPECT_EQ(stream->first(), 0U) << "passed, but retained for a reader that resumes";
  reader.acknowledge(7);
  EXPECT_EQ(stream->first(), 7U);
  reader.acknowledge(3);
  EXPECT_EQ(stream->first(), 7U);
}

TEST(StreamCursor, TheLowestReaderHoldsTheChunks) {
  StreamBench bench(small(100, 1 << 20, 1 << 20));
  const auto stream = bench.start_pushed();
  for (int i = 0; i < 10; ++i) stream->append(ChunkKind::text, "x");
  std::vector<std::unique_ptr<ReadingCursor>> readers;
  for (const Seq place : {5U, 2U, 2U, 8U}) {
    readers.push_back(std::make_unique<ReadingCursor>(stream, place));
    readers.back()->slow = true;
  }
  EXPECT_EQ(stream->undelivered(), 2U);
  readers[1]->pass(9);
  EXPECT_EQ(stream->undelivered(), 2U);
  readers[2]->hold_until_acknowledged();
  readers[2]->pass(7);
  EXPECT_EQ(stream->undelivered(), 2U);
  readers[2]->acknowledge(6);
  EXPECT_EQ(stream->undelivered(), 5U);
  readers.push_back(std::make_unique<ReadingCursor>(stream, 4));
  EXPECT_EQ(stream->undelivered(), 4U);
  readers.pop_back();
  EXPECT_EQ(stream->undelivered(), 5U);
  readers[0] = nullptr;
  EXPECT_EQ(stream->undelivered(), 6U);
}

// --- cancelling -----------------------------------------------------------------------------

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

// --- readers that stall ---------------------------------------------------------------------

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

// --- shared blocks --------------------------------------------------------------------------

TEST(StreamBlocks, AreEncodedOnceForReadersAtTheSamePlace) {
  StreamBench bench;
  const auto stream = bench.start_pushed();
  PlainEncoder encoder;
  for (int i = 0; i < 3; ++i) stream->append(ChunkKind::text, "x");
  Seq next = 0;
  const Bytes first = stream->encoded(encoder, 0, 1000, next);
  EXPECT_EQ(next, 3U);
  const Bytes second = stream->encoded(encoder, 0, 1000, next);
  EXPECT_EQ(first.view().data(), second.view().data());
  EXPECT_EQ(encoder.encoded, 3);
  EXPECT_EQ(first.view(), "[0]x[1]x[2]x");
  // A different position, a different encoder or a new chunk needs a different block.
  EXPECT_EQ(stream->encoded(encoder, 1, 1000, next).view(), "[1]x[2]x");
  PlainEncoder other;
  EXPECT_EQ(stream->encoded(other, 1, 1000, next).view(), "[1]x[2]x");
  EXPECT_EQ(other.encoded, 2);
  stream->append(ChunkKind::text, "y");
  EXPECT_EQ(stream->encoded(other, 1, 1000, next).view(), "[1]x[2]x[3]y");
  EXPECT_EQ(next, 4U);
}

TEST(StreamBlocks, StopAtAboutTheirSize) {
  StreamBench bench;
  const auto stream = bench.start_pushed();
  const PlainEncoder encoder;
  for (int i = 0; i < 9; ++i) stream->append(ChunkKind::text, "xxxxxxx");
  std::string out = "before";
  EXPECT_EQ(stream->encode(out, encoder, 0, 9, 20), 2U);
  EXPECT_EQ(out, "before[0]xxxxxxx[1]xxxxxxx");
  out.clear();
  EXPECT_EQ(stream->encode(out, encoder, 3, 5, 1000), 5U);
  EXPECT_EQ(out, "[3]xxxxxxx[4]xxxxxxx");
}

}  // namespace
}  // namespace sluice
