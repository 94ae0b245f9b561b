#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "json/json.hpp"

namespace sluice {

/// Reads the parameter `name`: an array of numbers, or the Base64 of their bytes, little-endian and
/// four for each. Takes its size from `bytes_left`: what the call's arrays before have left of
/// `most`. `Number` is float or std::int32_t. What is in an array is finite. Error: -32602.
template <class Number>
Result<std::vector<Number>> numbers_parameter(const json::object& params, std::string_view name,
                                              std::size_t& bytes_left, std::size_t most);

}  // namespace sluice
