#pragma once

#include <llama.h>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "engine/engine.hpp"
#include "engine/grammar/token_constraint.hpp"

namespace sluice {

/// Chooses the tokens of one answer with penalties, top_k, top_p, min_p, temperature, a random
/// draw, and a grammar that every choice must match.
class TokenSampler {
 public:
  /// `constraint` may be null. The penalties consider `prompt`; `context_tokens` is what a
  /// penalty_last_n of -1 stands for.
  TokenSampler(const llama_vocab* vocab, const SamplingParams& params,
               std::unique_ptr<TokenConstraint> constraint, std::span<const llama_token> prompt,
               std::uint32_t context_tokens);

  /// Chooses a token from the logits of output `index` of the last step, and remembers it. Error:
  /// -32602 if the grammar allows no token of the vocabulary, or is too ambiguous.
  Result<llama_token> sample(llama_context* context, int index);

 private:
  struct ChainDeleter {
    void operator()(llama_sampler* chain) const { llama_sampler_free(chain); }
  };

  llama_token choose();

  std::unique_ptr<llama_sampler, ChainDeleter> chain_;
  const std::unique_ptr<TokenConstraint> constraint_;
  const std::size_t words_;
  std::vector<llama_token_data> candidates_;  // used only during a call
};

}  // namespace sluice
