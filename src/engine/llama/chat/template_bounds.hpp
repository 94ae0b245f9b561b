#pragma once

#include <string_view>

namespace sluice {

/// Checks that a template in Jinja is not nested so deeply that llama.cpp, which follows it
/// recursively, runs out of stack: in blocks, in brackets, and in what one tag has beside texts.
/// Throws a std::runtime_error that says what is too deep.
void check_template_bounds(std::string_view source);

}  // namespace sluice
