#pragma once

#include <cstddef>
#include <cstdint>
#include <llama.h>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "engine/engine.hpp"
#include "engine/llama/answer/answer_reader.hpp"
#include "engine/llama/model/chat_format.hpp"
#include "engine/llama/model/token_pieces.hpp"
#include "engine/llama/sampling/token_constraint.hpp"

namespace sluice {

/// A request in the model's terms.
struct PreparedRequest {
  std::vector<llama_token> tokens;
  AnswerReader::Options reader;
  std::unique_ptr<TokenConstraint> constraint;  // null: the answer is free
  std::set<llama_token> visible;                // control tokens whose text belongs to the answer
  SamplingParams sampling;
  std::uint32_t max_tokens = 0;  // 0: no limit of its own
};

/// Checks requests and translates them. Thread-safe; the model must outlive it.
class RequestPreparer {
 public:
  static constexpr std::size_t kMaxStops = 16;
  static constexpr std::size_t kMaxStopBytes = 256;
  static constexpr std::size_t kMaxGrammarBytes = std::size_t{64} << 10U;
  static constexpr std::size_t kMaxToolsBytes = std::size_t{256} << 10U;

  RequestPreparer(const llama_model* model, std::uint32_t context_tokens);

  /// What can be said about a request at once: ranges and sizes. Errors: -32602.
  [[nodiscard]] Result<void> check(const GenerationRequest& request) const;

  /// Whether prepare() takes less than a millisecond: a short prompt, nothing that binds the
  /// answer, and no large template.
  [[nodiscard]] bool is_quick(const GenerationRequest& request) const;

  /// Translates a request that check() has passed: renders the template, tokenizes, reads schema
  /// and grammar. Takes up to some tenths of a second, whatever the request is. Errors: -32602,
  /// also for a prompt that does not fit into the context.
  [[nodiscard]] Result<PreparedRequest> prepare(const GenerationRequest& request) const;

 private:
  [[nodiscard]] Result<PreparedRequest> translate(const GenerationRequest& request) const;
  [[nodiscard]] Result<Grammar> grammar_of(const GenerationRequest& request) const;
  [[nodiscard]] Result<std::vector<llama_token>> tokenize(const std::string& text,
                                                          bool special) const;
  [[nodiscard]] Result<AnswerGrammar> answer_grammar(const GenerationRequest& request,
                                                     const ChatPrompt* prompt,
                                                     const std::set<llama_token>& visible) const;

  const llama_vocab* const vocab_;
  const std::uint32_t context_tokens_;
  const std::shared_ptr<const TokenPieces> pieces_;
  const std::size_t longest_piece_;         // bytes of the vocabulary's longest token
  const std::optional<float> temperature_;  // that the model's file recommends
  const ChatFormat format_;
  const ChatFormat quick_format_;  // for the loops, which must not wait for a large prompt
};

}  // namespace sluice
