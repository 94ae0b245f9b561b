#include "engine/chat/tokenizer_files.hpp"

#include <filesystem>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <string_view>

#include "core/file_test_support.hpp"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// The folder of a model.
class TokenizerFiles : public ::testing::Test {
 protected:
  void write(std::string_view name, std::string_view content) const {
    std::ofstream(folder.path(name), std::ios::binary) << content;
  }
  [[nodiscard]] Result<ChatTemplateText> find(const std::string& path = "") const {
    return find_chat_template(folder.path("m.rkllm"), path);
  }
  /// "code: message", without the name of the folder.
  [[nodiscard]] std::string why(const std::string& path = "") const {
    const auto found = find(path);
    if (found) return "there is one";
    std::string message = found.error().message;
    if (const auto at = message.find(folder.path() + "/"); at != std::string::npos) {
      message.erase(at, folder.path().size() + 1);
    }
    return std::to_string(found.error().code) + ": " + message;
  }

  test::TemporaryDirectory folder;
};

TEST_F(TokenizerFiles, HaveATemplateAndItsTokens) {
  EXPECT_EQ(find()->text, "");
  write("tokenizer_config.json", R"({
    "chat_template": "T", "bos_token": {"content": "<s>", "lstrip": false}, "eos_token": "<|end|>",
    "additional_special_tokens": ["<|user|>", {"content": "<|tool|>"}],
    "added_tokens_decoder": {"7": {"content": "<|end|>", "special": true},
                             "8": {"content": "<think>", "special": false},
                             "9": {"content": "<plain>"}}})");
  const auto found = find();
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->text, "T");
  EXPECT_EQ(found->path, folder.path("tokenizer_config.json"));
  EXPECT_EQ(found->bos, "<s>");
  EXPECT_EQ(found->eos, "<|end|>");
  EXPECT_THAT(found->special_tokens,
              ElementsAre("<s>", "<|end|>", "<|user|>", "<|tool|>", "<|end|>"));
  EXPECT_THAT(found->added_tokens, ElementsAre("<think>", "<plain>"));
}

TEST_F(TokenizerFiles, TemplatesMayHaveNames) {
  write("tokenizer_config.json", R"({"bos_token": null, "chat_template": [
    {"name": "rag", "template": "R"}, {"name": "tool_use", "template": "U"},
    {"name": "default", "template": "D"}]})");
  EXPECT_EQ(find()->text, "D");
  EXPECT_EQ(find()->tool_text, "U");
}

TEST_F(TokenizerFiles, ATemplateInJinjaGoesFirst) {
  write("tokenizer_config.json", R"({"chat_template": "T", "bos_token": "<s>"})");
  write("chat_template.jinja", "J");
  EXPECT_EQ(find()->text, "J");
  EXPECT_EQ(find()->bos, "<s>");
  write("own.jinja", "O");
  EXPECT_EQ(find(folder.path("own.jinja"))->text, "O");
  EXPECT_EQ(find(folder.path("own.jinja"))->bos, "<s>");
  write("own.json", R"({"chat_template": "C", "bos_token": "<b>"})");
  EXPECT_EQ(find(folder.path("own.json"))->text, "C");
  EXPECT_EQ(find(folder.path("own.json"))->bos, "<b>");
}

TEST_F(TokenizerFiles, ThatHaveNoTemplateAreNoError) {
  write("tokenizer_config.json", R"({"bos_token": "<s>", "chat_template": null})");
  EXPECT_EQ(find()->text, "");
  write("own.json", R"({"bos_token": "<s>"})");
  EXPECT_EQ(why(folder.path("own.json")), "422: own.json has no chat_template");
}

TEST_F(TokenizerFiles, WhatIsWrongIsSaid) {
  for (const auto& [content, reason] : {
           std::pair{"{", "is no JSON: "},
           std::pair{"[]", "is no JSON object"},
           std::pair{R"({"chat_template": 7})", "neither a text nor a list"},
           std::pair{R"({"chat_template": [{"name": "default"}]})", "without a name or a text"},
           std::pair{R"({"chat_template": [7]})", "without a name or a text"},
           std::pair{R"({"chat_template": []})", "no chat_template with the name \"default\""},
           std::pair{R"({"added_tokens_decoder": []})", "added_tokens_decoder that is no object"},
           std::pair{R"({"added_tokens_decoder": {"1": 2}})", "without its content"},
           std::pair{"\xFF", "is no text in UTF-8"},
       }) {
    write("tokenizer_config.json", content);
    EXPECT_THAT(why(), HasSubstr("422: tokenizer_config.json ")) << content;
    EXPECT_THAT(why(), HasSubstr(reason)) << content;
  }
  write("tokenizer_config.json", std::string(1000, '['));
  EXPECT_THAT(why(), HasSubstr("422: tokenizer_config.json is no JSON: "));
  std::filesystem::remove(folder.path("tokenizer_config.json"));
  EXPECT_EQ(why(folder.path("none.jinja")), "404: There is no none.jinja");
  EXPECT_EQ(why(folder.path()), "422: " + folder.path() + " is no file");
  std::filesystem::create_directory(folder.path("tokenizer_config.json"));
  EXPECT_EQ(why(), "422: tokenizer_config.json is no file");
  write("empty.jinja", "");
  std::filesystem::remove(folder.path("tokenizer_config.json"));
  EXPECT_EQ(why(folder.path("empty.jinja")), "422: empty.jinja is empty");
}

TEST_F(TokenizerFiles, AreNotReadIfTheyAreHuge) {
  write("tokenizer_config.json", std::string(kMaxTokenizerFile + 1, ' '));
  EXPECT_EQ(why(), "413: tokenizer_config.json is longer than 16 MiB");
  write("tokenizer_config.json",
        R"({"chat_template": ")" + std::string(kMaxChatTemplate + 1, 'a') + "\"}");
  EXPECT_THAT(why(), HasSubstr("413: tokenizer_config.json has a chat_template that is longer"));
  write("chat_template.jinja", std::string(kMaxChatTemplate + 1, 'a'));
  write("tokenizer_config.json", "{}");
  EXPECT_EQ(why(), "413: chat_template.jinja is longer than 1 MiB");
}

}  // namespace
}  // namespace sluice
