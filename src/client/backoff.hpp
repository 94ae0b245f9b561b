#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "core/clock.hpp"

namespace sluice {

/// Computes how long to wait before the next attempt. The wait doubles each time, up to a maximum,
/// for a limited number of attempts. A random part keeps clients that were disconnected together
/// from returning together.
class Backoff {
 public:
  struct Policy {
    Duration first = std::chrono::milliseconds(100);
    Duration longest = std::chrono::seconds(5);
    std::uint32_t attempts = 8;
  };

  Backoff() = default;
  explicit Backoff(Policy policy) : policy_(policy) {}

  /// The next wait, uniform in the upper half of [0, first * 2^n] (at most `longest`); nothing if
  /// all attempts are used up.
  std::optional<Duration> next();
  /// Starts again with the first wait, because an attempt succeeded.
  void reset() { used_ = 0; }
  /// Sets the first wait, which the server may name (the `retry` field of an event stream).
  void set_first(Duration first);

 private:
  Policy policy_{};
  std::uint32_t used_ = 0;
};

}  // namespace sluice
