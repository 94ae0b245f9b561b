#pragma once

#include <string>
#include <vector>

#include "plan.hpp"

namespace sluice::faults {

/// Plays a plan: a ClientSession and its link, in a World. Returns what the client has done wrong.
std::vector<std::string> play(const Plan& plan);

}  // namespace sluice::faults
