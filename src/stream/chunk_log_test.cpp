#include "stream/chunk_log.hpp"

#include <deque>
#include <gtest/gtest.h>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace sluice {
namespace {

struct Kept {
  ChunkKind kind = ChunkKind::text;
  std::string text;
  friend bool operator==(const Kept&, const Kept&) = default;
};

std::vector<Kept> read_all(const ChunkLog& log, Seq from) {
  std::vector<Kept> chunks;
  log.read(from, [&](const Chunk& chunk) {
    EXPECT_EQ(chunk.seq, from + chunks.size());
    chunks.push_back({chunk.kind, std::string(chunk.escaped)});
    return true;
  });
  return chunks;
}

TEST(ChunkLog, NumbersChunksFromZeroAndReadsFromAnyOfThem) {
  MemoryBudget budget(1 << 20);
  const auto share = std::make_shared<MemoryShare>(budget);
  ChunkLog log(share);
  EXPECT_EQ(log.first(), 0U);
  EXPECT_EQ(log.next(), 0U);
  ASSERT_TRUE(log.append(ChunkKind::text, "a"));
  ASSERT_TRUE(log.append(ChunkKind::reasoning, ""));
  ASSERT_TRUE(log.append(ChunkKind::tool_call, "ccc"));
  log.append_end();
  const std::vector<Kept> all = {{ChunkKind::text, "a"},
                                 {ChunkKind::reasoning, ""},
                                 {ChunkKind::tool_call, "ccc"},
                                 {ChunkKind::end, ""}};
  for (Seq from = 0; from <= 4; ++from) {
    EXPECT_EQ(read_all(log, from),
              std::vector<Kept>(all.begin() + static_cast<std::ptrdiff_t>(from), all.end()));
  }
  EXPECT_EQ(log.size(), 4U);
  EXPECT_EQ(log.bytes(), 4U);
}

TEST(ChunkLog, ReadStopsAtTheChunkThatIsNotAccepted) {
  MemoryBudget budget(1 << 20);
  const auto share = std::make_shared<MemoryShare>(budget);
  ChunkLog log(share);
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(log.append(ChunkKind::text, "x"));
  int seen = 0;
  EXPECT_EQ(log.read(1, [&](const Chunk&) { return ++seen < 3; }), 3U);
  EXPECT_EQ(log.read(5, [](const Chunk&) { return true; }), 5U);
}

TEST(ChunkLog, ReleasesInTheMiddleOfASegment) {
  MemoryBudget budget(1 << 20);
  const auto share = std::make_shared<MemoryShare>(budget);
  ChunkLog log(share);
  for (const char* text : {"one", "two", "three"}) ASSERT_TRUE(log.append(ChunkKind::text, text));
  log.release_below(1);
  EXPECT_EQ(log.first(), 1U);
  EXPECT_EQ(log.bytes(), 8U);
  log.release_below(1);
  log.release_below(0);
  EXPECT_EQ(log.size(), 2U);
  EXPECT_EQ(read_all(log, 1), (std::vector<Kept>{{.text = "two"}, {.text = "three"}}));
  log.release_below(1000);
  EXPECT_EQ(log.first(), 3U);
  EXPECT_EQ(log.bytes(), 0U);
  ASSERT_TRUE(log.append(ChunkKind::text, "four"));
  EXPECT_EQ(read_all(log, 3), (std::vector<Kept>{{.text = "four"}}));
}

TEST(ChunkLog, AnswersForItsMemoryToTheBudget) {
  MemoryBudget budget(8192);
  {
    const auto share = std::make_shared<MemoryShare>(budget);
    ChunkLog log(share);
    EXPECT_EQ(budget.used(), 0U);
    const std::string text(100, 'x');
    std::size_t appended = 0;
    while (log.append(ChunkKind::text, text)) ++appended;
    EXPECT_GT(appended, 30U);
    EXPECT_EQ(budget.used(), log.memory());
    EXPECT_LE(budget.used(), budget.limit());
    // The refused append changed nothing.
    EXPECT_EQ(log.size(), appended);
    EXPECT_EQ(log.bytes(), appended * text.size());
    EXPECT_EQ(read_all(log, 0).size(), appended);
    log.release_below(log.next());
    EXPECT_TRUE(log.append(ChunkKind::text, text));
    EXPECT_EQ(budget.used(), log.memory());
  }
  EXPECT_EQ(budget.used(), 0U);
}

TEST(ChunkLog, LeavesTheLastBytesOfItsShareToOthers) {
  MemoryBudget budget(256 << 10);
  const auto share = std::make_shared<MemoryShare>(budget);
  ChunkLog log(share);
  const std::string text(40, 'x');
  while (!share->is_short()) ASSERT_TRUE(log.append(ChunkKind::text, text));
  // Each of the client's other streams can still store its first chunk, and then waits.
  std::deque<ChunkLog> others;
  for (int i = 0; i < 20; ++i) {
    EXPECT_TRUE(others.emplace_back(share).append(ChunkKind::text, text)) << i;
  }
  while (log.append(ChunkKind::text, text)) {
  }
  EXPECT_GT(budget.used(), budget.limit() / 2 - 200)
      << "a single client may use half of the budget";
}

TEST(ChunkLog, AlwaysHasRoomForTheEnd) {
  MemoryBudget budget(0);
  {
    const auto share = std::make_shared<MemoryShare>(budget);
    ChunkLog log(share);
    EXPECT_FALSE(log.append(ChunkKind::text, "x"));
    log.append_end();
    EXPECT_EQ(read_all(log, 0), (std::vector<Kept>{{ChunkKind::end, {}}}));
    EXPECT_GT(budget.used(), 0U);
  }
  EXPECT_EQ(budget.used(), 0U);
}

TEST(ChunkLog, TheEndGoesHardlyBeyondTheBudget) {
  for (std::size_t limit = 0; limit < 40000; limit += 137) {
    MemoryBudget budget(limit);
    const auto share = std::make_shared<MemoryShare>(budget);
    ChunkLog log(share);
    while (log.append(ChunkKind::text, "some text")) {
    }
    log.append_end();
    ASSERT_LE(budget.used(), limit + 64);
  }
}

TEST(ChunkLog, TakesChunksUpToTheLongest) {
  MemoryBudget budget(std::size_t{1} << 30U);
  const auto share = std::make_shared<MemoryShare>(budget);
  ChunkLog log(share);
  ASSERT_TRUE(log.append(ChunkKind::text, "before"));
  std::string text(ChunkLog::kMaxChunkBytes, 'x');
  ASSERT_TRUE(log.append(ChunkKind::tool_call, text));
  ASSERT_TRUE(log.append(ChunkKind::text, "after"));
  text.push_back('x');
  EXPECT_FALSE(log.append(ChunkKind::text, text));
  EXPECT_EQ(log.size(), 3U);
  log.read(1, [&](const Chunk& chunk) {
    EXPECT_EQ(chunk.escaped.size(), ChunkLog::kMaxChunkBytes);
    EXPECT_EQ(chunk.kind, ChunkKind::tool_call);
    return false;
  });
  log.release_below(2);
  EXPECT_LT(log.memory(), 64U << 10U);
  EXPECT_EQ(read_all(log, 2), (std::vector<Kept>{{.text = "after"}}));
}

TEST(ChunkLog, ReusesItsSegmentForAReaderThatKeepsUp) {
  MemoryBudget budget(1 << 20);
  const auto share = std::make_shared<MemoryShare>(budget);
  ChunkLog log(share);
  const std::string text(60, 'x');
  for (int i = 0; i < 8; ++i) ASSERT_TRUE(log.append(ChunkKind::text, text));
  log.release_below(log.next());
  const std::size_t memory = log.memory();
  EXPECT_LE(memory, 1024U);
  for (int round = 0; round < 1000; ++round) {
    for (int i = 0; i < 8; ++i) ASSERT_TRUE(log.append(ChunkKind::text, text));
    ASSERT_EQ(log.memory(), memory);
    log.release_below(log.next());
  }
  EXPECT_EQ(log.first(), 8U * 1001U);
}

TEST(ChunkLog, LetsGoOfTheMemoryOfABacklog) {
  MemoryBudget budget(std::size_t{64} << 20U);
  const auto share = std::make_shared<MemoryShare>(budget);
  ChunkLog log(share);
  const std::string text(100, 'x');
  for (int i = 0; i < 100000; ++i) ASSERT_TRUE(log.append(ChunkKind::text, text));
  for (Seq seq = 0; seq < 100000; seq += 7) {
    log.release_below(seq);
    ASSERT_LE(log.memory(), log.bytes() + log.size() * 8 + (std::size_t{40} << 10U));
  }
  log.release_below(log.next());
  EXPECT_LE(budget.used(), 2048U + 64U);
}

TEST(ChunkLog, ClearsEverythingButItsNumbers) {
  MemoryBudget budget(1 << 20);
  const auto share = std::make_shared<MemoryShare>(budget);
  ChunkLog log(share);
  for (int i = 0; i < 1000; ++i) ASSERT_TRUE(log.append(ChunkKind::text, "text"));
  log.clear();
  EXPECT_EQ(budget.used(), 0U);
  EXPECT_EQ(log.memory(), 0U);
  EXPECT_EQ(log.bytes(), 0U);
  EXPECT_EQ(log.first(), 1000U);
  EXPECT_TRUE(read_all(log, 1000).empty());
  ASSERT_TRUE(log.append(ChunkKind::text, "more"));
  EXPECT_EQ(read_all(log, 1000), (std::vector<Kept>{{.text = "more"}}));
}

// A stored chunk may cost its payload plus 16 bytes. The overhead of malloc is measured in
// stream_memory_test.cpp.
TEST(ChunkLog, AChunkCostsAtMostSixteenBytesBesideItsText) {
  for (const std::size_t length : {20U, 40U, 100U, 400U, 1000U}) {
    for (const std::size_t count : {16U, 100U, 1000U, 10000U, 100000U}) {
      MemoryBudget budget(std::size_t{1} << 30U);
      const auto share = std::make_shared<MemoryShare>(budget);
      ChunkLog log(share);
      const std::string text(length, 'x');
      for (std::size_t i = 0; i < count; ++i) ASSERT_TRUE(log.append(ChunkKind::text, text));
      EXPECT_LE(log.memory(), count * (length + 16)) << count << " chunks of " << length;
    }
  }
}

TEST(ChunkLog, BehavesLikeADequeWhateverHappens) {
  for (unsigned seed = 1; seed <= 40; ++seed) {
    std::mt19937 random(seed);
    const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
    MemoryBudget budget(512U << 10U);
    const auto share = std::make_shared<MemoryShare>(budget);
    ChunkLog log(share);
    std::deque<Kept> model;
    Seq first = 0;
    for (int step = 0; step < 3000; ++step) {
      if (below(10) < 7) {
        static constexpr std::size_t kLengths[] = {1, 8, 100, 600, 40000};
        Kept chunk{static_cast<ChunkKind>(below(3)),
                   std::string(below(kLengths[below(100) == 0 ? 4 : below(4)] + 1),
                               static_cast<char>('a' + below(26)))};
        if (log.append(chunk.kind, chunk.text)) {
          model.push_back(std::move(chunk));
        } else {
          ASSERT_GT(budget.used() + ChunkLog::memory_for(chunk.text.size()), budget.limit());
        }
      } else {
        const Seq to = first + below(below(20) == 0 ? model.size() + 2 : 12);
        log.release_below(to);
        while (first < to && !model.empty()) {
          model.pop_front();
          ++first;
        }
      }
      ASSERT_EQ(log.first(), first);
      ASSERT_EQ(log.next(), first + model.size());
      ASSERT_EQ(log.memory(), budget.used());
      std::size_t bytes = 0;
      for (const Kept& chunk : model) bytes += chunk.text.size();
      ASSERT_EQ(log.bytes(), bytes);
      if (step % 16 == 0) {
        const std::size_t skip = below(model.size() + 1);
        ASSERT_EQ(
            read_all(log, first + skip),
            std::vector<Kept>(model.begin() + static_cast<std::ptrdiff_t>(skip), model.end()));
      }
    }
  }
}

}  // namespace
}  // namespace sluice
