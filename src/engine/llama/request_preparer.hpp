#pragma once

#include <common/sampling.h>
#include <cstddef>
#include <cstdint>
#include <llama.h>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "engine/engine.hpp"
#include "engine/llama/answer_reader.hpp"
#include "engine/llama/chat_format.hpp"

namespace sluice {

/// A request in the model's terms.
struct PreparedRequest {
  std::vector<llama_token> tokens;
  AnswerReader::Options reader;
  common_params_sampling grammar;  // only the members that concern the grammar are set
  std::set<llama_token> visible;   // control tokens whose text belongs to the answer
  SamplingParams sampling;
  std::uint32_t max_tokens = 0;  // 0: no limit of its own
};

/// Checks requests and translates them. Thread-safe; the model must outlive it.
class RequestPreparer {
 public:
  static constexpr std::size_t kMaxStops = 16;
  static constexpr std::size_t kMaxStopBytes = 256;
  static constexpr std::size_t kMaxGrammarBytes = std::size_t{64} << 10U;

  RequestPreparer(const llama_model* model, std::uint32_t context_tokens);

  /// What can be said about a request without reading its prompt: ranges, schema and grammar.
  /// Takes time in proportion to these alone. Errors: -32602.
  [[nodiscard]] Result<void> check(const GenerationRequest& request) const;

  /// Translates a request that check() has passed; takes time in proportion to its prompt. Errors:
  /// -32602, also for a prompt that does not fit into the context.
  [[nodiscard]] Result<PreparedRequest> prepare(const GenerationRequest& request) const;

 private:
  [[nodiscard]] Result<PreparedRequest> translate(const GenerationRequest& request) const;
  [[nodiscard]] Result<std::string> grammar_of(const GenerationRequest& request) const;
  [[nodiscard]] Result<std::vector<llama_token>> tokenize(const std::string& text,
                                                          bool special) const;
  void resolve_triggers(PreparedRequest& prepared) const;

  const llama_vocab* const vocab_;
  const std::uint32_t context_tokens_;
  const std::size_t longest_piece_;         // bytes of the vocabulary's longest token
  const std::optional<float> temperature_;  // that the model's file recommends
  const ChatFormat format_;
};

}  // namespace sluice
