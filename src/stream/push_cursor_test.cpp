#include "stream/push_cursor.hpp"

#include <gtest/gtest.h>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "stream/stream_error.hpp"
#include "stream/stream_test_support.hpp"

namespace sluice {
namespace {

using std::chrono::seconds;

class PushCursorTest : public testing::Test {
 protected:
  std::unique_ptr<PushCursor> attach(const std::shared_ptr<Written>& to,
                                     PushCursor::Options options = {}) {
    return std::make_unique<PushCursor>(stream, encoder, std::make_unique<RecordingSink>(to),
                                        options);
  }
  void append(int count) {
    for (int i = 0; i < count; ++i) stream->append(ChunkKind::text, "x");
    bench.executor.run();
  }

  StreamBench bench;
  PlainEncoder encoder;
  std::shared_ptr<ChunkStream> stream = bench.start_pushed();
  std::shared_ptr<Written> written = std::make_shared<Written>();
};

TEST_F(PushCursorTest, WritesNothingBeforeTheFirstResume) {
  const auto cursor = attach(written);
  append(2);
  EXPECT_EQ(written->text, "");
  cursor->resume();
  EXPECT_EQ(written->text, "[0]x[1]x");
  append(1);
  EXPECT_EQ(written->text, "[0]x[1]x[2]x");
}

TEST_F(PushCursorTest, StartsWhereItIsTold) {
  append(5);
  PushCursor::Options options;
  options.from = 3;
  const auto cursor = attach(written, options);
  cursor->resume();
  EXPECT_EQ(written->text, "[3]x[4]x");
}

TEST_F(PushCursorTest, WaitsWhileTheSinkIsFullAndThenGoesOnWhereItStood) {
  const auto cursor = attach(written);
  written->credit = 1;
  cursor->resume();
  append(2);
  EXPECT_EQ(written->text, "[0]x[1]x");
  append(2);
  EXPECT_EQ(written->text, "[0]x[1]x") << "the sink accepted no more";
  written->credit = 10;
  cursor->resume();
  EXPECT_EQ(written->text, "[0]x[1]x[2]x[3]x");
}

TEST_F(PushCursorTest, GoesOnWhereItStoodAfterAWriteWithoutMemory) {
  const auto cursor = attach(written);
  append(1);
  written->in_write = [] { throw std::bad_alloc(); };
  EXPECT_THROW(cursor->resume(), std::bad_alloc);
  written->in_write = {};
  written->text.clear();
  append(1);
  EXPECT_EQ(written->text, "[0]x[1]x");
}

TEST_F(PushCursorTest, FinishesOnceAfterTheLastChunk) {
  const auto cursor = attach(written);
  cursor->resume();
  append(1);
  EXPECT_EQ(written->finishes, 0);
  stream->finish();
  bench.executor.run();
  EXPECT_EQ(written->text, "[0]x[1]$");
  EXPECT_EQ(written->finishes, 1);
  EXPECT_TRUE(stream->delivered());
  cursor->resume();
  // No call follows finish(), not even drop() when the stream is discarded.
  bench.streams->discard(*stream);
  EXPECT_EQ(written->finishes, 1);
  EXPECT_EQ(written->drops, 0);
}

// An EventSource that reconnects with the last id must not wait forever.
TEST_F(PushCursorTest, FinishesAtOnceForAReaderThatResumesBehindTheEnd) {
  append(2);
  stream->finish();
  PushCursor::Options options;
  options.from = 3;
  ASSERT_TRUE(stream->check_position(options.from));
  const auto cursor = attach(written, options);
  EXPECT_EQ(written->finishes, 0);
  cursor->resume();
  EXPECT_EQ(written->text, "");
  EXPECT_EQ(written->finishes, 1);
  bench.executor.run();
  EXPECT_EQ(written->finishes, 1);
}

TEST_F(PushCursorTest, PassesOnThatItWasDropped) {
  const auto cursor = attach(written);
  cursor->resume();
  append(1);
  bench.streams->discard(*stream);
  EXPECT_EQ(written->drops, 1);
  EXPECT_EQ(written->drop_error.code, kStreamExpired);
  EXPECT_EQ(written->finishes, 0);
  cursor->resume();
  EXPECT_TRUE(cursor->acknowledge(1));
  EXPECT_EQ(written->text, "[0]x");
}

TEST_F(PushCursorTest, WritesLongBacklogsInBlocksOfBoundedSize) {
  for (int i = 0; i < 200; ++i) stream->append(ChunkKind::text, std::string(1000, 'x'));
  const auto cursor = attach(written);
  cursor->resume();
  EXPECT_GT(written->blocks.size(), 5U);
  for (const std::size_t size : written->blocks) EXPECT_LT(size, PushCursor::kBlockBytes + 1010);
  EXPECT_EQ(cursor->position(), 200U);
}

// --- windows --------------------------------------------------------------------------------

TEST_F(PushCursorTest, StaysWithinItsWindow) {
  PushCursor::Options options;
  options.window = 3;
  const auto cursor = attach(written, options);
  cursor->resume();
  append(10);
  EXPECT_EQ(written->text, "[0]x[1]x[2]x");
  ASSERT_TRUE(cursor->acknowledge(1));
  EXPECT_EQ(written->text, "[0]x[1]x[2]x[3]x");
  EXPECT_EQ(stream->first(), 1U) << "acknowledged chunks are freed";
  ASSERT_TRUE(cursor->acknowledge(1));
  EXPECT_EQ(written->text, "[0]x[1]x[2]x[3]x");
  ASSERT_TRUE(cursor->acknowledge(4));
  EXPECT_EQ(written->text, "[0]x[1]x[2]x[3]x[4]x[5]x[6]x");
}

TEST_F(PushCursorTest, CountsTheEndInItsWindow) {
  PushCursor::Options options;
  options.window = 2;
  const auto cursor = attach(written, options);
  cursor->resume();
  append(2);
  stream->finish();
  bench.executor.run();
  EXPECT_EQ(written->finishes, 0);
  ASSERT_TRUE(cursor->acknowledge(2));
  EXPECT_EQ(written->text, "[0]x[1]x[2]$");
  EXPECT_EQ(written->finishes, 1);
}

TEST_F(PushCursorTest, RefusesToBeAcknowledgedAheadOfWhatItDelivered) {
  PushCursor::Options options;
  options.window = 3;
  const auto cursor = attach(written, options);
  cursor->resume();
  append(10);
  const Result<void> ahead = cursor->acknowledge(4);
  ASSERT_FALSE(ahead);
  EXPECT_EQ(ahead.error().code, kStreamInvalidState);
  EXPECT_NE(ahead.error().message.find("next seq is 3"), std::string::npos);
  EXPECT_EQ(stream->first(), 0U);
  EXPECT_TRUE(cursor->acknowledge(3));
}

TEST_F(PushCursorTest, KeepsWhatIsNotAcknowledgedForAReaderThatResumes) {
  PushCursor::Options options;
  options.window = 100;
  auto cursor = attach(written, options);
  cursor->resume();
  append(50);
  ASSERT_TRUE(cursor->acknowledge(20));
  cursor = nullptr;
  append(1);
  options.from = 20;
  ASSERT_TRUE(stream->check_position(20));
  const auto again_written = std::make_shared<Written>();
  const auto again = attach(again_written, options);
  again->resume();
  EXPECT_EQ(again_written->text.substr(0, 5), "[20]x");
  EXPECT_EQ(again->position(), 51U);
}

// --- sharing --------------------------------------------------------------------------------

TEST_F(PushCursorTest, SharesOneBlockAmongReadersAtTheSamePlace) {
  std::vector<std::shared_ptr<Written>> readers;
  std::vector<std::unique_ptr<PushCursor>> cursors;
  for (int i = 0; i < 20; ++i) {
    readers.push_back(std::make_shared<Written>());
    cursors.push_back(attach(readers.back()));
    cursors.back()->resume();
  }
  append(3);
  EXPECT_EQ(encoder.encoded, 3) << "each chunk is encoded once for all readers";
  for (const auto& reader : readers) {
    EXPECT_EQ(reader->text, "[0]x[1]x[2]x");
    EXPECT_EQ(reader->shared, readers[0]->shared);
  }
}

TEST_F(PushCursorTest, WhatReadersStillHoldOfABlockCountsOnce) {
  /// A reader that keeps the block it was given.
  class Holding final : public BlockSink {
   public:
    explicit Holding(std::vector<Bytes>& held) : held_(&held) {}
    bool write(std::string_view /*block*/) override { return true; }
    bool write(const Bytes& block) override {
      held_->push_back(block);
      return true;
    }
    void finish() override {}
    void drop(const Error& /*error*/) override {}

   private:
    std::vector<Bytes>* held_;
  };
  std::vector<Bytes> held;
  std::vector<std::unique_ptr<PushCursor>> cursors;
  for (int i = 0; i < 20; ++i) {
    cursors.push_back(std::make_unique<PushCursor>(stream, encoder, std::make_unique<Holding>(held),
                                                   PushCursor::Options()));
    cursors.back()->resume();
  }
  stream->append(ChunkKind::text, std::string(100'000, 'x'));
  bench.executor.run();
  ASSERT_EQ(held.size(), 20U);
  cursors.clear();
  bench.streams->discard(*stream);
  EXPECT_GE(bench.policy.budget.used(), 100'000U);
  EXPECT_LT(bench.policy.budget.used(), 300'000U);
  held.resize(1);
  EXPECT_GE(bench.policy.budget.used(), 100'000U);
  held.clear();
  EXPECT_EQ(bench.policy.budget.used(), 0U);
}

TEST_F(PushCursorTest, SharesNothingForWhichThereIsNoMemory) {
  const auto other_written = std::make_shared<Written>();
  const auto one = attach(written);
  const auto two = attach(other_written);
  one->resume();
  two->resume();
  stream->append(ChunkKind::text, std::string(1000, 'x'));
  const std::size_t free = bench.policy.budget.limit() - bench.policy.budget.used();
  ASSERT_TRUE(bench.policy.budget.try_acquire(free));
  bench.executor.run();
  EXPECT_EQ(written->text, "[0]" + std::string(1000, 'x'));
  EXPECT_EQ(other_written->text, written->text);
  EXPECT_TRUE(written->shared.empty());
  bench.policy.budget.release(free);
}

TEST_F(PushCursorTest, ABlockForWhichThereIsNoMemoryLeavesTheOneBeforeAsItWas) {
  for (int i = 0; i < 100; ++i) stream->append(ChunkKind::text, std::string(1000, 'x'));
  bench.executor.run();
  const auto read_from = [this](const std::shared_ptr<Written>& to, Seq from) {
    auto cursor = attach(to, {.from = from});
    cursor->resume();
    return cursor;
  };
  const auto first_at = [](const Written& reader, Seq seq) {
    return reader.text.find("[" + std::to_string(seq) + "]");
  };
  const auto other = attach(std::make_shared<Written>());  // so that there are several
  written->credit = 1;
  const auto ahead = read_from(written, 60);
  ASSERT_FALSE(written->shared.empty());
  // Now there is no memory for a block, but the one before is still there.
  const std::size_t free = bench.policy.budget.limit() - bench.policy.budget.used();
  ASSERT_TRUE(bench.policy.budget.try_acquire(free));
  const auto behind_written = std::make_shared<Written>();
  behind_written->credit = 1;
  const auto behind = read_from(behind_written, 20);
  ASSERT_TRUE(behind_written->shared.empty());
  const auto same_written = std::make_shared<Written>();
  same_written->credit = 10;
  const auto same = read_from(same_written, 60);
  EXPECT_EQ(same_written->shared, written->shared);
  EXPECT_EQ(same->position(), 100U);
  for (Seq seq = 60; seq < 100; ++seq) {
    const std::size_t at = first_at(*same_written, seq);
    EXPECT_NE(at, std::string::npos) << seq;
    EXPECT_EQ(same_written->text.find("[" + std::to_string(seq) + "]", at + 1), std::string::npos)
        << seq << " came twice";
  }
  bench.policy.budget.release(free);
}

TEST_F(PushCursorTest, SharesNothingIfItMayNot) {
  PushCursor::Options options;
  options.shareable = false;
  const auto other_written = std::make_shared<Written>();
  const auto one = attach(written, options);
  const auto two = attach(other_written, options);
  one->resume();
  two->resume();
  append(1);
  EXPECT_EQ(encoder.encoded, 2);
  EXPECT_TRUE(written->shared.empty());
  EXPECT_TRUE(other_written->shared.empty());
}

TEST_F(PushCursorTest, ASlowReaderDoesNotHoldBackTheOthers) {
  const auto quick_written = std::make_shared<Written>();
  const auto slow = attach(written);
  const auto quick = attach(quick_written);
  written->credit = 1;
  slow->resume();
  quick->resume();
  for (int i = 0; i < 10; ++i) append(1);
  EXPECT_EQ(written->text, "[0]x");
  EXPECT_EQ(quick_written->text, "[0]x[1]x[2]x[3]x[4]x[5]x[6]x[7]x[8]x[9]x");
  written->credit = 100;
  slow->resume();
  EXPECT_EQ(written->text, quick_written->text);
}

// --- sinks that do more than write ----------------------------------------------------------

TEST_F(PushCursorTest, MayBeDestroyedFromEveryCallToItsSink) {
  for (const bool several : {false, true}) {
    for (int where = 0; where < 3; ++where) {
      stream = bench.start_pushed();
      const auto here = std::make_shared<Written>();
      const auto other_written = std::make_shared<Written>();
      auto cursor = attach(here);
      const auto other = several ? attach(other_written) : nullptr;
      const auto destroy = [&cursor] { cursor = nullptr; };
      if (where == 0) here->in_write = destroy;
      if (where == 1) here->in_finish = destroy;
      if (where == 2) here->in_drop = destroy;
      cursor->resume();
      if (other != nullptr) other->resume();
      append(1);
      if (where == 1) stream->finish();
      if (where == 2) bench.streams->discard(*stream);
      bench.executor.run();
      EXPECT_EQ(cursor, nullptr) << where;
      if (several && where == 0) {
        append(1);
        EXPECT_EQ(other_written->text, "[0]x[1]x");
      }
    }
  }
}

TEST_F(PushCursorTest, MayBeResumedFromWithinAWrite) {
  const auto cursor = attach(written);
  written->credit = 0;
  written->in_write = [&] { cursor->resume(); };
  cursor->resume();
  append(3);
  append(2);
  EXPECT_EQ(written->text, "[0]x[1]x[2]x[3]x[4]x") << "in order, and nothing twice";
}

TEST_F(PushCursorTest, MayAppendAndFlushFromWithinAWrite) {
  const auto other_written = std::make_shared<Written>();
  const auto cursor = attach(written);
  const auto other = attach(other_written);
  int left = 4;
  written->in_write = [&] {
    if (left-- <= 0) return;
    stream->append(ChunkKind::text, "+");
    stream->flush();
  };
  cursor->resume();
  other->resume();
  append(1);
  EXPECT_EQ(written->text, "[0]x[1]+[2]+[3]+[4]+");
  EXPECT_EQ(other_written->text, written->text);
}

TEST_F(PushCursorTest, MayHaveItsStreamDiscardedFromWithinAWrite) {
  const auto cursor = attach(written);
  written->in_write = [&] { bench.streams->discard(*stream); };
  cursor->resume();
  append(3);
  EXPECT_EQ(written->drops, 1);
  EXPECT_EQ(written->finishes, 0);
  EXPECT_EQ(cursor->stream(), nullptr);
}

}  // namespace
}  // namespace sluice
