#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include <boost/json/array.hpp>
#include <boost/json/value.hpp>

#include "json/json.hpp"

// JSON Schema's view of values: numbers are what they mean, not how they are stored.

namespace sluice {

/// Bytes of text that are looked at in one step of a WorkBudget.
inline constexpr std::size_t kBytesPerStep = 32;

/// What is left of the work a validation may do. Once it is exhausted, it stays so.
struct WorkBudget {
  std::uint64_t steps = 0;
  std::size_t depth = 0;
  bool exhausted = false;
  bool too_deep = false;  // it is exhausted because of the depth

  /// Takes `count` steps; false when there are not enough.
  bool spend(std::uint64_t count = 1) {
    if (count > steps) {
      exhausted = true;
      return false;
    }
    steps -= count;
    return true;
  }

  /// Goes one level down; false when it would be one too many.
  bool enter() {
    if (depth == 0) {
      exhausted = too_deep = true;
      return false;
    }
    --depth;
    return true;
  }
  void leave() { ++depth; }
};

/// Orders two numbers by their exact value: 2^53 + 1 is not equal to any double, 1 equals 1.0.
/// Unordered only with NaN, which JSON has no text for.
std::partial_ordering compare_numbers(const json::value& a, const json::value& b);

/// Whether the number has no fraction: 1.0 and 1e300 have none. Infinity, which is what is left of
/// a number too large for a double, does not count.
bool is_integer(const json::value& number);

/// Whether `number` is `divisor` times an integer, both taken as the shortest decimal that stands
/// for them: 0.0075 is a multiple of 0.0001. `divisor` is above 0.
bool is_multiple_of(const json::value& number, const json::value& divisor);

/// Whether two values are equal: numbers by value, objects whatever their order. False also when
/// the budget does not suffice.
bool equal_values(const json::value& a, const json::value& b, WorkBudget& work);

/// Two positions with equal values, if there are any; none also when the budget does not suffice.
/// Sorts hashes: equal hashes of different values cost budget, not hangs.
std::optional<std::pair<std::size_t, std::size_t>> find_duplicate(const json::array& array,
                                                                  WorkBudget& work);

}  // namespace sluice
