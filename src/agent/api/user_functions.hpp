#pragma once

#include "sluice/agent_options.hpp"

namespace sluice {

/// The same options, whose functions do not throw: a guardrail that throws refuses, and a rule of
/// approval that throws demands approval, and one of policies that throws or returns one that makes
/// no sense has none. What is no Error is logged, and not told to the model.
AgentOptions shielded(AgentOptions options);

}  // namespace sluice
