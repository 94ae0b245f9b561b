#pragma once

#include <cstddef>

#include "core/error.hpp"
#include "engine/engine.hpp"
#include "engine/llama/chat/member_budget.hpp"

namespace sluice {

/// Values, and names of members, in the arguments of all calls of a request.
inline constexpr std::size_t kMaxCallValues = 65536;

/// Checks the arguments of all calls in `request`, writes them as compact JSON, and spends what
/// their members cost. Error: -32602.
Result<void> read_call_arguments(GenerationRequest& request, MemberBudget& budget);

}  // namespace sluice
