#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "engine/grammar/token_choice.hpp"
#include "engine/grammar/token_pieces.hpp"
#include "engine/rkllm/runtime/runtime.hpp"
#include "engine/rkllm/worker/worker_messages.hpp"

namespace sluice::rkllm {

/// Has a runtime say what may come next (RKLLM_INFER_GET_LOGITS), without choosing it.
class LogitRuns {
 public:
  /// `runtime` outlives it. `words`: the tokens of the vocabulary. A model may have more, which
  /// stand for nothing.
  LogitRuns(Runtime& runtime, std::size_t words) : runtime_(&runtime), words_(words) {}

  /// Tells the model `input`. Returns the logits of what comes behind it, one for each word; valid
  /// until the next call. Error -32603: the runtime does not give them, and what it does instead.
  Result<std::span<const float>> run(const RunInput& input, RunParams params);
  /// The figures of the last run, if the version has them.
  [[nodiscard]] const std::optional<PerfStat>& figures() const { return figures_; }

 private:
  Runtime* runtime_;
  std::size_t words_;
  std::vector<float> logits_;  // of the last token of the last run
  std::optional<PerfStat> figures_;
};

/// An answer whose tokens are chosen here: each is told to the model, which says what may come
/// next.
class TokenSteps {
 public:
  /// What the references name outlives it. Error: -32602, the grammar cannot be followed.
  static Result<TokenSteps> begin(Runtime& runtime, std::shared_ptr<const TokenPieces> pieces,
                                  const RunRequest& request);

  /// The next token; nothing: the answer is over. Errors: those of LogitRuns::run() and
  /// TokenChoice::next().
  Result<std::optional<TokenId>> next();
  /// Of reading the prompt, if the version has them.
  [[nodiscard]] const std::optional<PerfStat>& figures() const { return figures_; }

 private:
  TokenSteps(Runtime& runtime, std::shared_ptr<const TokenPieces> pieces,
             std::unique_ptr<TokenConstraint> constraint, const RunRequest& request);

  LogitRuns runs_;
  TokenChoice choice_;
  std::shared_ptr<const TokenPieces> pieces_;
  RunInput input_;    // of the next run
  RunParams params_;  // the same
  std::optional<PerfStat> figures_;
};

/// Tries whether a runtime can be used so, with a model that has been loaded: whether its tokens
/// are those of `pieces`, and whether it goes on from a token that it is told as from the whole
/// text. The runtime has a part of a text in its cache afterwards, which the next run without
/// history discards. Error -32603: it cannot, and why.
Result<void> test_token_steps(Runtime& runtime, const TokenPieces& pieces);

}  // namespace sluice::rkllm
