#include "engine/grammar/grammar.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <memory>
#include <string>

namespace sluice {
namespace {

using testing::HasSubstr;

constexpr std::string_view kGood[] = {
    "root ::= \"x\"",
    "root ::=",
    "# a comment\nroot ::= word (\" \" word)* \".\" # another\n\nword ::= [a-zA-Z]+\n",
    "root ::= \"\\x41\\u00e4\\U0001F600\\t\\r\\n\\\\\\\"\" [^\\]\\-a-z-] .",
    "root ::= ( \"a\" |\n  \"b\" | (\"c\"\n)? )\r\n",
    "root ::= a{3} a{2,} a{0,5} a{ 1 , 2 }\na ::= \"ä😀\"",
    "root ::= \"x\"{0} [0-9]{2000} .{0,100000}",
    "root ::= (\"a\" \"b\"){1000}",
    "root ::= (\"a\"{100}){100}",
    "root ::= (\"a\"{0,100}){100}",
    "root ::= ([ \\t]*)*",
    "root ::= [\\uD700-\\uE0FF] [\\uDFFF-\\uE000] [^\\uD800-\\uDFFF] []",
    "root-1 ::= root\nroot ::= \"\"",
    "root ::= item | root-2\nitem ::= \"- \" [^\\n]+ \"\\n\"\nroot-2 ::= \"2\"",
};

constexpr std::string_view kBad[] = {
    "root",
    "root ::= \"x",
    "root ::= [a-",
    "root ::= [a",
    "root ::= (\"a\"",
    "root ::= \"a\")",
    "root ::= \"\\q\"",
    "root ::= \"\\x4\"",
    "root ::= \"\\",
    "root ::= *",
    "root ::= \"\"*",
    "root ::= \"a\"{",
    "root ::= \"a\"{}",
    "root ::= \"a\"{,3}",
    "root ::= \"a\"{1,2",
    "root ::= \"a\"{3,1}",
    "root ::= \"a\"{99999999999999999999}",
    "root ::= \"a\"{2001}",
    "root ::= \"a\"{0}*",
    "root ::= missing",
    "start ::= \"x\"",
    "root ::= \"a\" ; \"b\"",
    "::= \"x\"",
    "root ::= <think>",
    "root ::= !<[5]>",
    "root ::= root \"x\"",
    "root ::= empty root \"x\" | \"y\"\nempty ::= also\nalso ::= \"\"",
    "root ::= a \"1\"\na ::= b \"2\"\nb ::= a \"3\" | \"4\"",
    "root ::= \"\\U00110000\"",
    "root ::= \"\\uD83D\\uDE00\"",
    "root ::= [\\uD800-\\uDFFF]",
    "root ::= [^\\x00-\\uD7FF\\uE000-\\U0010FFFF]",
    "root ::= \"a\" | [z-a]",
};

TEST(GrammarTest, AcceptsGbnf) {
  for (const std::string_view grammar : kGood) {
    const auto checked = Grammar::parse(grammar);
    EXPECT_TRUE(checked) << grammar << '\n' << checked.error().message;
  }
}

TEST(GrammarTest, RefusesWhatIsNot) {
  for (const std::string_view grammar : kBad) {
    const auto checked = Grammar::parse(grammar);
    ASSERT_FALSE(checked) << grammar;
    EXPECT_EQ(checked.error().code, -32602);
  }
  EXPECT_FALSE(Grammar::parse(std::string_view("root ::= \"\0\"", 12)));
  EXPECT_FALSE(Grammar::parse("root ::= \"\xFF\""));
}

TEST(GrammarTest, NamesTheLine) {
  EXPECT_THAT(Grammar::parse("root ::= a\n\na ::= ;\n").error().message, HasSubstr("line 3"));
  EXPECT_THAT(Grammar::parse("root ::= a\nb ::= (\n").error().message,
              HasSubstr("a \")\" is missing"));
}

TEST(GrammarTest, BoundsDepthAndSize) {
  const auto nested = [](std::size_t depth) {
    return "root ::= " + std::string(depth, '(') + "\"x\"" + std::string(depth, ')');
  };
  EXPECT_TRUE(Grammar::parse(nested(64)));
  EXPECT_THAT(Grammar::parse(nested(65)).error().message, HasSubstr("deeply"));
  EXPECT_FALSE(Grammar::parse(nested(100'000)));
  // Sixty thousand characters repeated two thousand times are 120 million elements.
  EXPECT_THAT(Grammar::parse("root ::= \"" + std::string(60'000, 'x') + "\"{2000}").error().message,
              HasSubstr("too large"));
}

/// llama.cpp's own check or its matcher would practically never finish with these.
TEST(GrammarTest, IsReadInTimeInProportionToItsText) {
  std::string doubled = "root ::= r0\n";
  for (int i = 0; i < 60; ++i) {
    const std::string next = "r" + std::to_string(i + 1);
    doubled += "r" + std::to_string(i) + " ::= " + next + " | " + next + "\n";
  }
  EXPECT_TRUE(Grammar::parse(doubled + "r60 ::= \"x\""));
  EXPECT_THAT(Grammar::parse(doubled + "r60 ::= r0 \"x\"").error().message,
              HasSubstr("left-recursive"));
  std::string chain = "root ::= r0\n";
  for (int i = 0; i < 5000; ++i) {
    chain += "r" + std::to_string(i) + " ::= r" + std::to_string(i + 1) + "\n";
  }
  EXPECT_TRUE(Grammar::parse(chain + "r5000 ::= \"x\""));
}

}  // namespace
}  // namespace sluice
