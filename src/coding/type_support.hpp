#pragma once

// Functions that the code for several kinds of types shares.

#include <string_view>

#include "sluice/detail/type.hpp"

namespace sluice::detail {

/// Throws std::logic_error, for a type that can be encoded but not decoded.
[[noreturn]] void fail_unreadable();

/// The name of the type in a spelling: `Point` for `T = ns::Point` or `T = ns::Point<int>`.
std::string_view type_name_in(std::string_view spelling);

}  // namespace sluice::detail
