#pragma once

#include <string_view>

namespace sluice {

/// Why the first number in `text`, which is JSON, would be passed on as another one, or as none: an
/// integer of more than 64 bits, and a number of more digits than a double tells apart, would be
/// rounded, and what is larger than any number would be null. Empty: there is no such number.
std::string_view inexact_number_in(std::string_view text);

}  // namespace sluice
