#pragma once

#include <chrono>

namespace sluice {

using Duration = std::chrono::nanoseconds;
using TimePoint = std::chrono::time_point<std::chrono::steady_clock, Duration>;

/// The longest wait. Longer ones are cut to it, so that no time point overflows.
inline constexpr Duration kForever = std::chrono::hours(24 * 365);
/// Returns `duration`, but at most kForever. Any value in any unit is allowed.
template <class Rep, class Period>
constexpr Duration at_most_forever(std::chrono::duration<Rep, Period> duration) {
  using Given = std::chrono::duration<Rep, Period>;
  return duration < std::chrono::duration_cast<Given>(kForever) ? Duration(duration) : kForever;
}

inline double to_seconds(Duration duration) {
  return std::chrono::duration<double>(duration).count();
}

/// The source of time. Everything that waits or expires takes a Clock, so that tests can control
/// the time. Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;
  /// Monotonic time; comparable only with times of the same clock.
  [[nodiscard]] virtual TimePoint now() const = 0;
};

/// The system's CLOCK_MONOTONIC.
class SteadyClock final : public Clock {
 public:
  [[nodiscard]] TimePoint now() const override { return std::chrono::steady_clock::now(); }
};

/// A clock that moves only when told to. Not thread-safe.
class ManualClock final : public Clock {
 public:
  [[nodiscard]] TimePoint now() const override { return now_; }
  void advance(Duration by) { now_ += by; }

 private:
  TimePoint now_{};
};

}  // namespace sluice
