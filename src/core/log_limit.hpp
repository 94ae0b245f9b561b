#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "core/clock.hpp"

namespace sluice {

/// Prevents peers from filling the log. It allows one line in ten seconds, and counts the lines
/// left out before it. Use one object for each kind of line. Thread-safe.
class LogLimit {
 public:
  static constexpr Duration kPeriod = std::chrono::seconds(10);

  /// If a line may be written now, returns how many were left out since the last one. Otherwise
  /// returns nothing, and this line counts as left out.
  std::optional<std::int64_t> take() { return take(std::chrono::steady_clock::now()); }
  std::optional<std::int64_t> take(TimePoint now);

 private:
  std::atomic<TimePoint::rep> next_ = TimePoint::min().time_since_epoch().count();
  std::atomic<std::int64_t> left_out_ = 0;
};

}  // namespace sluice
