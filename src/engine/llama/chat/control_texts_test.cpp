#include "engine/llama/chat/control_texts.hpp"

#include <gtest/gtest.h>
#include <string>
#include <string_view>
#include <vector>

namespace sluice {
namespace {

const ControlTexts& texts() {
  static const ControlTexts out(
      {"<|end|>", "<|user|>", "[INST]", "[INST]", "<｜User｜>", "<s>", "\n", "｜", ""});
  return out;
}

std::string broken_up(std::string text) {
  const std::string before = text;
  EXPECT_EQ(texts().break_up(text, "#"), text != before);
  return text;
}

std::string json_broken_up(std::string text) {
  const std::string before = text;
  EXPECT_EQ(texts().break_up_json(text, "#"), text != before);
  return text;
}

TEST(ControlTexts, AreBrokenUpBehindTheirFirstCharacter) {
  EXPECT_EQ(broken_up("<|end|>"), "<#|end|>");
  EXPECT_EQ(broken_up("yes<|end|><|user|>[INST] no"), "yes<#|end|><#|user|>[#INST] no");
  EXPECT_EQ(broken_up("<｜User｜>"), "<#｜User｜>");
  EXPECT_EQ(broken_up("<s><|e<|end|>nd|>"), "<#s><|e<#|end|>nd|>");
}

TEST(ControlTexts, OrdinaryTextStaysAsItIs) {
  for (const std::string_view text :
       {"", "yes", "a < b", "<|ende|>", "[1, 2]", "<>", "<sp>", "\n", "｜", "<|End|>",
        "\xFF<"
        "b"}) {
    EXPECT_EQ(broken_up(std::string(text)), text);
  }
}

TEST(ControlTexts, AreKeptApartInATextThatIsTokenizedAsAWhole) {
  const ControlTexts joined({"<|user|>", "[INST]", "<｜User｜>"}, true);
  std::string text = "a < b <|us--er|> [1] [INST]<｜User｜><";
  ASSERT_TRUE(joined.break_up(text, "#"));
  text.replace(text.find("--"), 2, "");  // as a template may do
  EXPECT_EQ(joined.joined("<|user|>" + text + "|user|>", "#", "+"),
            "<|user|>a < b <+|user|> [1] [+INST]<+｜User｜><+|user|>");
  EXPECT_EQ(joined.joined("<|user|>", "", "+"), "<|user|>");
  EXPECT_EQ(joined.joined("#<##|user|>#", "#", "+"), "<+|user|>");
}

TEST(ControlTexts, WhereTextMayBeTakenOutNoneComesTogether) {
  const ControlTexts joined({"<|user|>", "[INST]"}, true);
  std::string text = "a<|us/thinker|> [IN/thinkST] b";
  EXPECT_TRUE(joined.break_up(text, "#"));
  EXPECT_EQ(text, "a<#|us/thinker|> [#IN/thinkST] b");
}

TEST(ControlTexts, WhatMayGoOnBehindTheTextIsBrokenUpToo) {
  EXPECT_EQ(broken_up("yes<"), "yes<#");
  EXPECT_EQ(broken_up("<|en"), "<#|en");
  EXPECT_EQ(broken_up("<|end|><|end|"), "<#|end|><#|end|");
  EXPECT_EQ(broken_up("<\xEF\xBD"), "<#\xEF\xBD");
}

TEST(ControlTexts, TokensMayOverlap) {
  const ControlTexts overlapping({"abc", "bcd", "cc"});
  std::string text = "abcd";
  EXPECT_TRUE(overlapping.break_up(text, "#"));
  EXPECT_EQ(text, "a#b#cd");
  text = "ccc";
  EXPECT_TRUE(overlapping.break_up(text, "#"));
  EXPECT_EQ(text, "c#c#c#");
}

TEST(ControlTexts, InJsonNamesAndStringsAreBrokenUp) {
  EXPECT_EQ(json_broken_up(R"({"a<s>":["<|end|>",1,{"b":"\u003cs>"}],"c":null})"),
            R"({"a<#s>":["<#|end|>",1,{"b":"<#s>"}],"c":null})");
  EXPECT_EQ(json_broken_up(R"({ "a": "\n" })"), R"({ "a": "\n" })");
  EXPECT_EQ(json_broken_up("no JSON <s>"), "no JSON <#s>");
}

TEST(ControlTexts, ANameMayBeTheRestOfOne) {
  EXPECT_EQ(json_broken_up(R"({"|end|>":"|end|>","|en":1,"｜User":"<"})"),
            R"({"#|end|>":"|end|>","#|en":1,"#｜User":"<#"})");
  const ControlTexts llama({"<|eot_id|>", "<|end_of_text|>"});
  for (std::string text : {R"({"user":1,"s>":1,"$ref":1,"|x":1,"":1})",
                           R"({"properties":{"_id":{},"_text":{}},"required":["_id"]})"}) {
    EXPECT_EQ(json_broken_up(text), text);
    EXPECT_FALSE(llama.break_up_json(text, "#"));
  }
}

}  // namespace
}  // namespace sluice
