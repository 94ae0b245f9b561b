#pragma once

#include <cstddef>

#include "core/error.hpp"
#include "engine/engine.hpp"

namespace sluice {

/// How large the parts of a request may be.
struct RequestLimits {
  static constexpr std::size_t kStops = 16;
  static constexpr std::size_t kStopBytes = 1024;
  static constexpr std::size_t kGrammarBytes = std::size_t{64} << 10U;  // also of a schema
  static constexpr std::size_t kToolsBytes = std::size_t{256} << 10U;
  static constexpr std::size_t kPenaltyWindow = 65536;  // tokens
};

/// Checks what holds for every engine that runs a model: what is given together, and sizes. Error:
/// -32602.
Result<void> check_request(const GenerationRequest& request);

/// Checks the ranges of sampling parameters. Error: -32602, which names the parameter and its
/// range.
Result<void> check_sampling(const SamplingParams& params);

/// How many messages and calls a template processes. Each takes time, even an empty one.
std::size_t count_turns(const GenerationRequest& request);

}  // namespace sluice
