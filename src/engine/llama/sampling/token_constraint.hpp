#pragma once

#include <cstdint>
#include <llama.h>
#include <memory>
#include <regex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "engine/llama/grammar/grammar.hpp"
#include "engine/llama/grammar/grammar_matcher.hpp"
#include "engine/llama/model/token_pieces.hpp"

namespace sluice {

/// A grammar that an answer must fit, all of it or from a trigger on.
struct AnswerGrammar {
  std::shared_ptr<const Grammar> grammar;  // null: none
  bool lazy = false;                       // holds only from the first trigger on
  std::vector<std::string> words;          // triggers: the text that they begin is the first bound
  std::vector<std::regex> patterns;        // the same; bound from their first group on
  std::vector<llama_token> tokens;         // triggers
  std::string begun;  // the beginning of the answer, which the prompt already has
};

/// Which tokens may come next in an answer that a grammar binds. The work for one token is bounded
/// whatever the grammar is (MatcherLimits). Belongs to one thread.
class TokenConstraint {
 public:
  /// Control tokens are allowed only if they are `visible`: of others, no text would be seen.
  TokenConstraint(AnswerGrammar grammar, std::shared_ptr<const TokenPieces> pieces,
                  std::set<llama_token> visible);

  /// Takes what the prompt already has of the answer. Errors: -32602 if that does not fit, and if
  /// the grammar is too ambiguous to begin with.
  Result<void> begin();

  /// Whether anything is forbidden now.
  [[nodiscard]] bool binds() const { return bound_; }
  /// Errors as accept().
  Result<bool> allows(llama_token token);
  /// All that may come next, in no order; it may be none. Errors as accept().
  Result<std::vector<llama_token>> allowed();
  /// The answer goes on with `token`. Errors: -32602 if the grammar is too ambiguous here.
  Result<void> accept(llama_token token);

 private:
  /// Where the text is; between the bytes of a character also that character's beginning.
  struct Position {
    GrammarMatcher::State state = GrammarMatcher::kNowhere;
    char32_t begun = 0;       // the bits so far
    std::uint8_t left = 0;    // bytes that are still to come
    std::uint8_t length = 0;  // of the whole character
  };

  [[nodiscard]] Position after(Position position, char byte);
  [[nodiscard]] bool fits(const Position& position) const;
  [[nodiscard]] bool hidden(llama_token token, bool control) const;
  Result<void> take(std::string_view bytes);
  void look_for_trigger(llama_token token, std::string_view bytes, std::string& rest);
  [[nodiscard]] Result<void> work_bounded() const;

  AnswerGrammar grammar_;
  const std::shared_ptr<const TokenPieces> pieces_;
  const std::set<llama_token> visible_;
  GrammarMatcher matcher_;
  Position here_;
  bool bound_ = true;
  std::string seen_;           // the end of the text, while no trigger has come up
  bool seen_is_whole_ = true;  // and it is all of the text
};

}  // namespace sluice
