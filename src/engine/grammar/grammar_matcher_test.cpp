#include "engine/grammar/grammar_matcher.hpp"

#include <gtest/gtest.h>
#include <string>
#include <string_view>

namespace sluice {
namespace {

constexpr std::string_view kJson = R"(
root ::= value
value ::= object | array | string | number | "true" | "false" | "null"
object ::= "{" space (string ":" space value ("," space string ":" space value)*)? "}" space
array ::= "[" space (value ("," space value)*)? "]" space
string ::= "\"" ([^"\\\x00-\x1F] | "\\" ["\\/bfnrt])* "\"" space
number ::= "-"? [0-9]+ ("." [0-9]+)? space
space ::= | " " space
)";

GrammarMatcher matcher(std::string_view text, const MatcherLimits& limits = {}) {
  auto grammar = Grammar::parse(text);
  EXPECT_TRUE(grammar) << grammar.error().message;
  return GrammarMatcher(std::make_shared<const Grammar>(std::move(*grammar)), limits);
}

/// The state after `text` (ASCII); kNowhere if it does not match.
GrammarMatcher::State follow(GrammarMatcher& matcher, std::string_view text) {
  auto state = matcher.start();
  for (const char c : text)
    state = matcher.next(matcher.begin_token(state), static_cast<unsigned char>(c));
  return state;
}

bool accepts(std::string_view grammar, std::string_view text, const MatcherLimits& limits = {}) {
  GrammarMatcher m = matcher(grammar, limits);
  const bool accepted = m.may_end(follow(m, text));
  EXPECT_FALSE(m.exhausted());
  return accepted;
}

TEST(GrammarMatcher, FollowsJson) {
  for (const std::size_t kept : {std::size_t{0}, std::size_t{50'000}}) {
    const MatcherLimits limits{.kept = kept};
    for (const std::string_view good :
         {"1", "true", R"({"a": [1, -2.5, {"b": "x\"y"}], "c": null})", "[[[[[[]]]]]] ", "[ ]",
          "\"\""}) {
      EXPECT_TRUE(accepts(kJson, good, limits)) << good;
    }
    for (const std::string_view bad : {"", "01x", "[1,]", "{\"a\"}", "tru", "[[]", "1 1"}) {
      EXPECT_FALSE(accepts(kJson, bad, limits)) << bad;
    }
  }
}

TEST(GrammarMatcher, KnowsWhatMayFollow) {
  GrammarMatcher m = matcher("root ::= [a-c] (\"x\" | \"\xC3\xA4\")?");
  EXPECT_FALSE(m.may_end(m.start()));
  EXPECT_TRUE(m.may_follow(m.start(), 'c', 'z'));
  EXPECT_FALSE(m.may_follow(m.start(), 'd', 'z'));
  const auto state = m.next(m.start(), 'b');
  EXPECT_TRUE(m.may_end(state));
  EXPECT_TRUE(m.may_follow(state, 0x80, 0x7FF));
  EXPECT_NE(m.next(state, 0xE4), GrammarMatcher::kNowhere);
  EXPECT_EQ(m.next(state, 'b'), GrammarMatcher::kNowhere);
  EXPECT_EQ(m.next(GrammarMatcher::kNowhere, 'b'), GrammarMatcher::kNowhere);
}

TEST(GrammarMatcher, NoHalfOfASurrogatePairMayFollow) {
  for (const std::string_view grammar :
       {"root ::= .", "root ::= [^a]", "root ::= [\\uD000-\\uE000]"}) {
    GrammarMatcher m = matcher(grammar);
    EXPECT_FALSE(m.may_follow(m.start(), 0xD800, 0xD83F)) << grammar;
    EXPECT_FALSE(m.may_follow(m.start(), 0xD800, 0xDFFF)) << grammar;
    EXPECT_TRUE(m.may_follow(m.start(), 0xD000, 0xDFFF)) << grammar;
    EXPECT_TRUE(m.may_follow(m.start(), 0xDFFF, 0xE000)) << grammar;
  }
}

