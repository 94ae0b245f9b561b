#pragma once

#include <expected>
#include <string>
#include <string_view>

namespace sluice {

/// `pattern` (ECMA-262) as llama.cpp can make a grammar of it, for the inside of a JSON string:
/// what JSON escapes stands there escaped, and . and [^a] leave it out or take it escaped. All
/// texts that the result takes are followed by the pattern, though not all that it takes can be
/// written so: of the controls, a set takes those that have an escape of two characters. Errors are
/// a phrase that says what a grammar cannot express: llama.cpp would take any string in its place,
/// or another.
std::expected<std::string, std::string> followed_pattern(std::string_view pattern);

}  // namespace sluice
