#pragma once

#include <string_view>

namespace sluice {

/// The version of this release. A test checks that project() in CMakeLists.txt says the same.
inline constexpr std::string_view kVersion = "0.1.0";

}  // namespace sluice
