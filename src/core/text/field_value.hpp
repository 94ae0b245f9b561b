#pragma once

#include <cstddef>
#include <string_view>

namespace sluice {

/// Where the first control character in `text` is, from `at` on; if there is none, its size.
std::size_t find_control(std::string_view text, std::size_t at);

/// Whether `text` may be the value of a header field (RFC 9110, section 5.5): no control characters
/// but tabs.
bool is_field_value(std::string_view text);

}  // namespace sluice
