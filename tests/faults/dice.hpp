#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <random>

namespace sluice::faults {

/// Draws from a seed, the same on every machine.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : engine_(seed) {}
  /// Less than `limit`, which is not 0.
  std::size_t below(std::size_t limit) { return static_cast<std::size_t>(engine_() % limit); }
  bool one_in(std::size_t count) { return below(count) == 0; }
  template <class Range>
  const auto& pick(const Range& from) {
    return from[below(std::size(from))];
  }

 private:
  std::mt19937_64 engine_;
};

}  // namespace sluice::faults
