#include "json/lone_surrogates.hpp"

#include <gtest/gtest.h>
#include <string>
#include <string_view>

#include "json/json.hpp"

namespace sluice {
namespace {

TEST(LoneSurrogates, BecomeReplacementCharacters) {
  EXPECT_EQ(without_lone_surrogates(R"("a\ud83d")"), R"("a\ufffd")");
  EXPECT_EQ(without_lone_surrogates(R"("\uDE00 b\ud83d\ud83d\ude00\ude00")"),
            R"("\ufffd b\ufffd\ud83d\ude00\ufffd")");
  EXPECT_EQ(without_lone_surrogates(R"({"\ud800":"\\ud800\\\ud800"})"),
            R"({"\ufffd":"\\ud800\\\ufffd"})");
}

TEST(LoneSurrogates, OtherTextsHaveNone) {
  for (const std::string_view text : {"", "\\", "\\u", R"("\ud83d\ude00")", R"("\\ud83d")",
                                      R"("\u00e9\n\"")", R"("\ud8")", R"("\ud8zz")", "\\ud83"}) {
    EXPECT_EQ(without_lone_surrogates(text), std::nullopt) << text;
  }
}

TEST(LoneSurrogates, WhatIsLeftCanBeRead) {
  const auto read = parse_json(*without_lone_surrogates(R"(["\ud83d","\ude00"])"));
  ASSERT_TRUE(read);
  EXPECT_EQ(to_json(*read), "[\"\xEF\xBF\xBD\",\"\xEF\xBF\xBD\"]");
}

TEST(LoneSurrogates, AreReadAsReplacementCharacters) {
  EXPECT_EQ(parse_json_with_lone_surrogates(R"("\ud83d!")").value(), "\uFFFD!");
  EXPECT_EQ(parse_json_with_lone_surrogates("7").value(), 7);
  EXPECT_FALSE(parse_json_with_lone_surrogates(R"({"\ud83d")"));
}

TEST(LoneSurrogates, EscapesThatMayGoOnAreNotWhole) {
  for (const std::string_view whole : {"", "a", R"("\n\\)", R"(\u00e9)", R"(\ud83d\ude00)",
                                       R"(\ud83d\n)", R"(\\ud83d)", R"(\ude00)"}) {
    EXPECT_EQ(whole_escapes_prefix(whole), whole.size()) << whole;
  }
  for (const std::string_view rest :
       {"\\", R"(\u)", R"(\u00e)", R"(\ud83d)", R"(\ud83d\)", R"(\ud83d\ude0)"}) {
    EXPECT_EQ(whole_escapes_prefix("\\n" + std::string(rest)), 2U) << rest;
  }
}

}  // namespace
}  // namespace sluice
