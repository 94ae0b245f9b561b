#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "histogram.hpp"
#include "options.hpp"
#include "usage.hpp"

namespace sluice::bench {

/// What has been counted since restart(). A unit is what the mode counts: the reply to a call, or a
/// chunk.
struct Tally {
  std::uint64_t units = 0;
  std::uint64_t replies = 0;  // HTTP replies and streams that ended properly
  std::uint64_t bytes = 0;
  std::uint64_t stalled = 0;  // streams that stood still for the second half
  std::uint64_t errors = 0;
  std::string first_error;
  /// Units per connection, if the mode sets its size.
  std::vector<std::uint64_t> by_connection;
  Histogram round_trip;  // from sending a request to its complete reply
  Histogram added;       // from a chunk's time stamp to its read
  Histogram schedule;  // from when a paced chunk was due, counted from the first of its stream, to
                       // its read
  Histogram gap;       // between two reads of a paced stream

  void error(std::string_view what) {
    if (errors++ == 0) first_error = what;
  }
  /// Resets the numbers but not the errors, because errors during the warm-up count too.
  void restart();
};

/// The server's memory before and after a run that opens something.
struct MemoryReport {
  Memory before;
  Memory after;
};

/// Prints the JSON report of a run that measured from `begin` to `end`.
void print_report(const Options& options, const Tally& tally, double elapsed_s,
                  const CpuTimes& begin, const CpuTimes& end, const MemoryReport* memory);

}  // namespace sluice::bench
