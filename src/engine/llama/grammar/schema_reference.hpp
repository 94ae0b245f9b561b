#pragma once

#include <string_view>

#include "json/json.hpp"

namespace sluice {

/// Where `reference` leads in the schema `root`, as llama.cpp sees it: "#/a/b", without escapes.
/// Null if nowhere.
const json::value* resolve_reference(const json::value& root, std::string_view reference);

}  // namespace sluice
