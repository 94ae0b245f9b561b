#pragma once

#include <string_view>

#include "json/json.hpp"

namespace sluice {

/// Where `reference` leads in the schema `root`: "#/a~1b/c%20d", a JSON pointer as a fragment (RFC
/// 6901, section 6); "#" is `root` itself. Null if nowhere.
const json::value* resolve_reference(const json::value& root, std::string_view reference);

}  // namespace sluice
