#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/clock.hpp"
#include "core/error.hpp"
#include "json/json.hpp"

namespace sluice {

/// A recorded event: a line of JSON, {"at_us": microseconds since the first, "event": {...}}.
struct TracedEvent {
  Duration at{};
  json::object event;
};

/// Writes a trace. The file has mode 0600, because a run may have secrets in it.
class TraceWriter {
 public:
  TraceWriter() = default;
  /// Removes the file if nothing was written.
  ~TraceWriter();
  TraceWriter(const TraceWriter&) = delete;
  TraceWriter& operator=(const TraceWriter&) = delete;

  /// Errors carry kExitFailure and name the file, which must not be there yet.
  Result<void> open(const std::string& path);
  [[nodiscard]] bool is_open() const { return fd_ >= 0; }
  /// Errors carry kExitFailure.
  Result<void> write(const json::object& event, TimePoint now);

 private:
  std::string path_;
  int fd_ = -1;
  bool has_begun_ = false;
  TimePoint began_{};
};

inline constexpr std::size_t kMaxTrace = std::size_t{256} << 20U;  // bytes of a file

/// Reads a trace. Errors carry kExitUsage and name the file and the line.
Result<std::vector<TracedEvent>> read_trace(const std::string& path);

}  // namespace sluice
