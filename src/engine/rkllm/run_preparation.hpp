#pragma once

#include "core/error.hpp"
#include "engine/rkllm/abi/abi.hpp"
#include "engine/rkllm/abi/common.hpp"
#include "engine/rkllm/rkllm_engine.hpp"
#include "engine/rkllm/rkllm_run.hpp"

namespace sluice::rkllm {

/// Checks what can be checked quickly. `abi`: of the runtime; null: it is not known yet.
/// `chooses_tokens`: whether we may choose the tokens of a run. Error: -32602, for what can never
/// be served, and why.
Result<void> check(const GenerationRequest& request, const RkllmOptions& options,
                   const AbiFacts* abi, bool chooses_tokens);

/// Makes the request of `run` an input of the runtime, and says what constrains or checks its
/// answer. May take a second. Errors: -32602; lost_choice().
Result<void> prepare(RkllmRun& run, const RkllmOptions& options, const AbiFacts* abi,
                     bool chooses_tokens);

/// Whether the sampling is such that the runtime cannot do it in a single run.
bool needs_choice(const SamplingParams& given, const AbiFacts* abi);

/// What ends a run that check() has let through when tokens could be chosen.
Error lost_choice();

/// What a run takes of a request's sampling, where it has its own. What the request does not name
/// stays as the runtime has it.
Sampling sampling_of(const SamplingParams& given);

InferMode mode_of(Yield yields);

/// The hidden states or logits of a run that is over, as RKLLMResult has them, with the numbers in
/// Base64. They are taken out of it. Error kInternalError: the runtime has given none.
Result<Delta> take_yield(RkllmRun& run);

}  // namespace sluice::rkllm
