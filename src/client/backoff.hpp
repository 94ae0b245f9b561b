#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "core/clock.hpp"

namespace sluice {

/// How long to wait before trying again: twice as long each time, up to a longest wait and a number
/// of attempts, with a random part so that clients cut off together do not return together.
class Backoff {
 public:
  struct Policy {
    Duration first = std::chrono::milliseconds(100);
    Duration longest = std::chrono::seconds(5);
    std::uint32_t attempts = 8;
  };

  Backoff() = default;
  explicit Backoff(Policy policy) : policy_(policy) {}

  /// The next wait, uniform in the upper half of [0, first * 2^n]; nothing when the attempts are
  /// used up.
  std::optional<Duration> next();
  /// Something got through: counts from the beginning again.
  void reset() { used_ = 0; }
  /// The server named the first wait (the `retry` field of an event stream).
  void set_first(Duration first);

 private:
  Policy policy_{};
  std::uint32_t used_ = 0;
};

}  // namespace sluice
