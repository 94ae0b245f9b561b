#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "core/clock.hpp"

namespace sluice {

/// Prevents peers from filling the log. It allows one line in ten seconds, or as many as it is made
/// for, and counts the lines left out before each. Use one object for each kind of line.
/// Thread-safe.
class LogLimit {
 public:
  static constexpr Duration kPeriod = std::chrono::seconds(10);

  LogLimit() = default;
  /// Allows `lines` at once, and on the average `lines` in each `period`.
  LogLimit(int lines, Duration period) : share_(period / lines), ahead_(period - share_) {}

  /// If a line may be written now, returns how many were left out since the last one. Otherwise
  /// returns nothing, and this line counts as left out.
  std::optional<std::int64_t> take() { return take(std::chrono::steady_clock::now()); }
  std::optional<std::int64_t> take(TimePoint now);

 private:
  Duration share_ = kPeriod;           // the time that one line takes up
  Duration ahead_ = Duration::zero();  // how far lines may be ahead of their time
  /// When the next line is due.
  std::atomic<TimePoint::rep> next_ = TimePoint::min().time_since_epoch().count();
  std::atomic<std::int64_t> left_out_ = 0;
};

}  // namespace sluice
