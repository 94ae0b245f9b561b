#pragma once

// What the functions of several kinds of types share.

#include <string_view>

#include "sluice/detail/type.hpp"

namespace sluice::detail {

/// The type can only be encoded: throws std::logic_error.
[[noreturn]] void fail_unreadable();

/// Reads what goes inside of a nullable.
bool decode_inside(const NullableType& type, const json::value& value, void* out, Decoder& decoder);

/// `Point`, for a spelling that says `T = ns::Point` or `T = ns::Point<int>`.
std::string_view type_name_in(std::string_view spelling);

}  // namespace sluice::detail
