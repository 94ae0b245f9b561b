// What a model is given in place of text, and yields besides it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "core/text/base64.hpp"
#include "engine/rkllm/rkllm_engine_test_support.hpp"
#include "engine/rkllm/worker/worker_messages.hpp"
#include "rpc/error_codes.hpp"

namespace sluice::rkllm {
namespace {

using test::FakeScript;
using ::testing::HasSubstr;

std::string base64_of(const std::vector<float>& numbers) {
  std::string out;
  append_base64(out,
                {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(float)});
  return out;
}

class RkllmInputsTest : public test::EngineTest {
 protected:
  static GenerationRequest with(ModelInput input, Yield yields = Yield::text) {
    GenerationRequest out;
    out.input = std::make_shared<const ModelInput>(std::move(input));
    out.yields = yields;
    return out;
  }
  static GenerationRequest yielding(Yield yields) {
    GenerationRequest out = prompt("Hi");
    out.yields = yields;
    return out;
  }
  const AbiFacts& facts() const { return facts_of(GetParam()); }
};

TEST_P(RkllmInputsTest, TokensArriveAsTheyAre) {
  const FakeScript script("echo\nsay !\n");
  make();
  EXPECT_EQ(answer_to(with(TokenIds{7, 0, 2147483647})), "tokens 7 0 2147483647!|stop");
}

TEST_P(RkllmInputsTest, EmbeddingsArriveWithZerosBehindThem) {
  const FakeScript script("echo\n");
  make();
  EXPECT_EQ(answer_to(with(EmbedData{.embed = {1, 0.5F, -2, 3, 4, 1, 1, 1}, .n_tokens = 2})),
            "embed 2 sum 49|stop");
  // The runtime has four for each token, and reads them all.
  EXPECT_EQ(answer_to(with(EmbedData{.embed = {1, 2}, .n_tokens = 2})), "embed 2 sum 5|stop");
  EXPECT_EQ(answer_to(with(EmbedData{.embed = std::vector<float>(1024, 1), .n_tokens = 1024})),
            "embed 1024 sum 524800|stop")
      << "also on the next pages";
  std::vector<float> many(std::size_t{1} << 19U, 0);
  many.back() = 1;
  EXPECT_EQ(answer_to(with(EmbedData{.embed = std::move(many), .n_tokens = 128})),
            "embed 128 sum 0|stop");
}

TEST_P(RkllmInputsTest, ImagesArriveAsTheVersionHasThem) {
  const FakeScript script("echo\n");
  make();
  MultiModalData images{
      .prompt = "<image>What?", .image_embed = {1, 2, 3, 4, 5, 6, 7, 8}, .n_image_tokens = 2};
  switch (GetParam()) {
    case Abi::v1_1:
    case Abi::v1_2_0:
      EXPECT_EQ(answer_to(with(images)), "images \"<image>What?\" 2 sum 204|stop");
      images.image_width = 224;
      EXPECT_THAT(refusal(with(images)), HasSubstr("image_width and image_height need a runtime"));
      break;
    case Abi::v1_2_1:
      images.n_image_tokens = 1;
      images.n_image = 2;
      images.image_width = 224;
      images.image_height = 112;
      EXPECT_EQ(answer_to(with(images)), "images \"<image>What?\" 2x1 of 224x112 sum 204|stop");
      images.image_start = "<s>";
      EXPECT_THAT(refusal(with(images)), HasSubstr("need a runtime since 1.3.0, and this one"));
      break;
    case Abi::v1_3_0:
      images.image_width = 224;
      images.image_start = "<s>";
      images.image_content = "<c>";
      EXPECT_EQ(answer_to(with(images)),
                "images \"<image>What?\" 1x2 of 224x0 <s><c>- sum 204|stop");
  }
}

TEST_P(RkllmInputsTest, HiddenStatesOfWhatItIsGiven) {
  const FakeScript script("states\n");
  make();
  const auto of_prompt = answered(yielding(Yield::hidden_states));
  EXPECT_EQ(of_prompt->end(), "|stop");
  EXPECT_EQ(of_prompt->members(),
            R"("last_hidden_layer":{"hidden_states":")" +
                base64_of({72, 72.25F, 72.5F, 72.75F, 105, 105.25F, 105.5F, 105.75F}) +
                R"(","embd_size":4,"num_tokens":2})");
  EXPECT_EQ(of_prompt->completion().usage.completion_tokens, 0U);
  const auto of_tokens = answered(with(TokenIds{5}, Yield::hidden_states));
  EXPECT_THAT(of_tokens->members(), HasSubstr(base64_of({5, 5.25F, 5.5F, 5.75F})));
  const auto of_embeddings =
      answered(with(EmbedData{.embed = {1, 2, 3, 4}, .n_tokens = 1}, Yield::hidden_states));
  EXPECT_THAT(of_embeddings->members(), HasSubstr(base64_of({2, 4, 6, 8})));
}

