#pragma once

#include <cstdint>
#include <memory>

#include "engine/engine.hpp"

namespace sluice {

/// An engine for load tests. It emits numbered chunks instead of a model's tokens and ignores the
/// prompt.
///
/// Chunk n (from 0) is `{"n":17,"t_ns":123456789}` and a line feed. t_ns is the time at which the
/// chunk was made, in nanoseconds of the home loop's clock (CLOCK_MONOTONIC in the program), so
/// that a reader on the same machine can measure the delay. `interval_us` of the request sets the
/// pace:
/// - above 0: chunk n is due at start + n * interval_us, however late earlier chunks were. `flush`
/// is set on each chunk, except those that are so late that the next one is due too.
/// - 0: as fast as the sink accepts chunks, in bounded batches, between which the loop serves
/// others.
/// - -1: like 0, but `flush` is set on each chunk.
///
/// It has no threads: everything runs on the request's home loop. shutdown() may be called from any
/// thread, but not from inside a sink; it makes the last call to the sinks that are still open, on
/// its own thread.
class SyntheticEngine final : public Engine {
 public:
  static constexpr std::int64_t kDefaultCount = 16;
  static constexpr std::int64_t kMaxCount = 100'000'000;
  static constexpr std::int64_t kDefaultIntervalUs = 0;
  /// How many chunks are made before the loop serves others.
  static constexpr int kMaxBatch = 64;
  /// The same for an interval of -1. Each chunk is then flushed, which may mean a send to each of a
  /// thousand readers; a larger batch would wake a reader for each of its chunks.
  static constexpr int kMaxFlushedBatch = 2;

  /// At most `max_generations` run at the same time; further ones are refused with kBusy.
  explicit SyntheticEngine(std::uint32_t max_generations = 100'000);
  ~SyntheticEngine() override;
  SyntheticEngine(const SyntheticEngine&) = delete;
  SyntheticEngine& operator=(const SyntheticEngine&) = delete;

  /// Errors: -32602 if `count` or `interval_us` is out of range, kBusy if too many generations run.
  Result<std::unique_ptr<Generation>> start(GenerationRequest request,
                                            std::shared_ptr<GenerationSink> sink,
                                            Executor& home) override;
  [[nodiscard]] EngineInfo info() const override;
  [[nodiscard]] EngineStats stats() const override;
  void shutdown() override;

 private:
  class Run;
  class Handle;
  struct Registry;

  std::shared_ptr<Registry> registry_;
};

}  // namespace sluice
