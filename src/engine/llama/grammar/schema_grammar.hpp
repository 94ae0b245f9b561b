#pragma once

#include <string>

#include "json/json.hpp"

namespace sluice {

/// The grammar, in GBNF, of the JSON texts that follow `schema`, which must come from
/// followable_schema(). Throws a std::exception that says what llama.cpp cannot make a grammar of.
std::string schema_grammar(const json::value& schema);

}  // namespace sluice
