#include "json_schema/formats/ecma.hpp"

#include <array>
#include <cstdint>
#include <expected>
#include <gtest/gtest.h>
#include <string>
#include <string_view>

#include "json_schema/formats/pattern.hpp"

namespace sluice {
namespace {

constexpr std::size_t kMemory = 1UL << 20U;

std::expected<JsonPattern, RegexError> compile_within(std::string_view pattern,
                                                      std::uint64_t work = 10'000'000) {
  return JsonPattern::compile(pattern, kMemory, work);
}

bool matches(std::string_view pattern, std::string_view text) {
  const auto compiled = compile_within(pattern);
  EXPECT_TRUE(compiled) << pattern << ": " << (compiled ? "" : compiled.error().message);
  return compiled && compiled->matches(text);
}

std::string refusal(std::string_view pattern) {
  const auto compiled = compile_within(pattern);
  return compiled ? "" : compiled.error().message;
}

TEST(JsonPattern, WhatIsNotSupportedMayBeValid) {
  for (const char* const pattern :
       {"a(?=b)c", "(a)\\1", "\\p{Emoji}", "^.{1,1000}.{1,1000}.{1,1000}$", "a(?!b)|^(?=c)d"}) {
    ASSERT_FALSE(compile_within(pattern)) << pattern;
    EXPECT_TRUE(compile_within(pattern).error().may_be_valid) << pattern;
  }
  for (const char* const pattern : {"(a", "a)", "[b-a]", "*", "\\y"}) {
    ASSERT_FALSE(compile_within(pattern)) << pattern;
    EXPECT_FALSE(compile_within(pattern).error().may_be_valid) << pattern;
  }
}

TEST(JsonPattern, ReadsTheSyntaxOfEcma262) {
  struct Case {
    std::string_view pattern;
    std::string_view matching;
    std::string_view other;
  };
  constexpr auto kCases = std::to_array<Case>({
      {"b", "abc", "ac"},                         // anywhere in the text
      {"^a$", "a", "a\n"},                        // $ matches only at the very end
      {"^[^]$", "\n", ""},                        // anything at all
      {"^.$", "\xC3\xA4", "\n"},                  // a character, not a byte
      {"^\\d$", "7", "\xD9\xA7"},                 // ASCII digits only
      {"^\\s$", "\xC2\xA0", "a"},                 // Unicode's white space
      {"^\\S$", "a", "\xE2\x80\xA8"},             //
      {"^\\u{1F600}$", "\xF0\x9F\x98\x80", "a"},  //
      {"^\\uD83D\\uDE00$", "\xF0\x9F\x98\x80", "a"},
      {"^\\x41\\cJ\\0$", std::string_view("A\n\0", 3), "A"},
      {"^\\p{Letter}+$", "\xC3\xA4z", "1"},
      {"^\\p{Script=Greek}$", "\xCE\xB1", "a"},
      {"^(?<year>\\d{4})$", "2026", "226"},
      {"^a{2}$", "aa", "a{2}"},
      {"^a{,2}$", "a{,2}", "aa"},
      {"^(?!no)\\w+$", "yes", "none"},
      {"^\\w+(?<!x)$", "ab", "ax"},
      {"^[\\-\\]a-c]$", "]", "d"},
      {"^a{1500}$", "", "a"},
  });
  for (const Case& test : kCases) {
    const std::string many(1500, 'a');
    EXPECT_TRUE(matches(test.pattern, test.matching.empty() ? many : test.matching))
        << test.pattern;
    EXPECT_FALSE(matches(test.pattern, test.other)) << test.pattern;
  }
}

TEST(JsonPattern, RefusesWhatIsNoPatternOrTakesMoreThanLinearTime) {
  for (const std::string_view pattern : {"(",
                                         ")",
                                         "[a",
                                         "[b-a]",
                                         "a**",
                                         "*",
                                         "(?",
                                         "(?i)a",
                                         "\\",
                                         "\\u12",
                                         "\\u{110000}",
                                         "\\q",
                                         "\\p{Nope}",
                                         "\\p{",
                                         "a{3,2}",
                                         "^*",
                                         "(a)\\1",
                                         "(?<n>a)\\k<n>",
                                         "a(?=b)c",
                                         "x|^(?=a)a",
                                         "\\cé",
                                         "a{100000}",
                                         "(((a{100}){100}){100}){100}"}) {
    EXPECT_NE(refusal(pattern), "") << pattern;
  }
}

TEST(JsonPattern, IsCompiledWithinTheWorkThatIsGiven) {
  constexpr std::uint64_t kFew = 10'000;
  std::string properties;
  for (int i = 0; i < 30; ++i) properties += "\\p{L}";
  const std::string repeated = "^(x{0,1000})?(x{0,1000})?(x{0,1000})?(x{0,1000})?(x{0,1000})?";
  const std::string wide = "^[\\u0080-\\uffee]{500}$";
  for (const std::string& costly : {"[" + properties + "]", repeated, wide}) {
    ASSERT_TRUE(compile_within(costly)) << costly;
    const auto refused = compile_within(costly, kFew);
    ASSERT_FALSE(refused) << costly;
    EXPECT_EQ(refused.error().message, "compiling it takes too long");
  }
  EXPECT_TRUE(compile_within("^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$", kFew));
  EXPECT_TRUE(compile_within("^[\\p{L}\\p{N}]+$", kFew));
}

}  // namespace
}  // namespace sluice
