#pragma once

#include <cstddef>
#include <cstdint>
#include <llama.h>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "engine/answer/answer_reader.hpp"
#include "engine/engine.hpp"
#include "engine/grammar/token_constraint.hpp"
#include "engine/grammar/token_pieces.hpp"
#include "engine/llama/chat/chat_format.hpp"
#include "engine/llama/chat/member_budget.hpp"

namespace sluice {

/// A request translated for the model.
struct PreparedRequest {
  std::vector<llama_token> tokens;
  bool continues = false;  // the tokens follow those of the sequence that it goes on from
  AnswerReader::Options reader;
  std::unique_ptr<TokenConstraint> constraint;  // null: the answer is not constrained
  std::set<llama_token> visible;                // control tokens whose text belongs to the answer
  SamplingParams sampling;
  std::uint32_t max_tokens = 0;  // 0: the request sets no limit
};

/// Checks and translates requests. Thread-safe; the model must outlive it.
class RequestPreparer {
 public:
  /// `own`: the chat template, if it has one, instead of the model's. Throws a std::exception if it
  /// cannot be used.
  RequestPreparer(const llama_model* model, std::uint32_t context_tokens,
                  const ChatTemplateText& own = {});

  /// Checks what can be checked quickly: ranges and sizes. Error: -32602.
  [[nodiscard]] Result<void> check(const GenerationRequest& request) const;

  /// Whether prepare() takes a few milliseconds at most: the prompt is short, nothing constrains
  /// the answer, and the template is not large.
  [[nodiscard]] bool is_quick(const GenerationRequest& request) const;

  /// Translates a request that check() has accepted: renders the template, tokenizes, and parses
  /// the arguments of calls, schema and grammar. Takes about a second at most for any request.
  /// Error: -32602, also for a prompt that does not fit into the context. `continued`: the tokens
  /// of the sequence that the request may go on from; 0: none.
  [[nodiscard]] Result<PreparedRequest> prepare(GenerationRequest request,
                                                std::size_t continued = 0) const;

  /// As ChatFormat::alternates().
  [[nodiscard]] bool alternates() const { return format_.alternates(); }

 private:
  /// What follows the answer that a request goes on from.
  struct Continuation {
    ChatPrompt prompt;
    std::vector<llama_token> tokens;
  };

  [[nodiscard]] Result<PreparedRequest> translate(const GenerationRequest& request,
                                                  const ChatFormat& format, MemberBudget budget,
                                                  std::size_t continued) const;
  [[nodiscard]] std::optional<Continuation> continuation(const GenerationRequest& request,
                                                         const ChatFormat& format,
                                                         MemberBudget budget,
                                                         std::size_t continued) const;
  [[nodiscard]] Result<Grammar> grammar_of(const GenerationRequest& request) const;
  /// `mark`: the text on each side of it is tokenized by itself; empty: there is none. `begins`:
  /// whether it is the beginning of a sequence.
  [[nodiscard]] Result<std::vector<llama_token>> tokenize(std::string_view text,
                                                          std::string_view mark, bool special,
                                                          bool begins) const;
  /// The same for a text without a mark, whose tokens are added to `tokens`.
  Result<void> add_tokens(std::string_view text, bool special, bool begins,
                          std::vector<llama_token>& tokens) const;
  [[nodiscard]] Result<AnswerGrammar> answer_grammar(const GenerationRequest& request,
                                                     const ChatPrompt* prompt,
                                                     const std::set<llama_token>& visible) const;

  const llama_vocab* const vocab_;
  const std::uint32_t context_tokens_;
  const std::shared_ptr<const TokenPieces> pieces_;
  const std::size_t longest_piece_;         // bytes of the vocabulary's longest token
  const std::vector<std::string> ends_;     // the texts of the tokens that end an answer
  const std::optional<float> temperature_;  // recommended by the model's file
  const ChatFormat format_;
  const ChatFormat quick_format_;  // for quick requests, which do not wait for slow ones
};

}  // namespace sluice
