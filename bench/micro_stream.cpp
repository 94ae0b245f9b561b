#include <benchmark/benchmark.h>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/json.hpp"
#include "core/manual_executor.hpp"
#include "protocol/chunk_json.hpp"
#include "server/framing.hpp"
#include "stream/push_cursor.hpp"
#include "stream/stream_manager.hpp"

namespace sluice {
namespace {

constexpr std::string_view kText = "{\"n\":123456,\"t_ns\":1234567890123456}\n";

/// A stream on a loop that stands still, large enough never to pause its producer within a batch.
struct Fixture {
  Fixture() {
    limits.max_chunks = 1U << 20U;
    limits.max_bytes = std::size_t{256} << 20U;
    policy = std::make_unique<StreamPolicy>(limits, std::size_t{1} << 30U, 1000, 1000);
    streams = std::make_unique<StreamManager>(executor, *policy, 0, 1);
    auto started = streams->start({.principal = "bench", .method = "run", .expects_poller = false});
    stream = std::move(*started);
  }

  StreamLimits limits;
  ManualExecutor executor;
  std::unique_ptr<StreamPolicy> policy;
  std::unique_ptr<StreamManager> streams;
  std::shared_ptr<Stream> stream;
};

class EventEncoder final : public ChunkEncoder {
 public:
  void encode(std::string& out, const Stream& stream, const Chunk& chunk) const override {
    out.append("id: ");
    append_number(out, chunk.seq);
    out.append("\ndata: ");
    append_pushed_chunk(out, stream, chunk);
    out.append("\n\n");
  }
};

class FrameEncoder final : public ChunkEncoder {
 public:
  void encode(std::string& out, const Stream& stream, const Chunk& chunk) const override {
    const std::size_t mark = websocket_framing().begin(out);
    append_pushed_chunk(out, stream, chunk);
    websocket_framing().end(out, mark);
  }
};

/// Takes everything and counts it.
class CountingSink final : public BlockSink {
 public:
  explicit CountingSink(std::size_t& bytes) : bytes_(&bytes) {}
  bool write(std::string_view block) override {
    *bytes_ += block.size();
    return true;
  }
  bool write(const Bytes& block) override { return write(block.view()); }
  void finish() override {}
  void drop(const Error&) override {}

 private:
  std::size_t* bytes_;
};

/// A chunk appended and later freed by its poller's acknowledgement, `range(0)` kept meanwhile.
void BM_AppendAndAcknowledge(benchmark::State& state) {
  Fixture fixture;
  const auto kept = static_cast<Seq>(state.range(0));
  while (fixture.stream->next() < kept) fixture.stream->append(ChunkKind::text, kText);
  for (auto _ : state) {
    fixture.stream->append(ChunkKind::text, kText);
    if (fixture.stream->next() % 16 == 0) fixture.stream->poll_from(fixture.stream->next() - kept);
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(BM_AppendAndAcknowledge)->Arg(16)->Arg(1000)->Arg(100'000);

/// Sixteen chunks found and written as the elements of a poll's reply, `range(0)` being kept.
void BM_ReadForPoll(benchmark::State& state) {
  Fixture fixture;
  const auto kept = static_cast<Seq>(state.range(0));
  while (fixture.stream->next() < kept) fixture.stream->append(ChunkKind::text, kText);
  std::string out;
  Seq from = fixture.stream->first();
  for (auto _ : state) {
    out.clear();
    int left = 16;
    from = fixture.stream->read(from, [&](const Chunk& chunk) {
      if (left-- == 0) return false;
      append_poll_chunk(out, *fixture.stream, chunk);
      return true;
    });
    if (from == fixture.stream->next()) from = fixture.stream->first();
    benchmark::DoNotOptimize(out.data());
  }
  state.SetItemsProcessed(state.iterations() * 16);
}
BENCHMARK(BM_ReadForPoll)->Arg(1024)->Arg(102'400);

/// A chunk from the producer to a pushed reader's sink, `range(0)` chunks in a block.
template <class Encoder>
void BM_Push(benchmark::State& state) {
  Fixture fixture;
  const Encoder encoder;
  std::size_t bytes = 0;
  PushCursor cursor(fixture.stream, encoder, std::make_unique<CountingSink>(bytes), {});
  cursor.resume();
  for (auto _ : state) {
    for (std::int64_t i = 0; i < state.range(0); ++i) {
      fixture.stream->append(ChunkKind::text, kText);
    }
    fixture.stream->flush();
  }
  fixture.executor.run();
  state.SetItemsProcessed(state.iterations() * state.range(0));
  state.SetBytesProcessed(static_cast<std::int64_t>(bytes));
}
BENCHMARK(BM_Push<EventEncoder>)->Arg(1)->Arg(16);
BENCHMARK(BM_Push<FrameEncoder>)->Arg(1)->Arg(16);

/// An event for a thousand readers: encoded once, handed over a thousand times.
void BM_PushToReaders(benchmark::State& state) {
  Fixture fixture;
  const EventEncoder encoder;
  std::size_t bytes = 0;
  std::vector<std::unique_ptr<PushCursor>> readers;
  for (std::int64_t i = 0; i < state.range(0); ++i) {
    readers.push_back(std::make_unique<PushCursor>(
        fixture.stream, encoder, std::make_unique<CountingSink>(bytes), PushCursor::Options{}));
    readers.back()->resume();
  }
  for (auto _ : state) {
    fixture.stream->append(ChunkKind::text, kText);
    fixture.stream->flush();
  }
  fixture.executor.run();
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(BM_PushToReaders)->Arg(1000);

}  // namespace
}  // namespace sluice
