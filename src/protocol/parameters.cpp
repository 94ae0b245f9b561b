#include "protocol/parameters.hpp"

#include <cmath>

namespace sluice {

const json::value* find_parameter(const json::object& params, std::string_view name) {
  const json::value* const value = params.if_contains(name);
  return value == nullptr || value->is_null() ? nullptr : value;
}

std::optional<std::int64_t> integer_of(const json::value& value) {
  if (const std::int64_t* const integer = value.if_int64()) return *integer;
  static constexpr double kMost = 9007199254740992;
  const double* const number = value.if_double();
  if (number == nullptr || std::abs(*number) > kMost || *number != std::trunc(*number)) {
    return std::nullopt;
  }
  return static_cast<std::int64_t>(*number);
}

}  // namespace sluice
