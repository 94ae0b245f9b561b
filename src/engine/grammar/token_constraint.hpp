#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <regex>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "engine/grammar/grammar.hpp"
#include "engine/grammar/grammar_matcher.hpp"
#include "engine/grammar/token_pieces.hpp"

namespace sluice {

/// A grammar that an answer must match, as a whole or from a trigger on.
struct AnswerGrammar {
  std::shared_ptr<const Grammar> grammar;  // null: no grammar
  bool lazy = false;                       // applies only from the first trigger on
  std::vector<std::string> words;    // triggers; the grammar applies from their first character on
  std::vector<std::regex> patterns;  // triggers; the grammar applies from their first group on
  std::vector<TokenId> tokens;       // triggers
  std::string begun;                 // the beginning of the answer, which is part of the prompt
};

/// Decides which tokens may follow in an answer that a grammar constrains. The work for one token
/// is bounded for any grammar (MatcherLimits). Belongs to one thread.
class TokenConstraint {
 public:
  /// Allows control tokens only if they are in `visible`; others would have no text.
  TokenConstraint(AnswerGrammar grammar, std::shared_ptr<const TokenPieces> pieces,
                  std::set<TokenId> visible);

  /// Takes the beginning of the answer that the prompt contains. Error: -32602 if it does not match
  /// the grammar, or if the grammar is too ambiguous at its beginning.
  Result<void> begin();

  /// Whether `token` may follow. Errors: those of accept().
  Result<bool> allows(TokenId token);
  /// All tokens that may follow, in no particular order; there may be none. Errors: those of
  /// accept().
  Result<std::vector<TokenId>> allowed();
  /// Whether the answer is whole and nothing but its end may follow.
  [[nodiscard]] bool is_over() const;
  /// Continues the answer with `first`, or if that may not follow, with what `among` chooses of the
  /// tokens that may. Returns which it is. Errors: those of accept(); -32602, none may follow.
  Result<TokenId> choose(TokenId first,
                         const std::function<TokenId(std::span<const TokenId>)>& among);
  /// Continues the answer with `token`. Error: -32602 if the grammar is too ambiguous here.
  Result<void> accept(TokenId token);

 private:
  /// The position in the grammar. Within a multi-byte character it includes the bytes read so far.
  struct Position {
    GrammarMatcher::State state = GrammarMatcher::kNowhere;
    char32_t begun = 0;       // the bits of the character so far
    std::uint8_t left = 0;    // bytes of the character that are missing
    std::uint8_t length = 0;  // bytes of the complete character
  };

  [[nodiscard]] Position after(Position position, char byte);
  [[nodiscard]] bool fits(const Position& position);
  [[nodiscard]] bool hidden(TokenId token, bool control) const;
  Result<void> take(std::string_view bytes);
  void look_for_trigger(TokenId token, std::string_view bytes, std::string& rest);
  [[nodiscard]] Result<void> work_bounded() const;

  AnswerGrammar grammar_;
  const std::shared_ptr<const TokenPieces> pieces_;
  const std::set<TokenId> visible_;
  GrammarMatcher matcher_;
  Position here_;
  bool bound_ = true;
  std::string seen_;           // the end of the text, until a trigger is found
  bool seen_is_whole_ = true;  // whether seen_ is the whole text
};

}  // namespace sluice
