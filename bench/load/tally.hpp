#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "histogram.hpp"
#include "options.hpp"
#include "usage.hpp"

namespace sluice::bench {

/// What has been seen since restart(). A unit is what the mode counts: a call's reply, or a chunk.
struct Tally {
  std::uint64_t units = 0;
  std::uint64_t replies = 0;  // HTTP replies and streams that came to their end
  std::uint64_t bytes = 0;
  std::uint64_t stalled = 0;  // streams that stood still for the second half
  std::uint64_t errors = 0;
  std::string first_error;
  /// Units of each connection, where the mode sizes it.
  std::vector<std::uint64_t> by_connection;
  Histogram round_trip;  // request sent to reply complete
  Histogram added;       // a chunk's own stamp to its read
  Histogram schedule;    // when a paced chunk was due, by its stream's first, to its read
  Histogram gap;         // between two reads of a paced stream

  void error(std::string_view what) {
    if (errors++ == 0) first_error = what;
  }
  /// Forgets the numbers but not the errors: those of the warm-up count too.
  void restart();
};

/// The server's memory around an idle or sessions run.
struct MemoryReport {
  Memory before;
  Memory after;
};

/// Prints the JSON object of a run that measured from `begin` to `end`.
void print_report(const Options& options, const Tally& tally, double elapsed_s,
                  const CpuTimes& begin, const CpuTimes& end, const MemoryReport* memory);

}  // namespace sluice::bench
