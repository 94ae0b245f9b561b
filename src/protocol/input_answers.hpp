#pragma once

#include "core/error.hpp"
#include "core/json.hpp"
#include "protocol/input_rounds.hpp"

namespace sluice {

/// Whether `answer` is a result that `request` may have: of the shape of its method (2026-07-28,
/// Elicitation, Sampling, Roots), and what an elicitation accepts follows the schema that was
/// requested, formats included. Methods that are not known may have any object.
///
/// The Error (-32602) says where the answer is wrong; it is -32603 if the requested schema is none.
Result<void> check_answer(const InputRequest& request, const json::value& answer);

}  // namespace sluice
