#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <random>
#include <span>
#include <vector>

#include "core/error.hpp"
#include "engine/grammar/token_constraint.hpp"
#include "engine/grammar/token_pieces.hpp"
#include "sluice/chat.hpp"

namespace sluice {

/// Chooses the tokens of one answer from a model's logits with penalties, top_k, top_p, min_p,
/// temperature, a random draw, and a grammar that every choice must match, in this order, as
/// llama.cpp does. The same seed and logits give the same tokens on every machine. Belongs to one
/// thread.
class TokenChoice {
 public:
  /// `constraint` may be null. A penalty_last_n of -1 stands for RequestLimits::kPenaltyWindow. The
  /// penalties consider the answer.
  TokenChoice(std::shared_ptr<const TokenPieces> pieces, const SamplingParams& params,
              std::unique_ptr<TokenConstraint> constraint);

  /// Chooses a token, and remembers it. `logits`: at least one for each token of the vocabulary,
  /// all of them finite. Error: -32602 if the grammar allows no token, or is too ambiguous.
  Result<TokenId> next(std::span<const float> logits);
  /// Whether the grammar says that the answer is whole.
  [[nodiscard]] bool is_over() const;

 private:
  struct Candidate {
    TokenId token = 0;
    float logit = 0;
  };

  void penalize();
  void remember(TokenId token);
  /// One of candidates_, which are put in order.
  TokenId draw();
  static bool is_better(const Candidate& one, const Candidate& other);

  const std::shared_ptr<const TokenPieces> pieces_;
  const SamplingParams params_;
  std::unique_ptr<TokenConstraint> constraint_;
  const std::size_t window_;
  std::mt19937 random_;
  std::deque<TokenId> recent_;  // the last tokens, at most window_
  std::vector<float> logits_;   // used only during a call, as are the next two
  std::vector<Candidate> candidates_;
  std::vector<double> weights_;
};

}  // namespace sluice
