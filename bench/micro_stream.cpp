// Measures the hot paths of a stream without a socket: appending and reading a chunk, a poll's
// reply, one stream with many readers, and escaping text.

#include <benchmark/benchmark.h>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <sys/resource.h>
#include <vector>

#include "core/manual_executor.hpp"
#include "json/json.hpp"
#include "protocol/chunk_json.hpp"
#include "stream/push_cursor.hpp"
#include "stream/stream_manager.hpp"

namespace sluice {
namespace {

/// A manager whose limits are never reached.
struct UnlimitedLoop {
  static StreamLimits limits() {
    StreamLimits wide;
    wide.max_chunks = std::size_t{1} << 24U;
    wide.max_bytes = std::size_t{1} << 31U;
    // Small, so that streams which nobody acknowledges stop growing and the measurement is steady.
    wide.retained_bytes = 1024;
    return wide;
  }

  ManualExecutor executor;
  StreamPolicy policy{limits(), std::size_t{1} << 32U, 1U << 20U, 1U << 20U};
  StreamManager streams{executor, policy, 0, 1};

  std::shared_ptr<ChunkStream> start(bool expects_poller) {
    return *streams.start(
        {.principal = "bench", .method = "run", .expects_poller = expects_poller});
  }
};

class PushEncoder final : public ChunkEncoder {
 public:
  void encode(std::string& out, const ChunkStream& stream, const Chunk& chunk) const override {
    append_pushed_chunk(out, stream, chunk);
  }
};

class NullSink final : public BlockSink {
 public:
  explicit NullSink(std::size_t& bytes) : bytes_(&bytes) {}
  bool write(std::string_view block) override {
    *bytes_ += block.size();
    return true;
  }
  bool write(const Bytes& block) override { return write(block.view()); }
  void finish() override {}
  void drop(const Error& /*error*/) override {}

 private:
  std::size_t* bytes_;
};

/// Keeps `backlog` chunks all the time: for each chunk that is appended, one is acknowledged.
void append_and_acknowledge(benchmark::State& state) {
  UnlimitedLoop loop;
  const auto stream = loop.start(true);
  const std::string text(100, 'x');
  const auto backlog = static_cast<std::size_t>(state.range(0));
  for (std::size_t i = 0; i < backlog; ++i) stream->append(ChunkKind::text, text);
  stream->poll_from(0);
  loop.executor.run();
  constexpr std::size_t kBatch = 16;
  std::string out;
  for (auto _ : state) {
    for (std::size_t i = 0; i < kBatch; ++i) stream->append(ChunkKind::text, text);
    out.clear();
    Seq from = stream->first();
    const Seq until = from + kBatch;
    from = stream->read(from, [&](const Chunk& chunk) {
      if (chunk.seq >= until) return false;
      append_poll_chunk(out, *stream, chunk);
      return true;
    });
    stream->poll_from(from);
    loop.executor.run();
    benchmark::DoNotOptimize(out.data());
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(kBatch));
}
BENCHMARK(append_and_acknowledge)->Arg(0)->Arg(1000)->Arg(10000)->Arg(100000);

double page_faults() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_minflt);
}

