#include "engine/llama/grammar_check.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <llama.h>
#include <string>

#include "engine/llama/llama_log.hpp"

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
    "root ::= (\"a\"{0,100}){100}",
    "root ::= \"a\"{0}*",
    "root ::= missing",
    "start ::= \"x\"",
    "root ::= \"a\" ; \"b\"",
    "::= \"x\"",
    "root ::= <think>",
    "root ::= !<[5]>",
};

TEST(CheckGrammar, AcceptsGbnf) {
  for (const std::string_view grammar : kGood) {
    const auto checked = check_grammar(grammar);
    EXPECT_TRUE(checked) << grammar << '\n' << checked.error().message;
  }
}

TEST(CheckGrammar, RefusesWhatIsNot) {
  for (const std::string_view grammar : kBad) {
    const auto checked = check_grammar(grammar);
    ASSERT_FALSE(checked) << grammar;
    EXPECT_EQ(checked.error().code, -32602);
  }
  EXPECT_FALSE(check_grammar(std::string_view("root ::= \"\0\"", 12)));
  EXPECT_FALSE(check_grammar("root ::= \"\xFF\""));
}

/// llama.cpp without a vocabulary: whatever passes here, it must take.
TEST(CheckGrammar, LlamaTakesWhatPasses) {
  initialize_llama();
  for (const std::string_view grammar : kGood) {
    llama_sampler* const sampler =
        llama_sampler_init_grammar(nullptr, std::string(grammar).c_str(), "root");
    EXPECT_NE(sampler, nullptr) << grammar;
    llama_sampler_free(sampler);
  }
}

TEST(CheckGrammar, NamesTheLine) {
  EXPECT_THAT(check_grammar("root ::= a\n\na ::= ;\n").error().message, HasSubstr("line 3"));
  EXPECT_THAT(check_grammar("root ::= a\nb ::= (\n").error().message,
              HasSubstr("a \")\" is missing"));
}

TEST(CheckGrammar, BoundsDepthAndSize) {
  const auto nested = [](std::size_t depth) {
    return "root ::= " + std::string(depth, '(') + "\"x\"" + std::string(depth, ')');
  };
  EXPECT_TRUE(check_grammar(nested(64)));
  EXPECT_THAT(check_grammar(nested(65)).error().message, HasSubstr("deeply"));
  EXPECT_FALSE(check_grammar(nested(100'000)));
  // Sixty thousand characters two thousand times are a hundred million elements.
  EXPECT_THAT(check_grammar("root ::= \"" + std::string(60'000, 'x') + "\"{2000}").error().message,
              HasSubstr("too large"));
}

}  // namespace
}  // namespace sluice
