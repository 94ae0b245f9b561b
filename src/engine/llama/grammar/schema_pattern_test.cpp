#include "engine/llama/grammar/schema_pattern.hpp"

#include <gtest/gtest.h>
#include <string>

namespace sluice {
namespace {

TEST(SchemaPattern, WhatAGrammarCanSayIsFollowed) {
  for (const char* const pattern : {"^$",
                                    "^abc$",
                                    "^[0-9]{3}-[a-z_]+$",
                                    "^(?:a|b)*c?$",
                                    R"(^\(\$\)$)",
                                    R"(^\u00e9\x41\n$)",
                                    R"(^[\]\-\\]{2,}$)",
                                    "^a{0,3}$",
                                    "^a{2000}$",
                                    "^a{3,2000}$",
                                    "^a{2,}$",
                                    "^(a(b(c)))$",
                                    "^.*$",
                                    R"(^\/\uD83D\uDE00$)",
                                    "^[^]$",
                                    "^[a-]+?$",
                                    "^\xC3\xA9+$",
                                    R"(^\d{4}-\d\d$)",
                                    R"(^[\w.-]+@[^\s@]+$)",
                                    R"(^\D\W\S[\d-]\f\v$)"}) {
    const auto followed = followed_pattern(pattern);
    EXPECT_TRUE(followed) << pattern << ": " << followed.error();
  }
}

TEST(SchemaPattern, WhatItCannotSayIsAFault) {
  for (const char* const pattern : {"",
                                    "^",
                                    "abc",
                                    "^abc",
                                    "abc$",
                                    R"(^\bx$)",
                                    R"(^(a)\1$)",
                                    R"(^\p{L}$)",
                                    R"(^\k<n>$)",
                                    R"(^[\b]$)",
                                    R"(^[\d-x]$)",
                                    R"(^[a-\d]$)",
                                    R"(^[^\d\D]$)",
                                    R"(^\$)",
                                    R"(^\x4$)",
                                    R"(^\uD83D$)",
                                    R"(^\U00110000$)",
                                    "^(?=a)b$",
                                    "^(?<n>a)$",
                                    "^a^b$",
                                    "^a$b$",
                                    "^[a$",
                                    "^[z-a]$",
                                    "^[]$",
                                    "^[\\x01]$",
                                    "^*a$",
                                    "^(+a)$",
                                    "^a**$",
                                    "^a{2}{3}$",
                                    "^a{$",
                                    "^a{x}$",
                                    "^a{1,2,3}$",
                                    "^a{,3}$",
                                    "^a{,}$",
                                    "^a{3,2}$",
                                    "^a{2001}$",
                                    "^a{0,2001}$",
                                    "^a{99999999999999999999}$",
                                    "^a{1,99999999999999999999}$",
                                    "^a{1",
                                    "^a{1,$",
                                    "^a{-1}$",
                                    "^a{+1}$",
                                    "^a{ 1}$",
                                    "^a{1,2,}$",
                                    "^a]$",
                                    "^a}$",
                                    "^(a$",
                                    "^a)$",
                                    "^[a\\",
                                    "^[a\\]$"}) {
    EXPECT_FALSE(followed_pattern(pattern)) << pattern;
  }
  EXPECT_TRUE(followed_pattern("^" + std::string(50, '(') + std::string(50, ')') + "$"));
  EXPECT_FALSE(followed_pattern("^" + std::string(51, '(') + std::string(51, ')') + "$"));
  EXPECT_EQ(followed_pattern("^" + std::string(2000, 'a') + "$").error(),
            "it is longer than 1024 bytes");
}

// Repeated characters are in a group, because llama.cpp would repeat a whole literal.
TEST(SchemaPattern, IsWrittenForTheInsideOfAJsonString) {
  const auto followed = [](const char* pattern) { return followed_pattern(pattern).value(); };
  EXPECT_EQ(followed("^ab+$"), "^a(?:b)+$");
  EXPECT_EQ(followed(R"(^[\d-]\w$)"), R"(^[0-9\x2D][0-9A-Z_a-z]$)");
  EXPECT_EQ(followed("^a-\"$"), R"(^a\x2D\\\x22$)");
  EXPECT_EQ(followed(R"(^\\\n\x01$)"), R"(^\\\x5C\\n\\u0001$)");
  EXPECT_EQ(followed("^[a-c-]$"), R"(^[a-c\x2D]$)");
  EXPECT_EQ(followed("^[!-~]$"), R"(^(?:[!#-\x5B\x5D-~]|\\[\x22\x5C])$)");
  EXPECT_EQ(followed("^[\\n\"]?$"), R"(^(?:\\[n\x22])?$)");
}

}  // namespace
}  // namespace sluice
