#pragma once

#include <expected>
#include <string>
#include <string_view>

namespace sluice {

/// Rewrites `pattern` (ECMA-262) so that llama.cpp can make a grammar of it for the inside of a
/// JSON string. Characters that JSON escapes appear escaped, and `.` and `[^a]` exclude them or
/// match their escape. Every text that the result matches follows the pattern. The converse does
/// not hold: of the control characters, a set matches only those that have an escape of two
/// characters. The error is a phrase that says what a grammar cannot express. Without it, llama.cpp
/// would accept any string or a different set of strings.
std::expected<std::string, std::string> followed_pattern(std::string_view pattern);

}  // namespace sluice
