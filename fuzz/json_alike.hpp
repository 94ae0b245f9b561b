#pragma once

#include <algorithm>
#include <cmath>

#include "core/json.hpp"

namespace sluice {

/// Whether two values are the same but for the rounding of their numbers, which depends on what
/// stands around them.
inline bool alike(const json::value& a, const json::value& b) {
  if (a.is_number() && b.is_number()) {
    const auto x = a.to_number<double>();
    const auto y = b.to_number<double>();
    return x == y || std::abs(x - y) <= 1e-12 * std::max(std::abs(x), std::abs(y));
  }
  if (a.is_array() && b.is_array()) {
    return std::ranges::equal(a.get_array(), b.get_array(), alike);
  }
  if (a.is_object() && b.is_object()) {
    return a.get_object().size() == b.get_object().size() &&
           std::ranges::all_of(a.get_object(), [&](const auto& member) {
             const json::value* const other = b.get_object().if_contains(member.key());
             return other != nullptr && alike(member.value(), *other);
           });
  }
  return a == b;
}

}  // namespace sluice
