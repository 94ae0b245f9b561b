#pragma once

#include <string_view>

namespace sluice {

/// This release; the same as project() in CMakeLists.txt, which a test checks.
inline constexpr std::string_view kVersion = "0.1.0";

}  // namespace sluice
