#pragma once

#include <cstdint>
#include <memory>

#include "loop.hpp"
#include "options.hpp"
#include "tally.hpp"

namespace sluice::bench {

/// A run that opens --connections of something, each of which counts as a unit of the tally, and
/// reports the server's memory before and after.
class MemoryRun {
 public:
  /// Measures the server before the run. Throws std::runtime_error without --server-pid.
  explicit MemoryRun(const Options& options);

  [[nodiscard]] Loop& loop() { return loop_; }
  [[nodiscard]] Tally& tally() { return *tally_; }

  /// Runs the loop until all are open, it is stopped, or a minute has passed.
  void open();
  /// Waits for the server to settle, reports, and keeps everything open if requested. Returns the
  /// number of errors; it is an error if not all were opened.
  std::uint64_t finish();

 private:
  const Options& options_;
  Loop loop_;
  std::unique_ptr<Tally> tally_;
  MemoryReport memory_;
  CpuTimes begin_;
  std::int64_t started_;
};

}  // namespace sluice::bench
