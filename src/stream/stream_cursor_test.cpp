#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <vector>

#include "stream/stream_test_support.hpp"

namespace sluice {
namespace {

// --- cursors ------------------------------------------------------------------------------------

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

// --- shared blocks ------------------------------------------------------------------------------

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
