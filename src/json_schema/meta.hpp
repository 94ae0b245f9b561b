#pragma once

#include <string_view>

#include "json/json.hpp"

namespace sluice {

/// The meta-schema of 2020-12, or that of one of its vocabularies, by its URI without a fragment.
/// Null for any other URI. The result lives as long as the program.
const json::value* bundled_meta_schema(std::string_view uri);

}  // namespace sluice
