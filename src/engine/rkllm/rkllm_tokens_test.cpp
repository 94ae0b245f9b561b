#include <algorithm>
#include <gmock/gmock.h>
#include <string>
#include <string_view>
#include <thread>

#include "engine/rkllm/rkllm_engine_test_support.hpp"
#include "engine/rkllm/worker/token_files_test_support.hpp"

#if SLUICE_WITH_LLAMA
#include "engine/llama/chat/answer_schema.hpp"
#endif

namespace sluice::rkllm {
namespace {

using test::Answer;
using test::FakeScript;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;

/// Answers whose tokens are chosen here. Those of a runtime 1.1 cannot be.
class RkllmTokensTest : public test::EngineTest {
 protected:
  static constexpr const char* kLetters = "root ::= [a-z]{20}";

  RkllmTokensTest() {
    test::write_byte_vocabulary(folder_);
    std::ofstream(folder_ + "/model.rkllm") << "a model";
  }
  void make_with_words() {
    RkllmOptions with = words_options();
    make_ready(std::move(with));
  }
  [[nodiscard]] RkllmOptions words_options() const {
    RkllmOptions with = options();
    with.model_path = folder_ + "/model.rkllm";
#if SLUICE_WITH_LLAMA
    with.schema_grammar = grammar_of_schema;
#endif
    return with;
  }
  static GenerationRequest constrained(std::string grammar) {
    GenerationRequest out = prompt("Well?");
    out.grammar = std::move(grammar);
    return out;
  }
  static GenerationRequest with_schema(std::string schema) {
    GenerationRequest out = prompt("Well?");
    out.json_schema = std::move(schema);
    return out;
  }
  static GenerationRequest with_seed(std::uint32_t seed) {
    GenerationRequest out = constrained(kLetters);
    out.sampling.seed = seed;
    return out;
  }
  [[nodiscard]] static const AbiFacts& facts() { return facts_of(GetParam()); }
  /// Waits until the runtime has begun so many runs for logits: those of its test count.
  static void await_logit_run(const FakeScript& script, int number) {
    constexpr std::string_view kMark = "mode=2 ";
    for (int begun = 0; begun < number; std::this_thread::yield()) {
      const std::string log = script.log();
      begun = 0;
      for (std::size_t at = 0; (at = log.find(kMark, at)) != std::string::npos; ++at) ++begun;
    }
  }

