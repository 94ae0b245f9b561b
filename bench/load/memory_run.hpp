#pragma once

#include <cstdint>
#include <memory>

#include "loop.hpp"
#include "options.hpp"
#include "tally.hpp"

namespace sluice::bench {

/// A run that opens --connections of something, each a unit of the tally, and reports the server's
/// memory before and after.
class MemoryRun {
 public:
  /// The server is as it was before. Throws std::runtime_error without --server-pid.
  explicit MemoryRun(const Options& options);

  [[nodiscard]] Loop& loop() { return loop_; }
  [[nodiscard]] Tally& tally() { return *tally_; }

  /// Runs the loop until all are open, it is stopped, or a minute is over.
  void open();
  /// Lets the server settle, reports, and holds everything open if asked to. Returns the errors;
  /// not to have opened all is one.
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
