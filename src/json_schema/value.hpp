#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include <boost/json/array.hpp>
#include <boost/json/value.hpp>

#include "json/json.hpp"

// Values as JSON Schema sees them: numbers count by their mathematical value, not by how they are
// stored.

namespace sluice {

/// Bytes of text that are examined in one step of a WorkBudget.
inline constexpr std::size_t kBytesPerStep = 32;

/// The work that a validation may still do. Once exhausted, it stays exhausted.
struct WorkBudget {
  std::uint64_t steps = 0;
  std::size_t depth = 0;
  bool exhausted = false;
  bool too_deep = false;  // exhausted because the depth limit was reached

  /// Takes `count` steps. Returns false if fewer are left.
  bool spend(std::uint64_t count = 1) {
    if (count > steps) {
      exhausted = true;
      return false;
    }
    steps -= count;
    return true;
  }

  /// Goes one level down. Returns false if that would exceed the depth limit.
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

/// Compares two numbers by their exact value: 2^53 + 1 is not equal to any double, and 1 equals
/// 1.0. The result is unordered only for NaN, which JSON text cannot express.
std::partial_ordering compare_numbers(const json::value& a, const json::value& b);

/// Whether the number has no fraction; 1.0 and 1e300 have none. Infinity does not count as an
/// integer: it stands for a number that was too large for a double.
bool is_integer(const json::value& number);

/// Whether `number` is `divisor` times an integer. Both are taken as the shortest decimal that
/// represents them, so 0.0075 is a multiple of 0.0001. `divisor` must be above 0.
bool is_multiple_of(const json::value& number, const json::value& divisor);

/// Whether two values are equal. Numbers are compared by value, and the order of an object's
/// members does not matter. Also returns false if the budget runs out.
bool equal_values(const json::value& a, const json::value& b, WorkBudget& work);

/// The positions of two equal values, if there are any. Also returns nothing if the budget runs
/// out. Compares values whose hashes are equal, and pays for that from the budget, so that
/// colliding hashes cannot make it hang.
std::optional<std::pair<std::size_t, std::size_t>> find_duplicate(const json::array& array,
                                                                  WorkBudget& work);

}  // namespace sluice
