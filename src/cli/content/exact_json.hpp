#pragma once

#include <string_view>

#include "core/error.hpp"
#include "json/json.hpp"

namespace sluice {

/// Parses what a user has typed as parse_json() does, and refuses numbers that would be sent as
/// something else: an integer of more than 64 bits, which would be rounded, and what is larger than
/// any number, which would be null. Error: kExitUsage.
Result<json::value> exact_json(std::string_view text);

}  // namespace sluice
