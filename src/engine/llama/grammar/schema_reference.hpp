#pragma once

#include <string_view>

#include "json/json.hpp"

namespace sluice {

/// The target of `reference` in the schema `root`, as llama.cpp resolves it: "#/a/b", without
/// escapes. Null if there is none.
const json::value* resolve_reference(const json::value& root, std::string_view reference);

}  // namespace sluice
