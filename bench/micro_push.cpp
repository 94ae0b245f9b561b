// Measures a chunk's way to a socket, and a stream that has no chunks yet.

#include <benchmark/benchmark.h>
#include <malloc.h>
#include <memory>
#include <string>
#include <string_view>

#include "core/manual_executor.hpp"
#include "json/json.hpp"
#include "protocol/chunk_json.hpp"
#include "server/channel/framing.hpp"
#include "stream/push_cursor.hpp"
#include "stream/stream_manager.hpp"

namespace sluice {
namespace {

constexpr std::string_view kText = "{\"n\":123456,\"t_ns\":1234567890123456}\n";
constexpr std::size_t kMaxStreams = 200'000;

struct Loop {
  ManualExecutor executor;
  StreamPolicy policy{StreamLimits(), std::size_t{1} << 30U, kMaxStreams, kMaxStreams};
  StreamManager streams{executor, policy, 0, 1};

  auto start() {
    return streams.start({.principal = "127.0.0.1", .method = "run", .expects_poller = false});
  }
};

class EventEncoder final : public ChunkEncoder {
 public:
  void encode(std::string& out, const ChunkStream& stream, const Chunk& chunk) const override {
    out.append("id: ");
    append_number(out, chunk.seq);
    out.append("\ndata: ");
    append_pushed_chunk(out, stream, chunk);
    out.append("\n\n");
  }
};

class FrameEncoder final : public ChunkEncoder {
 public:
  void encode(std::string& out, const ChunkStream& stream, const Chunk& chunk) const override {
    const std::size_t mark = websocket_framing().begin(out);
    append_pushed_chunk(out, stream, chunk);
    websocket_framing().end(out, mark);
  }
};

/// Accepts all blocks and counts them.
class CountingSink final : public BlockSink {
 public:
  explicit CountingSink(std::size_t& bytes) : bytes_(&bytes) {}
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

/// Takes a chunk from its producer to the bytes for a socket, with `range(0)` chunks per block.
template <class Encoder>
void push(benchmark::State& state) {
  Loop loop;
  const auto stream = *loop.start();
  const Encoder encoder;
  std::size_t bytes = 0;
  PushCursor cursor(stream, encoder, std::make_unique<CountingSink>(bytes), {});
  cursor.resume();
  for (auto _ : state) {
    for (std::int64_t i = 0; i < state.range(0); ++i) stream->append(ChunkKind::text, kText);
    stream->flush();
    loop.executor.run();
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
  state.SetBytesProcessed(static_cast<std::int64_t>(bytes));
}
BENCHMARK(push<EventEncoder>)->Arg(1)->Arg(16);
BENCHMARK(push<FrameEncoder>)->Arg(1)->Arg(16);

/// Starts streams. `bytes_each` is the memory of a stream and its entry in the registry, without
/// chunks.
void start_stream(benchmark::State& state) {
  Loop loop;
  const auto heap = [] { return mallinfo2().uordblks + mallinfo2().hblkhd; };
  const std::size_t before = heap();
  for (auto _ : state) {
    if (!loop.start()) state.SkipWithError("refused");
  }
  state.counters["bytes_each"] =
      static_cast<double>(heap() - before) / static_cast<double>(state.iterations());
}
BENCHMARK(start_stream)->Iterations(100'000);

}  // namespace
}  // namespace sluice
