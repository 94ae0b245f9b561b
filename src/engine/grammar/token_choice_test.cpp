#include "engine/grammar/token_choice.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// The tokens a to e, which are 0 to 4, and 5, which ends an answer.
class TokenChoiceTest : public testing::Test {
 protected:
  TokenChoiceTest() {
    std::vector<TokenPieces::Entry> entries;
    for (TokenId token = 0; token < 5; ++token) {
      entries.push_back({.token = token, .bytes = std::string(1, static_cast<char>('a' + token))});
    }
    entries.push_back({.token = 5, .ends = true});
    pieces_ = std::make_shared<const TokenPieces>(entries);
  }
  [[nodiscard]] TokenChoice choice(const SamplingParams& params,
                                   const std::string& grammar = {}) const {
    if (grammar.empty()) return {pieces_, params, nullptr};
    AnswerGrammar answer;
    answer.grammar = std::make_shared<const Grammar>(Grammar::parse(grammar).value());
    return {pieces_, params,
            std::make_unique<TokenConstraint>(std::move(answer), pieces_, std::set<TokenId>())};
  }
  /// So many tokens.
  static std::vector<TokenId> drawn(TokenChoice& choice, const std::vector<float>& logits,
                                    std::size_t count) {
    std::vector<TokenId> out;
    while (out.size() < count) out.push_back(choice.next(logits).value());
    return out;
  }
  /// How often each comes in a thousand.
  [[nodiscard]] std::map<TokenId, int> counts(SamplingParams params,
                                              const std::vector<float>& logits) const {
    params.seed = 1;
    TokenChoice from = choice(params);
    std::map<TokenId, int> out;
    for (const TokenId each : drawn(from, logits, 1000)) ++out[each];
    return out;
  }
  static SamplingParams open() { return {.temperature = 1, .top_k = 0, .top_p = 1, .min_p = 0}; }

  std::shared_ptr<const TokenPieces> pieces_;
  // Beyond the vocabulary there is the highest one, which stands for nothing.
  const std::vector<float> logits_ = {0, 3, 1, 3, 2, -1, 99};
};

TEST_F(TokenChoiceTest, WithoutTemperatureTheLikeliestIsTaken) {
  TokenChoice greedy = choice({.temperature = 0});
  EXPECT_THAT(drawn(greedy, logits_, 2), ElementsAre(1, 1)) << "the first of two";
}

TEST_F(TokenChoiceTest, TheSeedDecides) {
  SamplingParams params = open();
  params.seed = 7;
  TokenChoice one = choice(params);
  TokenChoice same = choice(params);
  const auto first = drawn(one, logits_, 50);
  EXPECT_EQ(drawn(same, logits_, 50), first);
  params.seed = 8;
  TokenChoice other = choice(params);
  EXPECT_NE(drawn(other, logits_, 50), first);
}

TEST_F(TokenChoiceTest, LikelierTokensComeOftener) {
  // e^0, e^1 and e^2 of 11.1.
  const auto all = counts(open(), {0, 1, 2, -99, -99, -99});
  EXPECT_NEAR(all.at(0), 90, 40);
  EXPECT_NEAR(all.at(1), 245, 60);
  EXPECT_NEAR(all.at(2), 665, 60);
  SamplingParams hot = open();
  hot.temperature = 100;
  EXPECT_NEAR(counts(hot, {0, 1, 2, -9999, -9999, -9999}).at(0), 333, 60);
}

TEST_F(TokenChoiceTest, UnlikelyTokensAreLeftOut) {
  SamplingParams params = open();
  params.top_k = 2;
  EXPECT_THAT(counts(params, {0, 1, 2, 0, 0, 0}), ::testing::SizeIs(2));
  params = open();
  params.top_p = 0.9F;  // 0.665 and 0.245 of 1
  EXPECT_THAT(counts(params, {0, 1, 2, -99, -99, -99}), ::testing::SizeIs(2));
  params = open();
  params.min_p = 0.2F;  // of e^2: e^0 is 0.135 of it
  EXPECT_THAT(counts(params, {0, 1, 2, -99, -99, -99}), ::testing::SizeIs(2));
}

TEST_F(TokenChoiceTest, PenaltiesAreForWhatTheAnswerHas) {
  SamplingParams params = {.temperature = 0, .repeat_penalty = 2};
  TokenChoice repeats = choice(params);
  EXPECT_THAT(drawn(repeats, logits_, 4), ElementsAre(1, 3, 4, 1));
  params = {.temperature = 0, .presence_penalty = 1.5F, .penalty_last_n = 1};
  TokenChoice present = choice(params);
  EXPECT_THAT(drawn(present, logits_, 3), ElementsAre(1, 3, 1)) << "the last token alone";
  params = {.temperature = 0, .frequency_penalty = 0.6F};
  TokenChoice frequent = choice(params);
  EXPECT_THAT(drawn(frequent, logits_, 5), ElementsAre(1, 3, 1, 3, 4));
}

TEST_F(TokenChoiceTest, AGrammarForbidsTokens) {
  TokenChoice held = choice({.temperature = 0}, "root ::= [ae] \"c\"?");
  EXPECT_EQ(held.next(logits_), 4);
  EXPECT_FALSE(held.is_over());
  EXPECT_EQ(held.next(logits_), 2);
  EXPECT_TRUE(held.is_over());
  EXPECT_EQ(held.next(logits_), 5);
  TokenChoice stuck = choice({.temperature = 0}, "root ::= \"x\"");
  const auto none = stuck.next(logits_);
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error().message, HasSubstr("no token of the model matches the grammar"));
}

}  // namespace
}  // namespace sluice
