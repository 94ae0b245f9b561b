#include "engine/llama/schema_pattern.hpp"

#include <gtest/gtest.h>

namespace sluice {
namespace {

TEST(SchemaPattern, WhatAGrammarCanSayIsFollowed) {
  for (const char* const pattern :
       {"^$", "^abc$", "^[0-9]{3}-[a-z_]+$", "^(?:a|b)*c?$", R"(^\(\$\)$)", R"(^\u00e9\x41\n$)",
        R"(^[\]\-\\]{2,}$)", "^a{,3}$", "^(a(b(c)))$", "^.*$"}) {
    EXPECT_EQ(pattern_fault(pattern), "") << pattern;
  }
}

TEST(SchemaPattern, WhatItCannotSayIsAFault) {
  for (const char* const pattern : {"",
                                    "^",
                                    "abc",
                                    "^abc",
                                    "abc$",
                                    R"(^\d+$)",
                                    R"(^[\d]$)",
                                    R"(^\$)",
                                    R"(^\x4$)",
                                    "^(?=a)b$",
                                    "^(?<n>a)$",
                                    "^a^b$",
                                    "^a$b$",
                                    "^[a$",
                                    "^a{$",
                                    "^a{x}$",
                                    "^a{1,2,3}$",
                                    "^a{,}$",
                                    "^a{9999999999}$",
                                    "^a]$",
                                    "^a}$",
                                    "^(a$",
                                    "^a)$",
                                    "^[a\\",
                                    "^[a\\]$"}) {
    EXPECT_NE(pattern_fault(pattern), "") << pattern;
  }
  EXPECT_EQ(pattern_fault("^" + std::string(100, '(') + std::string(100, ')') + "$"), "");
  EXPECT_NE(pattern_fault("^" + std::string(101, '(') + std::string(101, ')') + "$"), "");
}

TEST(SchemaPattern, IsDroppedFromAHintWhereverItStands) {
  json::value schema = *parse_json(
      R"({"properties":{"pattern":{"type":"string","pattern":"^\\d$"},"b":{"pattern":"^a$"}},)"
      R"("anyOf":[{"pattern":"x"}]})");
  drop_faulty_patterns(schema);
  EXPECT_EQ(to_json(schema),
            R"({"properties":{"pattern":{"type":"string"},"b":{"pattern":"^a$"}},"anyOf":[{}]})");
}

}  // namespace
}  // namespace sluice
