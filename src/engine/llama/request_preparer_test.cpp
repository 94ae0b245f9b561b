#include "engine/llama/request_preparer.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <utility>

#include "engine/llama/llama_model.hpp"
#include "engine/llama/model/model_test_support.hpp"

namespace sluice {
namespace {

constexpr std::string_view kOfModel =
    "{%- for m in messages -%}<|im_start|>{{ m.content }}<|im_end|>{%- endfor -%}";

class RequestPreparerTest : public ::testing::Test {
 protected:
  RequestPreparerTest() {
    test::write(file_, test::ZeroModel{.chat_template = std::string(kOfModel),
                                       .control_tokens = {"<|im_start|>", "<|im_end|>"}}
                           .build());
    LlamaOptions options;
    options.model_path = file_.path();
    options.backend = "cpu";
    auto loaded = load_model(options, [](float) { return true; });
    EXPECT_TRUE(loaded) << loaded.error().message;
    model_ = std::move(*loaded);
  }
  std::vector<llama_token> tokens_of(std::string prompt, bool is_raw,
                                     const ChatTemplateText& own = {}) {
    const RequestPreparer preparer(model_.model.get(), 512, own);
    GenerationRequest request;
    request.prompt = std::move(prompt);
    request.is_raw = is_raw;
    EXPECT_TRUE(preparer.check(request));
    auto prepared = preparer.prepare(std::move(request));
    EXPECT_TRUE(prepared) << prepared.error().message;
    return prepared ? prepared->tokens : std::vector<llama_token>();
  }

  const test::TemporaryFile file_{"preparer.gguf"};
  LoadedModel model_;
};

TEST_F(RequestPreparerTest, ARawPromptIsAllThatTheModelSees) {
  const auto rendered = tokens_of("Hi", false);
  EXPECT_EQ(tokens_of("<|im_start|>Hi<|im_end|>", true), rendered);
  EXPECT_NE(tokens_of("<|im_start|>Hi<|im_end|>", false), rendered);
  EXPECT_NE(tokens_of("Hi", true), rendered);
  // It begins as the model's sequences do only once.
  EXPECT_EQ(tokens_of("<s><|im_start|>Hi<|im_end|>", true), rendered);
}

TEST_F(RequestPreparerTest, ARawRequestHasAPromptAlone) {
  const RequestPreparer preparer(model_.model.get(), 512);
  GenerationRequest request;
  request.is_raw = true;
  request.messages = {{.role = "user", .content = "Hi"}};
  EXPECT_FALSE(preparer.check(request));
  request.messages.clear();
  request.prompt = "Hi";
  EXPECT_TRUE(preparer.check(request));
  request.tools = "[]";
  EXPECT_FALSE(preparer.check(request));
}

TEST_F(RequestPreparerTest, AnotherTemplateMayTakeThePlaceOfTheModels) {
  const ChatTemplateText own{
      .text = "{%- for m in messages -%}<|im_end|>{{ m.content }}{%- endfor -%}"};
  EXPECT_EQ(tokens_of("Hi", false, own), tokens_of("<|im_end|>Hi", true));
  EXPECT_ANY_THROW(RequestPreparer(model_.model.get(), 512, {.text = "{% nonsense"}));
}

}  // namespace
}  // namespace sluice
