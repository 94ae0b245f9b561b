#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "core/clock.hpp"

namespace sluice {

/// Keeps what peers can cause from filling the log: one line in ten seconds, which tells how many
/// were left out before it. Thread-safe; one for each kind of line.
class LogLimit {
 public:
  static constexpr Duration kPeriod = std::chrono::seconds(10);

  /// How many lines were left out since the last, if one may be written now. Else this one is left
  /// out.
  std::optional<std::int64_t> take() { return take(std::chrono::steady_clock::now()); }
  std::optional<std::int64_t> take(TimePoint now);

 private:
  std::atomic<TimePoint::rep> next_ = TimePoint::min().time_since_epoch().count();
  std::atomic<std::int64_t> left_out_ = 0;
};

}  // namespace sluice
