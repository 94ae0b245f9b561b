#pragma once

#include <cstdint>
#include <memory>

#include "engine/engine.hpp"

namespace sluice {

/// An engine for load tests: emits numbered chunks instead of a model's tokens.
///
/// Chunk n (from 0) is `{"n":17,"t_ns":123456789}` and a line feed, where t_ns is the home loop's
/// clock in nanoseconds (CLOCK_MONOTONIC in the program) when the chunk was made, so a reader on
/// the same machine can tell how long it took. `interval_us` of the request paces them: above 0,
/// chunk n is due at start + n * interval_us, however late the ones before it were, and `flush` is
/// set on each but those that are so late that the next is due too; 0, as fast as the sink takes
/// them, in bounded batches so that the loop serves others in between; -1, like 0 but with `flush`
/// set on each. The prompt is ignored.
///
/// Has no threads: everything runs on the request's home loop. shutdown() may be called from any
/// thread but not from inside a sink; the sinks that are still open then get their last call on
/// that thread.
class SyntheticEngine final : public Engine {
 public:
  static constexpr std::int64_t kDefaultCount = 16;
  static constexpr std::int64_t kMaxCount = 100'000'000;
  static constexpr std::int64_t kDefaultIntervalUs = 0;
  static constexpr std::int64_t kMaxIntervalUs = 60'000'000;
  /// Chunks made before the loop serves others.
  static constexpr int kMaxBatch = 64;
  /// The same at -1, where each is flushed, which may mean a send to each of a thousand readers.
  /// More in a row would wake one reader for each of them.
  static constexpr int kMaxFlushedBatch = 2;

  /// `max_generations` bounds how many may run at the same time; more are refused with kBusy.
  explicit SyntheticEngine(std::uint32_t max_generations = 100'000);
  ~SyntheticEngine() override;
  SyntheticEngine(const SyntheticEngine&) = delete;
  SyntheticEngine& operator=(const SyntheticEngine&) = delete;

  /// Errors: -32602 when `count` or `interval_us` is out of range, kBusy when too many run.
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
