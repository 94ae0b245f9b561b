// Measures at malloc how much memory streams take. The limits are those that docs/performance.md
// promises.

#include <cstddef>
#include <gtest/gtest.h>
#include <malloc.h>
#include <memory>
#include <string>
#include <vector>

#include "stream/stream_test_support.hpp"

namespace sluice {
namespace {

/// Bytes that malloc has allocated, including its own headers.
std::size_t in_use() {
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

class StreamMemoryUse : public testing::Test {
 protected:
  void SetUp() override {
#ifdef SLUICE_SANITIZED
    GTEST_SKIP() << "a sanitizer replaces malloc";
#endif
  }
};

/// Bytes that each of 10,000 streams without chunks takes if `clients` clients start them in turn.
std::size_t bytes_a_stream(std::size_t clients) {
  constexpr std::size_t kStreams = 10000;
  StreamBench::Setup setup;
  setup.per_client = kStreams + 1;
  StreamBench bench(setup);
  bench.start();
  const std::size_t before = in_use();
  for (std::size_t i = 0; i < kStreams; ++i) {
    // Too long for the string's in-place buffer.
    const std::string principal = "address:192.168.100." + std::to_string(i % clients);
    if (bench.start({.principal = principal, .method = "run"}) == nullptr) return 0;
  }
  return (in_use() - before) / kStreams;
}

TEST_F(StreamMemoryUse, AStreamWithoutChunksTakesAtMost512Bytes) {
  const std::size_t each = bytes_a_stream(1);
  RecordProperty("bytes_a_stream", static_cast<int>(each));
  EXPECT_GT(each, 0U);
  EXPECT_LE(each, 512U);
}

// A client with streams in progress has an entry in the quota, a memory share and a list, besides
// its streams.
TEST_F(StreamMemoryUse, AClientTakesAtMost416BytesBesideItsStreams) {
  const std::size_t each = bytes_a_stream(10000) - bytes_a_stream(1);
  RecordProperty("bytes_a_client", static_cast<int>(each));
  EXPECT_LE(each, 416U);
}

TEST_F(StreamMemoryUse, ABufferedChunkTakesAtMostItsTextAnd16Bytes) {
  struct Shape {
    std::size_t streams;
    std::size_t chunks;
    std::size_t length;
  };
  for (const Shape shape : {Shape{1, 100000, 100}, Shape{1000, 16, 100}, Shape{1000, 100, 100},
                            Shape{100, 1000, 100}, Shape{1000, 100, 40}, Shape{100, 1000, 400}}) {
    StreamBench::Setup setup;
    setup.limits.max_chunks = 1000000;
    setup.limits.max_bytes = std::size_t{1} << 30U;
    setup.memory = std::size_t{1} << 30U;
    StreamBench bench(setup);
    const std::string text(shape.length, 'x');
    std::vector<std::shared_ptr<ChunkStream>> streams;
    for (std::size_t i = 0; i < shape.streams; ++i) streams.push_back(bench.start());
    // The manager allocates once for its first chunk. That is not part of the cost of a chunk.
    streams[0]->append(ChunkKind::text, text);
    bench.executor.run();
    const std::size_t before = in_use();
    std::size_t appended = 0;
    for (const auto& stream : streams) {
      while (stream->next() < shape.chunks) {
        ASSERT_TRUE(stream->append(ChunkKind::text, text));
        if (++appended % 16 == 0) bench.executor.run();
      }
    }
    bench.executor.run();
    const double each = static_cast<double>(in_use() - before) / static_cast<double>(appended);
    EXPECT_LE(each, static_cast<double>(shape.length) + 16.0)
        << shape.streams << " streams of " << shape.chunks << " chunks of " << shape.length;
  }
}

TEST_F(StreamMemoryUse, GoesBackToWhereItStarted) {
  StreamBench bench;
  const auto round = [&bench] {
    for (int i = 0; i < 500; ++i) {
      const auto stream = bench.start();
      for (int k = 0; k < 50; ++k) stream->append(ChunkKind::text, "some text of a model");
      stream->finish();
      bench.executor.run();
    }
    bench.executor.advance(std::chrono::minutes(11));
  };
  // In the first rounds the tables grow to their size and malloc settles.
  for (int i = 0; i < 3; ++i) round();
  const std::size_t before = in_use();
  constexpr int kRounds = 20;
  for (int i = 0; i < kRounds; ++i) round();
  // Anything that leaked from each stream would add up to many times this.
  EXPECT_LE(in_use(), before + std::size_t{4096});
}

}  // namespace
}  // namespace sluice