TEST(GrammarMatcher, CountsRepetitions) {
  constexpr std::string_view kCounted = "root ::= (\"ab\"){2,4} \"c\"{0} [0-9]{3}";
  EXPECT_TRUE(accepts(kCounted, "abab123"));
  EXPECT_TRUE(accepts(kCounted, "abababab123"));
  EXPECT_FALSE(accepts(kCounted, "ab123"));
  EXPECT_FALSE(accepts(kCounted, "ababababab123"));
  EXPECT_FALSE(accepts(kCounted, "abab12"));
  EXPECT_FALSE(accepts(kCounted, "ababc123"));
}

TEST(GrammarMatcher, WhatBeginsWithItselfAndEndsThereIsHarmless) {
  EXPECT_TRUE(accepts("root ::= ([ab]*)* \".\"", "abba."));
  EXPECT_TRUE(accepts("root ::= ([ab]*)* \".\"", "."));
  GrammarMatcher nothing = matcher("root ::= a\na ::= root");
  EXPECT_EQ(nothing.start(), GrammarMatcher::kNowhere);
}

/// A thousand optional parts in a row: after each character there are a thousand possible places.
TEST(GrammarMatcher, OptionalPartsInARowAreNoTrouble) {
  std::string text = "root ::= ";
  for (int i = 0; i < 1000; ++i) text += "[a-z]? ";
  EXPECT_TRUE(accepts(text, std::string(1000, 'a')));
  EXPECT_FALSE(accepts(text, std::string(1001, 'a')));
}

/// Each character doubles the ways to read this text.
TEST(GrammarMatcher, GivesUpOnWhatIsTooAmbiguous) {
  constexpr std::string_view kDoubling = "root ::= \"a\" root \"b\" | \"a\" root \"c\" | \"\"";
  EXPECT_TRUE(accepts(kDoubling, "aaaabcbc"));
  GrammarMatcher m = matcher(kDoubling);
  EXPECT_EQ(follow(m, std::string(100, 'a')), GrammarMatcher::kNowhere);
  EXPECT_TRUE(m.exhausted());

  std::string deep = "root ::= r0\n";
  for (int i = 0; i < 60; ++i) {
    const std::string next = "r" + std::to_string(i + 1);
    deep += "r" + std::to_string(i) + " ::= " + next + " \"x\" | " + next + " \"y\"\n";
  }
  EXPECT_TRUE(matcher(deep + "r60 ::= \"x\"").exhausted());
}

/// Looking at many positions again and again is work, too.
TEST(GrammarMatcher, GivesUpWhereTooManyPositionsAreLookedAt) {
  std::string text = "root ::= \"x\"";
  for (int i = 0; i < 1000; ++i) text += " | [\u00e9] \"a" + std::to_string(i) + "\"";
  GrammarMatcher m = matcher(text);
  const auto state = m.begin_token(m.start());
  for (int i = 0; i < 1000; ++i) EXPECT_FALSE(m.may_follow(state, 0x4E00, 0x4E3F));
  EXPECT_FALSE(m.exhausted()) << "a vocabulary has some thousand parts of characters";
  for (int i = 0; i < 3000; ++i) EXPECT_FALSE(m.may_follow(state, 0x4E00, 0x4E3F));
  EXPECT_TRUE(m.exhausted());
}

/// The cache stays within its limit, however long the text is.
TEST(GrammarMatcher, ForgetsWhatItNoLongerNeeds) {
  std::string text = "[";
  for (std::size_t i = 0; i < 2000; ++i)
    text += "{\"a\":[" + std::string(i % 7, '[') + std::string(i % 7, ']') + "]},";
  text += "1]";
  EXPECT_TRUE(accepts(kJson, text, {.work = 1000, .positions = 100, .kept = 300}));
}

}  // namespace
}  // namespace sluice
