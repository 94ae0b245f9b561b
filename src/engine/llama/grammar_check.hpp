#pragma once

#include <cstddef>
#include <string_view>

#include "core/error.hpp"

namespace sluice {

/// What a grammar may amount to. llama.cpp spells repetitions out: "x"{3} becomes three elements.
struct GrammarLimits {
  std::size_t depth = 64;          // of parentheses
  std::size_t elements = 200000;   // with repetitions spelled out
  std::size_t repetitions = 2000;  // of one thing, and of all that it contains; llama.cpp's own
};

/// Checks that `grammar` is GBNF (llama.cpp, grammars/README.md) with a rule "root", every rule
/// defined, within `limits`: llama.cpp itself would print what it refuses to standard error and
/// takes some that exhaust the memory. References to tokens (<...>) are refused. Left recursion is
/// not looked for. Takes time in proportion to the text. Errors: -32602 with the line.
Result<void> check_grammar(std::string_view grammar, const GrammarLimits& limits = {});

}  // namespace sluice