/// Fills a buffer that nobody reads yet, then reads all of it. Memory beyond what malloc keeps
/// comes from the kernel page by page; `faults` is the number of page faults per chunk.
void fill_and_read(benchmark::State& state) {
  const std::string text(100, 'x');
  const auto chunks = static_cast<Seq>(state.range(0));
  const double before = page_faults();
  for (auto _ : state) {
    UnlimitedLoop loop;
    const auto stream = loop.start(true);
    while (stream->next() < chunks) stream->append(ChunkKind::text, text);
    std::size_t bytes = 0;
    for (Seq from = 0; from < chunks;) {
      const Seq until = from + 16;
      from = stream->read(from, [&](const Chunk& chunk) {
        if (chunk.seq >= until) return false;
        bytes += chunk.escaped.size();
        return true;
      });
      stream->poll_from(from);
    }
    benchmark::DoNotOptimize(bytes);
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
  state.counters["faults"] =
      (page_faults() - before) / static_cast<double>(state.iterations() * state.range(0));
}
BENCHMARK(fill_and_read)->Arg(16)->Arg(1000)->Arg(10000)->Arg(100000);

void poll_reply(benchmark::State& state) {
  UnlimitedLoop loop;
  const auto stream = loop.start(true);
  const auto chunks = state.range(0);
  for (std::int64_t i = 0; i < chunks; ++i) stream->append(ChunkKind::text, "a word");
  std::string out;
  for (auto _ : state) {
    out.clear();
    stream->read(0, [&](const Chunk& chunk) {
      append_poll_chunk(out, *stream, chunk);
      return true;
    });
    benchmark::DoNotOptimize(out.data());
  }
  state.SetItemsProcessed(state.iterations() * chunks);
}
BENCHMARK(poll_reply)->Arg(1)->Arg(16)->Arg(1000);

/// Delivers one chunk per turn to `readers` readers. The rate counts deliveries.
void fan_out(benchmark::State& state) {
  UnlimitedLoop loop;
  const auto stream = loop.start(false);
  const PushEncoder encoder;
  std::size_t bytes = 0;
  std::vector<std::unique_ptr<PushCursor>> cursors;
  for (std::int64_t i = 0; i < state.range(0); ++i) {
    cursors.push_back(std::make_unique<PushCursor>(
        stream, encoder, std::make_unique<NullSink>(bytes), PushCursor::Options()));
    cursors.back()->resume();
  }
  for (auto _ : state) {
    stream->append(ChunkKind::text, "a word");
    loop.executor.run();
  }
  benchmark::DoNotOptimize(bytes);
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(fan_out)->Arg(1)->Arg(10)->Arg(1000);

/// Delivers one chunk per turn on each of many streams.
void many_streams(benchmark::State& state) {
  UnlimitedLoop loop;
  const PushEncoder encoder;
  std::size_t bytes = 0;
  std::vector<std::shared_ptr<ChunkStream>> streams;
  std::vector<std::unique_ptr<PushCursor>> cursors;
  for (std::int64_t i = 0; i < state.range(0); ++i) {
    streams.push_back(loop.start(false));
    cursors.push_back(std::make_unique<PushCursor>(
        streams.back(), encoder, std::make_unique<NullSink>(bytes), PushCursor::Options()));
    cursors.back()->resume();
  }
  // Run until every stream retains as much as it may.
  for (int turn = 0; turn < 400; ++turn) {
    for (const auto& stream : streams) stream->append(ChunkKind::text, "a word");
    loop.executor.run();
  }
  for (auto _ : state) {
    for (const auto& stream : streams) stream->append(ChunkKind::text, "a word");
    loop.executor.run();
  }
  benchmark::DoNotOptimize(bytes);
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(many_streams)->Arg(64)->Arg(1000)->Arg(10000);

void start_and_finish(benchmark::State& state) {
  UnlimitedLoop loop;
  for (auto _ : state) {
    const auto stream = loop.start(true);
    stream->append(ChunkKind::text, "a word");
    stream->finish();
    loop.executor.run();
    loop.streams.discard(*stream);
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(start_and_finish);

void escape(benchmark::State& state, std::string_view unit, std::size_t length) {
  std::string text;
  while (text.size() < length) text.append(unit);
  std::string out;
  for (auto _ : state) {
    out.clear();
    append_json_escaped(out, text);
    benchmark::DoNotOptimize(out.data());
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(text.size()));
}
BENCHMARK_CAPTURE(escape, token, " token", 6);
BENCHMARK_CAPTURE(escape, prose, "nothing here that needs it, only words. ", 4096);
BENCHMARK_CAPTURE(escape, code, "if (x == \"a\\n\") {\n  return;\n}\n", 4096);

}  // namespace
}  // namespace sluice
