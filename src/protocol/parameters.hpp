#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/error.hpp"
#include "json/json.hpp"

namespace sluice {

/// The parameter `name`, or a null pointer if it is absent or JSON's null, which many programs send
/// for an absent value.
const json::value* find_parameter(const json::object& params, std::string_view name);

/// The text `name`, empty if it is absent. Error: -32602 if it is no string.
Result<std::string> text_parameter(const json::object& params, std::string_view name);

/// The integer that `value` is. So are numbers without a fraction however they are written, such as
/// 1.0 and 1e2 (JSON Schema Core, section 4.2.3), below 2^53.
std::optional<std::int64_t> integer_of(const json::value& value);

}  // namespace sluice
