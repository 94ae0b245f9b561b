#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "cli/bench/histogram.hpp"
#include "core/clock.hpp"

namespace sluice {

/// What a load test has measured. A unit is one stream or one call.
struct BenchResults {
  Histogram first;     // from a unit's due time to its first chunk, ns
  Histogram complete;  // from a unit's due time to its end, ns
  Histogram added;     // from the server making a chunk to the client reading it, ns
  std::uint64_t started = 0;
  std::uint64_t completed = 0;
  std::uint64_t failed = 0;
  std::uint64_t unreachable = 0;  // failed because there was no connection; included in `failed`
  std::uint64_t late = 0;         // due but never started, because no place became free
  std::uint64_t chunks = 0;
  std::uint64_t bytes = 0;  // of chunk text
  std::uint64_t retries = 0;
  std::map<std::string, std::uint64_t, std::less<>>
      errors;  // count per message; at most kMaxErrors messages
  Duration elapsed{};

  static constexpr std::size_t kMaxErrors = 16;
  void count_error(std::string_view message);
};

/// What was measured, for the reports.
struct BenchSubject {
  std::string url;
  std::string mode;  // "poll", "sse", "ws", "call"
  std::uint32_t streams = 0;
  std::uint32_t connections = 0;
  double rate = 0;  // units per second; 0: as fast as possible
};

/// The results as a table for people.
std::string text_report(const BenchSubject& subject, const BenchResults& results);
/// The results as one JSON object and a newline; times in milliseconds.
std::string json_report(const BenchSubject& subject, const BenchResults& results);
/// The results so far on one line: "12 s   64 streams   48,213 chunks/s   first p99 1.2 ms".
std::string progress_line(const BenchSubject& subject, const BenchResults& results);

/// The `t_ns` in the text of a synthetic chunk, {"n":17,"t_ns":123}; 0 if there is none.
std::uint64_t chunk_time(std::string_view text);

}  // namespace sluice