TEST_P(RkllmInputsTest, LogitsWhereTheVersionHasThem) {
  const FakeScript script("logits 3\nlogits 3\n");
  make();
  if (!facts().has_logits) {
    EXPECT_THAT(refusal(yielding(Yield::logits)),
                HasSubstr("mode RKLLM_INFER_GET_LOGITS needs a runtime since 1.2.0"));
    return;
  }
  const auto answer = answered(yielding(Yield::logits));
  EXPECT_EQ(answer->end(), "|stop");
  EXPECT_EQ(answer->members(), R"("logits":{"logits":")" +
                                   base64_of({-0.0F, 10, -2, -0.0F, -1, 10}) +
                                   R"(","vocab_size":3,"num_tokens":2})");
  EXPECT_EQ(answer->deltas(), 1);
}

TEST_P(RkllmInputsTest, NumbersThatAreTooManyHarmNothingElse) {
  const std::size_t rows = kMaxYield / 16;
  const FakeScript script("states " + std::to_string(rows) + "\nturn\nstates " +
                          std::to_string(rows + 1) + "\nblock\nturn\nsay next\n");
  make();
  const auto most = answered(yielding(Yield::hidden_states));
  EXPECT_EQ(most->end(), "|stop");
  EXPECT_THAT(most->members(), HasSubstr("\"num_tokens\":" + std::to_string(rows)));
  const auto more = answered(yielding(Yield::hidden_states));
  EXPECT_THAT(more->end(), HasSubstr("|error: Hidden states and logits of an answer must be at "
                                     "most 16777216 bytes"));
  EXPECT_EQ(more->completion().error->code, kLimitReached);
  EXPECT_EQ(answer_to(), "next|stop");
}

TEST_P(RkllmInputsTest, ARuntimeThatGivesNoneIsAnError) {
  const FakeScript script("say a\n");
  make();
  EXPECT_THAT(answer_to(yielding(Yield::hidden_states)),
              HasSubstr("|error: The runtime has given no hidden states"));
}

TEST_P(RkllmInputsTest, NoPromptGoesOnFromWhatIsNoText) {
  const FakeScript script("say a\nstates\n");
  make();
  answered();
  answered(with(TokenIds{1, 2}));
  answered();
  answered(yielding(Yield::hidden_states));
  std::string calls;
  std::istringstream log(script.log());
  for (std::string line; std::getline(log, line);) {
    if (line.starts_with("run ")) calls += "run ";
    if (line.starts_with("clear_kv_cache")) calls += line + " ";
  }
  EXPECT_EQ(calls, facts().has_chat_template ? "run run clear_kv_cache 0 run run clear_kv_cache 0 "
                                             : "run run run run ");
}

TEST_P(RkllmInputsTest, WithoutAClearCacheThereIsNoAnswer) {
  if (!facts().has_chat_template) return;
  const FakeScript script("clear-cache -1\nsay a\n");
  make();
  EXPECT_EQ(answer_to(), "a|stop");
  EXPECT_EQ(answer_to(with(TokenIds{1})), "a|stop");
  EXPECT_THAT(answer_to(), HasSubstr("|error: The runtime does not clear its cache"));
}

TEST_P(RkllmInputsTest, ProcessesThatDieOfAnInputAreReplaced) {
  const FakeScript script("crash\n");
  make();
  EXPECT_THAT(answer_to(with(EmbedData{.embed = {1}, .n_tokens = 1}, Yield::hidden_states)),
              HasSubstr("|error: The process of the model has died"));
}

TEST_P(RkllmInputsTest, RefusesWhatDoesNotGoTogether) {
  RkllmOptions small = options();
  small.context_tokens = 4;
  make_ready(std::move(small));
  EXPECT_THAT(refusal(with(TokenIds{1, 2, 3, 4})), HasSubstr("n_tokens must be less than 4"));
  GenerationRequest both = with(TokenIds{1});
  both.prompt = "a";
  EXPECT_THAT(refusal(std::move(both)), HasSubstr("give either"));
  GenerationRequest checked = with(TokenIds{1});
  checked.json_schema = "{}";
  EXPECT_THAT(refusal(std::move(checked)), HasSubstr("leave them out with another input_type"));
  checked = yielding(Yield::hidden_states);
  checked.json_schema = "{}";
  EXPECT_THAT(refusal(std::move(checked)), HasSubstr("leave them out with another input_type"));
}

TEST_P(RkllmInputsTest, TimesAreThoseOfTheRuntime) {
  const FakeScript script("repeat 3 say a\n");
  make();
  const auto answer = answered();
  const Timings& timings = answer->completion().timings;
  const bool is_told = timings.prefill == std::chrono::milliseconds(10) &&
                       timings.decode == std::chrono::milliseconds(6);
  if (facts().has_figures) EXPECT_TRUE(is_told) << timings.prefill.count();
}

INSTANTIATE_TEST_SUITE_P(Abis, RkllmInputsTest,
                         ::testing::Values(Abi::v1_1, Abi::v1_2_0, Abi::v1_2_1, Abi::v1_3_0));

}  // namespace
}  // namespace sluice::rkllm
