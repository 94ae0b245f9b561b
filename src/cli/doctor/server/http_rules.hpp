#pragma once

#include <string_view>

#include "cli/doctor/server/examination.hpp"

namespace sluice {

// What the checks of HTTP requests share.

/// Gives the field `name`, which the request has, another value.
void set_field(Ask& ask, std::string_view name, std::string_view value);
void remove_field(Ask& ask, std::string_view name);

/// Sends `ask` as a website would whose name leads to the server (DNS rebinding).
Verdict judge_origin(Examination& examination, Ask ask);

/// Whether the answer in `reply` is the one to the last request: with its id, and the version of
/// JSON-RPC, as JSON or on an event stream. If not, says what is wrong.
Verdict judge_answer(const Examination& examination, const Reply& reply);

}  // namespace sluice
