#include "engine/grammar/vocabulary_file.hpp"

#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <string_view>

namespace sluice {
namespace {

using ::testing::HasSubstr;

class VocabularyFileTest : public testing::Test {
 protected:
  VocabularyFileTest() {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  void write(const std::string& name, std::string_view text) const {
    std::ofstream(folder_ + "/" + name) << text;
  }
  /// "number=bytes", with "!" behind a control token, and "." behind one that ends an answer.
  [[nodiscard]] std::string tokens() const {
    const auto read = read_vocabulary(folder_);
    if (!read) return std::to_string(read.error().code) + ": " + read.error().message;
    std::string out;
    for (const TokenPieces::Entry& each : *read) {
      out += (out.empty() ? "" : " ") + std::to_string(each.token) + "=" + each.bytes +
             (each.control ? "!" : "") + (each.ends ? "." : "");
    }
    return out;
  }

  std::string folder_ = ::testing::TempDir() + "vocabulary";
};

TEST_F(VocabularyFileTest, BytesHaveLetters) {
  write("tokenizer.json",
        R"({"added_tokens":[{"id":5,"content":"<|im_end|>","special":true},)"
        R"({"id":4,"content":"<tool \u20ac>"}],)"
        R"("decoder":{"type":"ByteLevel"},)"
        R"("model":{"vocab":{"Hi":0,"\u0120a\u010a":1,"\u00e2\u0124\u00ac":2,"\u4e00":3,)"
        R"("<|im_end|>":5}}})");
  write("tokenizer_config.json", R"({"eos_token":{"content":"<|im_end|>"}})");
  EXPECT_EQ(tokens(), "0=Hi 1= a\n 2=\u20AC 3= 4=<tool \u20AC> 5=<|im_end|>!.");
}

TEST_F(VocabularyFileTest, SentencePiecesHaveBlanksAndBytes) {
  write("tokenizer.json",
        R"({"added_tokens":[{"id":0,"content":"</s>","special":true}],)"
        R"("decoder":{"type":"Sequence","decoders":[{"type":"Replace"},{"type":"ByteFallback"}]},)"
        R"("model":{"vocab":{"</s>":0,"\u2581to\u2581be":1,"<0x41>":2,"<0xGG>":3,"\u20ac":4}}})");
  write("generation_config.json", R"({"eos_token_id":[7,0]})");
  EXPECT_EQ(tokens(), "0=</s>!. 1= to be 2=A 3=<0xGG> 4=\u20AC");
  write("generation_config.json", R"({"eos_token_id":4})");
  EXPECT_THAT(tokens(), HasSubstr("0=</s>! "));
  EXPECT_THAT(tokens(), HasSubstr("4=\u20AC."));
}

TEST_F(VocabularyFileTest, WhatIsNoVocabularyIsAnError) {
  EXPECT_EQ(tokens(), "404: There is no " + folder_ + "/tokenizer.json");
  write("generation_config.json", R"({"eos_token_id":0})");
  for (const auto& [text, why] : {
           std::pair{"{", "is no JSON: "},
           std::pair{"[]", "is no JSON object"},
           std::pair{"{}", "has a decoder that is neither of bytes nor"},
           std::pair{R"({"decoder":{"type":"WordPiece"},"model":{"vocab":{}}})",
                     "has a decoder that is neither of bytes nor"},
           std::pair{R"({"decoder":{"type":"ByteLevel"},"model":{"vocab":[["a",0]]}})",
                     "has no object `vocab` in its `model`"},
           std::pair{R"({"decoder":{"type":"ByteLevel"},"model":{"vocab":{"a":-1}}})",
                     "has a token without a number"},
           std::pair{R"({"decoder":{"type":"ByteLevel"},"model":{"vocab":{"a":1000000}}})",
                     "has a token without a number"},
           std::pair{R"({"decoder":{"type":"ByteLevel"},"model":{"vocab":{"a":1,"b":1}}})",
                     "has several tokens with the number 1"},
           std::pair{R"({"decoder":{"type":"ByteLevel"},"model":{"vocab":{}},"added_tokens":[7]})",
                     "has a token without a number in `added_tokens`"},
           std::pair{R"({"decoder":{"type":"ByteLevel"},"model":{"vocab":{"a":1}}})",
                     "has no token that ends an answer"},
       }) {
    write("tokenizer.json", text);
    EXPECT_THAT(tokens(), HasSubstr("422: " + folder_ + "/tokenizer.json " + why)) << text;
  }
  write("generation_config.json", "{");
  EXPECT_THAT(tokens(), HasSubstr("422: " + folder_ + "/generation_config.json is no JSON"));
}

}  // namespace
}  // namespace sluice