  std::string folder_ = ::testing::TempDir() + "words";
};

TEST_P(RkllmTokensTest, AnAnswerFollowsItsGrammar) {
  const FakeScript script("words 300\nsay Runtime\n");
  make_with_words();
  if (!facts().has_logits) {
    EXPECT_THAT(refusal(constrained(kLetters)), HasSubstr("so it takes no grammar"));
    EXPECT_THAT(engine->info().checks_schema, HasSubstr("of the runtime gives no logits"));
    return;
  }
  EXPECT_EQ(engine->info().checks_schema, "");
  EXPECT_THAT(answer_to(constrained(R"(root ::= "yes" | "no")")), AnyOf("yes|stop", "no|stop"));
  EXPECT_THAT(script.log(), HasSubstr("mode=2 history=1"));
  const auto letters = answered(constrained(kLetters));
  EXPECT_THAT(letters->end(), ::testing::MatchesRegex("[a-z]*.stop"));
  EXPECT_EQ(letters->completion().usage.completion_tokens, 20U);
  EXPECT_EQ(letters->completion().usage.prompt_tokens, facts().has_figures ? 5U : 0U);
  EXPECT_EQ(letters->deltas(), 20);
  EXPECT_EQ(answer_to(), "Runtime|stop");
  EXPECT_THAT(answer_to(constrained("root ::= (")), HasSubstr("|error: grammar"));
}

TEST_P(RkllmTokensTest, TheSameSeedGivesTheSameAnswer) {
  const FakeScript script("words 257\n");
  make_with_words();
  if (!facts().has_logits) return;
  const std::string once = answer_to(with_seed(7));
  EXPECT_EQ(answer_to(with_seed(7)), once);
  EXPECT_NE(answer_to(with_seed(8)), once);
  GenerationRequest greedy = constrained(kLetters);
  greedy.sampling.temperature = 0;
  const std::string likeliest = answer_to(greedy);
  EXPECT_EQ(answer_to(greedy), likeliest);
  // Each token depends on those before it, so all were told to the model.
  EXPECT_NE(likeliest, std::string(20, likeliest.front()) + "|stop");
}

TEST_P(RkllmTokensTest, AllSamplingHoldsForASingleAnswer) {
  const FakeScript script("words 257\nprefer 72 105 256\n");
  make_with_words();
  GenerationRequest request = prompt("Well?");
  request.sampling = {.temperature = 0.5F, .min_p = 0.5F, .seed = 1};
  if (facts().has_logits) {
    EXPECT_EQ(answer_to(request), "Hi|stop") << "256 ends an answer";
  } else {
    EXPECT_THAT(refusal(request), HasSubstr("This runtime samples as it was set at its start"));
  }
  request.sampling.temperature = -1;
  EXPECT_THAT(refusal(request), HasSubstr("temperature must be from 0 to 100"));
}

TEST_P(RkllmTokensTest, TheModelMaySayWhatNoRequestMay) {
  const FakeScript script("words 257\nprefer 0 256\n");
  make_with_words();
  if (!facts().has_logits) return;
  GenerationRequest request = with_seed(1);
  request.grammar.clear();
  request.json_schema = R"({"enum":[]})";  // no grammar says that, so the answer is checked
  EXPECT_THAT(answer_to(request), HasSubstr("|error: The answer does not follow json_schema"));
}

TEST_P(RkllmTokensTest, CharactersThatTokensSplitAreJoined) {
  const FakeScript script("words 257\nprefer 226 130 172 226 130 172 256\n");
  make_with_words();
  if (!facts().has_logits) return;
  GenerationRequest request = constrained("root ::= [^a]*");
  request.sampling.temperature = 0;
  const auto answer = answered(std::move(request));
  EXPECT_EQ(answer->end(), "\u20AC\u20AC|stop");
  EXPECT_EQ(answer->deltas(), 2);
}

TEST_P(RkllmTokensTest, LimitsAndStopsEndAnAnswer) {
  const FakeScript script("words 257\nprefer 97 98 99 100 101\n");
  make_with_words();
  if (!facts().has_logits) return;
  GenerationRequest request = constrained(kLetters);
  request.sampling.temperature = 0;
  request.max_tokens = 2;
  EXPECT_EQ(answer_to(request), "ab|length");
  request.max_tokens = std::nullopt;
  request.stop = {"cd"};
  EXPECT_EQ(answer_to(request), "ab|stop");
  // Nothing ends this one but the context.
  GenerationRequest endless = constrained("root ::= [a-z] root");
  RkllmOptions small = words_options();
  small.context_tokens = 32;
  make_ready(std::move(small));
  const auto answer = answered(std::move(endless));
  EXPECT_EQ(answer->completion().reason, Completion::Reason::length);
  EXPECT_EQ(answer->completion().usage.completion_tokens, 32U);
}

#if SLUICE_WITH_LLAMA
TEST_P(RkllmTokensTest, AJsonSchemaIsFollowedTokenByToken) {
  const FakeScript script("words 257\nsay {\"n\": 2}\n");
  make_with_words();
  const auto answer =
      answered(with_schema(R"({"type":"object","properties":{"n":{"enum":[2,3]}},"required":["n"],)"
                           R"("additionalProperties":false})"));
  const bool is_told = script.log().contains("Answer with JSON that follows this JSON Schema");
  EXPECT_EQ(is_told, !facts().has_logits);
  if (facts().has_logits) {
    EXPECT_THAT(answer->end(),
                ::testing::MatchesRegex("\\{[ \t\n]*\"n\"[ \t\n]*:[ \t\n]*[23][ \t\n]*\\}.stop"));
    EXPECT_GT(answer->deltas(), 5);
    GenerationRequest raw = with_schema(R"({"const":1})");
    raw.is_raw = true;
    EXPECT_THAT(refusal(std::move(raw)), HasSubstr("template")) << "the runtime's own is on";
  } else {
    EXPECT_EQ(answer->end(), "{\"n\": 2}|stop");
    EXPECT_EQ(answer->deltas(), 1);
  }
}

TEST_P(RkllmTokensTest, ASchemaThatNoGrammarExpressesIsChecked) {
  const FakeScript script("words 257\nsay {\"n\": 2}\n");
  make_with_words();
  const auto answer = answered(with_schema(R"({"type":"object","not":{"required":["x"]}})"));
  EXPECT_EQ(answer->end(), "{\"n\": 2}|stop");
  EXPECT_EQ(answer->deltas(), 1);
  EXPECT_THAT(script.log(), HasSubstr("Answer with JSON that follows this JSON Schema"));
}
#endif

TEST_P(RkllmTokensTest, ARuntimeThatDoesNotBehaveSoChoosesItself) {
  if (!facts().has_logits) return;
  for (const auto& [words, why] : {
           std::pair{"257 none", "The runtime gives no logits"},
           std::pair{"257 nan", "logits that are no numbers"},
           std::pair{"257 constant", "does not go on from a token"},
           std::pair{"257 deaf", "does not go on from a token"},
           std::pair{"257 forgets", "does not go on from a token"},
           std::pair{"257 refuses", "rkllm_run() for logits returned -7"},
           std::pair{"257 error", "an error instead of logits"},
           std::pair{"256", "The model has 256 tokens, and the vocabulary in its tokenizer.json"},
       }) {
    const FakeScript script("words " + std::string(words) + "\nsay {\"n\": 2}\n");
    make_with_words();
    EXPECT_THAT(engine->info().checks_schema, HasSubstr(why)) << words;
    EXPECT_EQ(answer_to(), "{\"n\": 2}|stop") << words;
    EXPECT_EQ(answer_to(with_schema(R"({"type":"object"})")), "{\"n\": 2}|stop") << words;
    EXPECT_THAT(refusal(constrained(kLetters)), HasSubstr("so it takes no grammar")) << words;
    EXPECT_THAT(refusal(with_seed(1)), Not("")) << words;
    engine = nullptr;
  }
}

TEST_P(RkllmTokensTest, AVocabularyOfAnotherModelIsFoundOut) {
  if (!facts().has_logits) return;
  // Its tokens have no words, so what it says has other numbers than in the file.
  const FakeScript script("say A\nsay B\n");
  make_with_words();
  EXPECT_THAT(engine->info().checks_schema,
              HasSubstr("is another text than in its tokenizer.json"));
  EXPECT_EQ(answer_to(), "AB|stop");
}

TEST_P(RkllmTokensTest, ARuntimeThatDiesOfTheTestIsUsedWithoutIt) {
  if (!facts().has_logits) return;
  for (const char* fault : {"crash", "hang"}) {
    const FakeScript script("words 257 " + std::string(fault) + "\nsay Hi\n");
    RkllmOptions with = words_options();
    with.test_timeout = std::chrono::milliseconds(500);
    make_ready(std::move(with));
    EXPECT_THAT(engine->info().checks_schema, HasSubstr("has died of the test")) << fault;
    EXPECT_EQ(answer_to(), "Hi|stop") << fault;
    EXPECT_THAT(refusal(constrained(kLetters)), HasSubstr("so it takes no grammar")) << fault;
    engine = nullptr;
  }
}

TEST_P(RkllmTokensTest, AProcessMayDieInTheMiddle) {
  if (!facts().has_logits) return;
  const FakeScript script("words 257 crash 12\n");
  make_with_words();
  const std::string end = answer_to(constrained(kLetters));
  EXPECT_THAT(end, HasSubstr("|error: The process of the model has died"));
  EXPECT_GT(end.find('|'), 0U) << "it had said something";
  const auto ready = engine->wait_ready(std::chrono::seconds(20));
  ASSERT_TRUE(ready && *ready);
  GenerationRequest next = constrained(kLetters);
  next.max_tokens = 3;
  EXPECT_THAT(answer_to(std::move(next)), ::testing::MatchesRegex("[a-z][a-z][a-z].length"));
}

#if SLUICE_WITH_LLAMA
TEST_P(RkllmTokensTest, WhatWaitsIsCheckedIfTheNextProcessFailsTheTest) {
  if (!facts().has_logits) return;
  const FakeScript script("words 257 block 8\nabort hang\n");
  make_with_words();
  const auto held = std::make_shared<Answer>();
  const auto holder = ask(held, constrained("root ::= \"ab\" [a-z]{20}"));
  EXPECT_TRUE(held->says("ab"));
  await_logit_run(script, 8);
  const auto checked = std::make_shared<Answer>();
  const auto failed = std::make_shared<Answer>();
  const auto second = ask(checked, with_schema(R"({"type":"object"})"));
  const auto third = ask(failed, constrained(kLetters));
  script.change("words 257 none\nsay {\"n\": 2}\n");
  // Its runtime hangs in the abort, so its process is killed.
  holder->cancel();
  EXPECT_EQ(checked->end(), "{\"n\": 2}|stop");
  EXPECT_THAT(failed->end(),
              HasSubstr("|error: The process of the model has died, and in the next"));
}
#endif

TEST_P(RkllmTokensTest, AnAnswerThatFailsInTheMiddleSaysWhy) {
  if (!facts().has_logits) return;
  const FakeScript script("words 257 nan 12\nsay Hi\n");
  make_with_words();
  EXPECT_THAT(answer_to(constrained(kLetters)), HasSubstr("|error: The runtime gives logits that"));
  EXPECT_EQ(answer_to(), "Hi|stop");
}

TEST_P(RkllmTokensTest, AnAnswerCanBeCancelledInAStep) {
  if (!facts().has_logits) return;
  const FakeScript script("words 257 block 10\nsay Hi\n");
  RkllmOptions with = words_options();
  with.abort_timeout = std::chrono::minutes(10);  // so the process is not killed
  make_ready(std::move(with));
  const auto answer = std::make_shared<Answer>();
  GenerationRequest request = constrained("root ::= \"ab\" [a-z]{20}");
  const auto generation = ask(answer, std::move(request));
  EXPECT_TRUE(answer->says("ab"));
  await_logit_run(script, 10);
  generation->cancel();
  EXPECT_THAT(answer->end(), HasSubstr("|cancelled"));
  EXPECT_EQ(answer_to(), "Hi|stop");
  EXPECT_THAT(script.log(), Not(HasSubstr("destroy")));
}

INSTANTIATE_TEST_SUITE_P(Abis, RkllmTokensTest,
                         ::testing::Values(Abi::v1_1, Abi::v1_2_0, Abi::v1_2_1, Abi::v1_3_0));

}  // namespace
}  // namespace sluice::rkllm
