#include "engine/grammar/token_constraint.hpp"

#include <algorithm>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace sluice {
namespace {

/// A vocabulary with a token for every byte, and one that ends an answer.
class TokenConstraintTest : public testing::Test {
 protected:
  static constexpr TokenId kEnd = 256;

  TokenConstraintTest() {
    std::vector<TokenPieces::Entry> entries;
    for (TokenId byte = 0; byte < kEnd; ++byte) {
      entries.push_back({.token = byte, .bytes = std::string(1, static_cast<char>(byte))});
    }
    entries.push_back({.token = kEnd, .bytes = "</s>", .control = true, .ends = true});
    pieces_ = std::make_shared<const TokenPieces>(entries);
  }

  [[nodiscard]] TokenConstraint constraint(const std::string& grammar) const {
    auto parsed = Grammar::parse(grammar);
    EXPECT_TRUE(parsed);
    AnswerGrammar answer;
    answer.grammar = std::make_shared<const Grammar>(*std::move(parsed));
    return {std::move(answer), pieces_, {}};
  }

  /// Whether some token that begins with `byte` may follow the bytes `taken` in an answer that
  /// matches `grammar`.
  bool may_follow(const std::string& grammar, std::string_view taken, char byte) {
    TokenConstraint follows = constraint(grammar);
    for (const char each : taken) EXPECT_TRUE(follows.accept(static_cast<unsigned char>(each)));
    const auto allowed = follows.allowed();
    EXPECT_TRUE(allowed);
    return std::ranges::find(*allowed, static_cast<unsigned char>(byte)) != allowed->end();
  }

  std::shared_ptr<const TokenPieces> pieces_;
};

TEST_F(TokenConstraintTest, AByteLeadsToACharacter) {
  for (const char* grammar : {"root ::= [^a]", "root ::= [\\uD000-\\uE0FF]"}) {
    EXPECT_TRUE(may_follow(grammar, "", '\xED'));
    EXPECT_TRUE(may_follow(grammar, "\xED", '\x9F'));
    EXPECT_FALSE(may_follow(grammar, "\xED", '\xA0')) << "a surrogate";
    EXPECT_FALSE(may_follow(grammar, "\xED", '\xBF')) << "a surrogate";
    EXPECT_TRUE(may_follow(grammar, "\xEE", '\x80'));
  }
  EXPECT_TRUE(may_follow("root ::= [^a]", "\xE0", '\xA0'));
  EXPECT_FALSE(may_follow("root ::= [^a]", "\xE0", '\x9F')) << "has a shorter encoding";
  EXPECT_FALSE(may_follow("root ::= [^a]", "\xF0", '\x8F')) << "has a shorter encoding";
  EXPECT_TRUE(may_follow("root ::= [^a]", "\xF4", '\x8F'));
  EXPECT_FALSE(may_follow("root ::= [^a]", "\xF4", '\x90')) << "above U+10FFFF";
}

TEST_F(TokenConstraintTest, AnAnswerIsOverWhenNothingMayFollow) {
  TokenConstraint one = constraint("root ::= \"ab\"");
  EXPECT_FALSE(one.is_over());
  EXPECT_TRUE(one.accept('a'));
  EXPECT_FALSE(one.is_over());
  EXPECT_TRUE(one.accept('b'));
  EXPECT_TRUE(one.is_over());
  EXPECT_TRUE(*one.allows(kEnd));
  TokenConstraint more = constraint("root ::= \"a\"+");
  EXPECT_TRUE(more.accept('a'));
  EXPECT_FALSE(more.is_over());
  EXPECT_TRUE(*more.allows(kEnd));
}

}  // namespace
}  // namespace sluice
