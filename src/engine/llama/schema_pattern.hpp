#pragma once

#include <string>
#include <string_view>

#include "core/json.hpp"

namespace sluice {

/// Why a schema's `pattern` cannot be followed, or nothing. llama.cpp takes any string in its place
/// and writes the pattern to standard error as it is, so it must not see one of these.
std::string pattern_fault(std::string_view pattern);

/// Takes what pattern_fault() finds fault with out of a schema that is a hint.
void drop_faulty_patterns(json::value& schema);

}  // namespace sluice
