#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace sluice {

/// The most bytes that the APIs of models allow for the name of a tool.
inline constexpr std::size_t kMaxNameForModel = 64;

/// The name of a tool as the APIs of models take it: letters, digits, `_` and `-`. `_` replaces
/// what is none of these.
std::string name_for_model(std::string_view name);

}  // namespace sluice
