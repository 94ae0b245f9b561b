#include "json/lone_surrogates.hpp"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace sluice
