#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>

#include <boost/system/error_code.hpp>

#include "core/error.hpp"
#include "json/json.hpp"

// Reading what was kept of a run, which may be broken.

namespace sluice {

inline std::unexpected<Error> broken_state(std::string_view what) {
  return fail(-32602, "The kept state of the run is broken: " + std::string(what));
}

/// 0 if there is no such number.
inline std::uint64_t number_in_state(const json::object& object, std::string_view name) {
  const json::value* const value = object.if_contains(name);
  if (value == nullptr || !value->is_number()) return 0;
  boost::system::error_code error;
  const auto number = value->to_number<std::uint64_t>(error);
  return error ? 0 : number;
}

/// The same for what need not be a whole number, but is finite and not negative.
inline double amount_in_state(const json::object& object, std::string_view name) {
  const json::value* const value = object.if_contains(name);
  const double amount = value == nullptr || !value->is_number() ? 0 : value->to_number<double>();
  return std::isfinite(amount) && amount > 0 ? amount : 0;
}

inline bool flag_in_state(const json::object& object, std::string_view name) {
  const json::value* const value = object.if_contains(name);
  return value != nullptr && value->is_bool() && value->get_bool();
}

/// Null if there is none.
inline const json::array* array_in_state(const json::object& object, std::string_view name) {
  const json::value* const value = object.if_contains(name);
  return value == nullptr ? nullptr : value->if_array();
}

/// The index of `name`, which stands for an enumerator; nothing if it is none.
template <std::size_t N>
std::optional<std::size_t> enumerator_in(const std::array<std::string_view, N>& names,
                                         std::string_view name) {
  const auto found = std::ranges::find(names, name);
  if (found == names.end()) return std::nullopt;
  return static_cast<std::size_t>(found - names.begin());
}

}  // namespace sluice
