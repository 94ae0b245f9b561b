#pragma once

#include <common/sampling.h>
#include <llama.h>
#include <span>
#include <string>

#include "core/error.hpp"
#include "engine/engine.hpp"

namespace sluice {

/// Errors: -32602 naming the parameter that is out of its range, and the range.
Result<void> check_sampling(const SamplingParams& params);

/// Chooses the tokens of one answer: penalties, top_k, top_p, min_p, temperature, a draw, and a
/// grammar that every choice must fit.
class TokenSampler {
 public:
  /// `grammar` has the members set that concern the grammar, `params` the rest; `prompt` is what
  /// the penalties see. Throws what llama.cpp throws for a grammar that it cannot parse.
  TokenSampler(const llama_model* model, const SamplingParams& params,
               common_params_sampling grammar, std::span<const llama_token> prompt);

  /// Chooses from the logits of output `index` of the last step, and remembers the choice. Throws
  /// if the grammar allows no token of the vocabulary.
  llama_token sample(llama_context* context, int index);

 private:
  common_sampler_ptr sampler_;
};

}  // namespace sluice
