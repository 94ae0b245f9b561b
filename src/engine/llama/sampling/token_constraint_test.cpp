#include "engine/llama/sampling/token_constraint.hpp"

#include <algorithm>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/llama/model/llama_log.hpp"

namespace sluice {
namespace {

/// The vocabulary of the built-in model, which has a token for every byte.
class TokenConstraintTest : public testing::Test {
 protected:
  TokenConstraintTest() {
    initialize_llama();
    llama_model_params params = llama_model_default_params();
    params.vocab_only = true;
    model_.reset(llama_model_load_from_file(SLUICE_BUILT_IN_MODEL, params));
    pieces_ = std::make_shared<const TokenPieces>(llama_model_get_vocab(model_.get()));
  }

  /// Whether some token that begins with `byte` may follow the bytes `taken` in an answer that
  /// matches `grammar`.
  bool may_follow(const std::string& grammar, std::string_view taken, char byte) {
    auto parsed = Grammar::parse(grammar);
    EXPECT_TRUE(parsed);
    AnswerGrammar answer;
    answer.grammar = std::make_shared<const Grammar>(*std::move(parsed));
    TokenConstraint constraint(std::move(answer), pieces_, {});
    for (const char each : taken) EXPECT_TRUE(constraint.accept(token_of(each)));
    const auto allowed = constraint.allowed();
    EXPECT_TRUE(allowed);
    return std::ranges::any_of(
        *allowed, [&](llama_token token) { return pieces_->bytes_of(token).front() == byte; });
  }

 private:
  llama_token token_of(char byte) {
    const auto& all = pieces_->sorted();
    const auto found = std::ranges::find_if(all, [&](const auto& piece) {
      return pieces_->bytes(piece) == std::string_view(&byte, 1);
    });
    return found == all.end() ? LLAMA_TOKEN_NULL : found->token;
  }

  struct Free {
    void operator()(llama_model* model) const { llama_model_free(model); }
  };
  std::unique_ptr<llama_model, Free> model_;
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

}  // namespace
}  // namespace sluice
