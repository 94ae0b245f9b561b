#pragma once

#include <string_view>

#include "core/error.hpp"
#include "json/json.hpp"

namespace sluice {

/// Parses what a user has typed as parse_json() does, and refuses what inexact_number_in() finds.
/// Error: kExitUsage.
Result<json::value> exact_json(std::string_view text);

}  // namespace sluice
