#pragma once

#include "json/json.hpp"

namespace sluice {

/// Gives the accepted content of a form the defaults of its schema for what the user has left out
/// (2025-11-25, Elicitation; SEP-1034). `params` is of the question, `result` of the answer.
void fill_in_defaults(const json::object& params, json::object& result);

}  // namespace sluice
