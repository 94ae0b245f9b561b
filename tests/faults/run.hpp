#pragma once

#include <string>
#include <vector>

#include "fault_server.hpp"
#include "plan.hpp"

namespace sluice::faults {

struct Verdict {
  std::vector<std::string> complaints;  // what the client has done wrong
  Coverage coverage;                    // what the server has done to bytes
  std::string course;                   // what came of each call, and when all was over
};

/// Plays a plan: a ClientSession and its link, in a World.
Verdict play(const Plan& plan);

}  // namespace sluice::faults
