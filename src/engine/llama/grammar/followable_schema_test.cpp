#include "engine/llama/grammar/followable_schema.hpp"

#include <cstdint>
#include <exception>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <limits>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "core/text/utf8.hpp"
#include "engine/grammar/grammar.hpp"
#include "engine/grammar/grammar_matcher.hpp"
#include "engine/llama/grammar/schema_grammar.hpp"
#include "json_schema/json_schema.hpp"
#include "rpc/error_codes.hpp"

namespace sluice {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::StartsWith;

std::string followed(std::string_view schema, Inexpressible what = Inexpressible::refused) {
  const auto out = followable_schema(parse_json(schema).value(), what);
  return out ? to_json(*out) : out.error().message;
}

/// The texts that a schema's grammar accepts.
class Answers {
 public:
  explicit Answers(const json::value& schema)
      : schema_(JsonSchema::compile(schema).value()),
        matcher_(std::make_shared<const Grammar>(
            Grammar::parse(
                schema_grammar(followable_schema(schema, Inexpressible::refused).value()))
                .value())),
        start_(matcher_.start()) {}

  bool take(std::string_view text) {
    GrammarMatcher::State state = start_ = matcher_.begin_token(start_);
    while (!text.empty() && state != GrammarMatcher::kNowhere) {
      const std::size_t length = first_utf8_part(text).length;
      state = matcher_.next(state, code_point_of(text.substr(0, length)));
      text.remove_prefix(length);
    }
    return state != GrammarMatcher::kNowhere && matcher_.may_end(state);
  }

  /// Returns one of them at random; empty if it becomes too long.
  std::string draw(std::mt19937_64& random) {
    static constexpr std::u32string_view kOthers = U"\n\u007F\u00E9\u4E2D\u2028\U0001F600";
    std::string text;
    GrammarMatcher::State state = start_ = matcher_.begin_token(start_);
    for (int length = 0; length < 100; ++length) {
      if (matcher_.may_end(state) && random() % 4 == 0) return text;
      std::vector<char32_t> next;
      for (char32_t c = 0x20; c < 0x7F; ++c) next.push_back(c);
      next.insert(next.end(), kOthers.begin(), kOthers.end());
      std::erase_if(next, [&](char32_t c) { return !matcher_.may_follow(state, c, c); });
      if (next.empty()) return matcher_.may_end(state) ? text : std::string();
      const char32_t c = next[random() % next.size()];
      state = matcher_.next(state, c);
      append(text, c);
    }
    return {};
  }

  /// Expects random answers to follow the schema.
  void expect_valid(std::mt19937_64& random, int times) {
    for (int i = 0; i < times; ++i) {
      const std::string answer = draw(random);
      // llama.cpp accepts any four hexadecimal digits, including those of a lone surrogate.
      if (answer.empty() || answer.contains("\\u")) continue;
      const auto value = parse_json(answer);
      ASSERT_TRUE(value) << answer;
      const auto valid = schema_.validate(*value);
      ASSERT_TRUE(valid) << answer << ": " << valid.error().describe("it");
      ++drawn_;
    }
  }
  [[nodiscard]] int drawn() const { return drawn_; }

 private:
  static void append(std::string& out, char32_t c) {
    if (c < 0x80) {
      out.push_back(static_cast<char>(c));
      return;
    }
    const int more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    const unsigned lead = more == 1 ? 0xC0 : more == 2 ? 0xE0 : 0xF0;
    out.push_back(static_cast<char>(lead | c >> (6U * static_cast<unsigned>(more))));
    for (int i = more - 1; i >= 0; --i) {
      out.push_back(static_cast<char>(0x80U | (c >> (6U * static_cast<unsigned>(i)) & 0x3FU)));
    }
  }

  JsonSchema schema_;
  GrammarMatcher matcher_;
  GrammarMatcher::State start_;
  int drawn_ = 0;
};

TEST(FollowableSchema, AnswersMatchTheirPattern) {
  std::mt19937_64 random(1);
  for (const char* const pattern : {"^.*$",
                                    "^[^a]{1,5}$",
                                    "^[!-~]+$",
                                    "^\"[^\"]*\"$",
                                    R"(^\\\\n$)",
                                    "^ab+c$",
                                    R"(^x\.+y$)",
                                    "^\xC3\xA9+$",
                                    "^(?:a|\"|\n)+?$",
                                    R"(^[\x00-\x7f]{3}$)",
                                    "^a-[a-]{2,}$",
                                    "^[^]{2}$",
                                    R"(^[^\\\\"]$)",
                                    "^(a|b){0,3}|[0-9]$",
                                    "^(|a)b{0}(?:)c?|$",
                                    "^a{0}|()$",
                                    "^$",
                                    R"(^\d\D\w\W\s\S$)",
                                    R"(^[\w\s]+[^\d\s]$)",
                                    "^\xF0\x9F\x98\x80?[\xC3\xA0-\xC3\xBF]$"}) {
    Answers answers(json::value{{"type", "string"}, {"pattern", pattern}});
    answers.expect_valid(random, 300);
    EXPECT_GT(answers.drawn(), 20) << pattern;
  }
}

TEST(FollowableSchema, LargePatternsAreBounded) {
  const auto grammar_of = [](const std::string& pattern) {
    const auto schema =
        followable_schema(json::value{{"pattern", pattern}}, Inexpressible::refused);
    return Grammar::parse(schema_grammar(schema.value()));
  };
  const std::string nested = "^" + std::string(50, '(') + "a" + std::string(50, ')') + "$";
  EXPECT_TRUE(grammar_of(nested));
  EXPECT_TRUE(grammar_of("^[^a]{2000}$"));
  EXPECT_TRUE(grammar_of("^((a{1000}){1000}){1000}$"));
  std::string long_text = "^";
  for (int i = 0; i < 100; ++i) long_text += ".{2000}";
  const auto refused = grammar_of(long_text + "$");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, kInvalidParams);
}

TEST(FollowableSchema, FreeKeysAreJsonStrings) {
  const json::value named = {{"type", "object"},
                             {"properties", {{"ab", json::object()}, {"b", json::object()}}},
                             {"additionalProperties", {{"type", "integer"}}}};
  Answers answers(named);
  EXPECT_TRUE(answers.take(R"({"ax":1})"));
  EXPECT_TRUE(answers.take("{\"\xC3\xA9\":1}"));
  EXPECT_FALSE(answers.take(R"({"\":1})"));
  EXPECT_FALSE(answers.take("{\"\n\":1}"));
  EXPECT_FALSE(answers.take("{\"a\n\":1}"));
}

TEST(FollowableSchema, PatternsTakeTheirTexts) {
  const auto takes = [](const char* pattern, const char* text) {
    return Answers(json::value{{"type", "string"}, {"pattern", pattern}}).take(text);
  };
  EXPECT_TRUE(takes("^.*$", R"("a \"quoted\" \\ word\t")"));
  EXPECT_FALSE(takes("^.*$", R"("a"b")"));
  EXPECT_FALSE(takes("^.*$", R"("a\nb")"));
  EXPECT_TRUE(takes("^[^a]$", R"("\n")"));
  EXPECT_FALSE(takes("^[^a]$", R"(""")"));
  EXPECT_FALSE(takes("^[^a]$", R"("\")"));
  EXPECT_FALSE(takes("^ab+$", R"("abab")"));
  EXPECT_TRUE(takes("^ab+$", R"("abb")"));
  EXPECT_TRUE(takes("^(|a)b{0}c$", R"("ac")"));
  EXPECT_TRUE(takes("^(|a)b{0}c$", R"("c")"));
  EXPECT_FALSE(takes("^(|a)b{0}c$", R"("bc")"));
  EXPECT_TRUE(takes(R"(^\d{2}\D\s$)", R"("42x\n")"));
  EXPECT_TRUE(takes(R"(^\d{2}\D\s$)", R"("42\" ")"));
  EXPECT_FALSE(takes(R"(^\d{2}\D\s$)", R"("423 ")"));
  EXPECT_TRUE(takes("^$", R"("")"));
  EXPECT_FALSE(takes("^$", R"("a")"));
  EXPECT_FALSE(takes("^a{2,3}$", R"("a")"));
  EXPECT_FALSE(takes("^a{2,3}$", R"("aaaa")"));
}

TEST(FollowableSchema, IntegersAreWithinTheirBounds) {
  std::mt19937_64 random(1);
  constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  std::vector<std::int64_t> bounds = {0,
                                      1,
                                      5,
                                      9,
                                      10,
                                      25,
                                      99,
                                      100,
                                      105,
                                      1000,
                                      999999,
                                      kMost,
                                      kLeast,
                                      kMost - 1,
                                      kLeast + 1,
                                      9007199254740991,
                                      1000000000000000,
                                      9999999999999999,
                                      10000000000000000};
  for (int i = 0; i < 20; ++i)
    bounds.push_back(static_cast<std::int64_t>(random()) >> random() % 60);
  const std::size_t count = bounds.size();
  for (std::size_t i = 0; i < count; ++i) {
    if (bounds[i] != kLeast) bounds.push_back(-bounds[i]);
  }
  int checked = 0;
  for (int i = 0; i < 400; ++i) {
    json::object schema = {{"type", "integer"}};
    const std::int64_t one = bounds[random() % bounds.size()];
    const std::int64_t two = bounds[random() % bounds.size()];
    const bool exclusive = random() % 4 == 0;
    const auto form = random() % 3;
    if (form != 1) schema[exclusive ? "exclusiveMinimum" : "minimum"] = std::min(one, two);
    if (form != 0) schema["maximum"] = std::max(one, two);
    if (!followable_schema(schema, Inexpressible::refused)) continue;
    ++checked;
    Answers answers(schema);
    answers.expect_valid(random, 30);
    const JsonSchema compiled = JsonSchema::compile(schema).value();
    for (const std::int64_t number : bounds) {
      if (number == kLeast || number == kMost) continue;
      const bool is_valid = compiled.validate(number).has_value();
      const bool is_usual = number < 10'000'000'000'000'000 && number > -10'000'000'000'000'000;
      const bool is_taken = answers.take(std::to_string(number));
      EXPECT_LE(is_taken, is_valid) << number << " by " << to_json(schema);
      if (is_usual) EXPECT_EQ(is_taken, is_valid) << number << " by " << to_json(schema);
    }
  }
  EXPECT_GT(checked, 300);
}

TEST(FollowableSchema, BoundsThatLeaveNothingAreRefused) {
  for (const char* const bounds :
       {R"("minimum":2,"maximum":1)", R"("minimum":1.1,"maximum":1.9)", R"("minimum":1e30)",
        R"("maximum":-1e30)", R"("minimum":9223372036854775807)",
        R"("exclusiveMinimum":0,"exclusiveMaximum":1)", R"("maximum":-9223372036854775808)"}) {
    const std::string schema = R"({"type":"integer",)" + std::string(bounds) + "}";
    EXPECT_EQ(followed(schema), "at #: the bounds of an integer leave no value that is supported")
        << schema;
    EXPECT_EQ(followed(schema, Inexpressible::passed_over), R"({"type":"integer"})");
  }
  EXPECT_EQ(followed(R"({"type":"integer","minimum":-1e30,"exclusiveMaximum":7.5,"maximum":8})"),
            R"({"type":"integer","maximum":7})");
}

TEST(FollowableSchema, WhatAGrammarCannotDemandIsRefusedByItsNameAndPlace) {
  for (const auto& [schema, why] : std::vector<std::pair<const char*, const char*>>{
           {R"({"type":"string","pattern":"^a+$","minLength":3})",
            R"(at #: "minLength" is not supported beside "pattern")"},
           {R"({"properties":{"a":{"type":"string","format":"date","maxLength":5}}})",
            R"(at #/properties/a: "maxLength" is not supported)"},
           {R"({"type":"integer","multipleOf":3})", R"("multipleOf" is not supported)"},
           {R"({"items":[{"type":"number","minimum":0}]})",
            R"(at #/items/0: "minimum" is not supported for numbers that are not integers)"},
           {R"({"type":["null","number"],"exclusiveMaximum":1})", R"("exclusiveMaximum")"},
           {R"({"type":"array","items":{"type":"integer"},"uniqueItems":true})",
            R"("uniqueItems" is not supported beside "items")"},
           {R"({"type":"array","contains":{"type":"integer"}})", R"("contains")"},
           {R"({"prefixItems":[{"type":"integer"}],"minItems":2})", R"("minItems")"},
           {R"({"prefixItems":[{"type":"integer"}],"items":{"type":"string"}})",
            R"("items" is not supported beside "prefixItems")"},
           {R"({"type":"integer","multipleOf":2})", R"(at #: "multipleOf" is not supported)"},
           {R"({"type":"integer","minimum":1,"multipleOf":2})",
            R"("multipleOf" is not supported beside "minimum")"},
           {R"({"anyOf":[{"type":"string"}],"format":"date","minLength":5})",
            R"("minLength" is not supported beside "anyOf")"},
           {R"({"type":"array","minItems":2,"maxItems":1})", "its minimum length"},
           {R"({"type":"string","minLength":2,"maxLength":1})", "its minimum length"},
           {R"({"type":"object","properties":{"a":{}},"patternProperties":{"^b":{"type":"null"}}})",
            R"("patternProperties" is not supported beside "properties")"},
           {R"({"type":"object","minProperties":1})", R"("minProperties")"},
           {R"({"type":"object","propertyNames":{"maxLength":3}})", R"("propertyNames")"},
           {R"({"type":"object","properties":{"a":{}},"dependentRequired":{"a":["b"]}})",
            R"("dependentRequired")"},
           {R"({"type":"object","properties":{"a":{}},"required":["b"]})",
            R"("required" names "b", which is not one of the properties)"},
           {R"({"required":["b"]})", R"("required")"},
           {R"({"not":{"type":"null"}})", R"("not" is not supported)"},
           {R"({"type":"string","not":{"const":"a"}})", R"("not")"},
           {R"({"type":"object","properties":{"a":{}},"if":{},"then":{"required":["a"]}})",
            R"("if")"},
           {R"({"anyOf":[{"type":"object"},{"type":"null"}],"properties":{"a":{"type":"null"}}})",
            R"("properties" is not supported beside "anyOf")"},
           {R"({"oneOf":[{"type":"null"}],"anyOf":[{"type":"null"}]})", R"("anyOf")"},
           {R"({"anyOf":[{"type":"string"},{"type":"null"}],"type":"string"})", R"("type")"},
           {R"({"$ref":"#/$defs/a","minLength":1,"$defs":{"a":{"type":"string"}}})",
            R"("minLength" is not supported beside "$ref")"},
           {R"({"minimum":3})", R"("minimum")"},
           {R"({"const":5,"type":"string"})", R"(no value of "const")"},
           {R"({"enum":["ab",5],"minLength":3,"type":"string"})", R"(no value of "enum")"},
           {R"({"allOf":[{"type":"string"},{"minLength":1}]})", R"("allOf")"},
           {R"({"allOf":[{"properties":{"a":{}}},{"properties":{"a":{"type":"null"}}}]})",
            R"("allOf")"},
           {R"({"allOf":[{"properties":{"a":{}},"additionalProperties":false},)"
            R"({"properties":{"b":{}}}]})",
            R"("allOf")"},
           {R"({"allOf":[{"properties":{"a":{}}},{"properties":{"b":{}}}],"not":{}})", R"("not")"},
           {R"({"oneOf":[{"type":"integer"},{"type":"number"}]})",
            R"(two alternatives of "oneOf", 0 and 1 (counted from 0),)"},
           {R"({"oneOf":[{"const":1},{"const":1}]})", R"("oneOf")"},
           {R"({"oneOf":[{"properties":{"a":{}}},{"properties":{"b":{}}}]})", R"("oneOf")"},
           {R"({"oneOf":[{"type":"string"},{"properties":{"a":{"type":"null"}}}]})", R"("oneOf")"},
           {R"({"oneOf":[{"properties":{"a":{"type":"null"}},"required":["a"]},{"type":"null"}]})",
            R"("oneOf")"},
           {R"({"oneOf":[{"type":"string"},{"$ref":"#/$defs/a"}],"$defs":{"a":{"maxItems":2,)"
            R"("items":{"type":"null"}}}})",
            R"("oneOf")"},
           {R"({"oneOf":[{"type":"integer"},{"anyOf":[{"type":"null"},{"minLength":2}]}]})",
            R"("oneOf")"},
           {R"({"oneOf":[{"const":{"k":1},"properties":{"a":{}}},)"
            R"({"properties":{"k":{"type":"integer"}},"required":["k"]}]})",
            R"("oneOf")"},
           {R"({"oneOf":[{"const":1},{"const":1.0}]})", R"("oneOf")"},
           {R"({"oneOf":[{"enum":[[1],"a"]},{"enum":[[1.0],"b"]}]})", R"("oneOf")"},
           {R"({"items":{"properties":{"*":{"type":"null"}}}})",
            R"(at #/items: a property "*" is supported only)"},
           {R"({"type":"object","properties":{"*":{"type":"null"}},"required":["*"],)"
            R"("additionalProperties":{"type":"integer"}})",
            R"(a property "*" is supported only)"},
           {R"({"properties":{"a\"b":{"type":"null"}},"additionalProperties":true})",
            "a property whose name has a quote"},
           {R"({"properties":{"":{"type":"null"}},"additionalProperties":{"type":"integer"}})",
            R"(a single property "" is not supported)"},
           {R"({"properties":{"":{"type":"null"}},"required":[""],"additionalProperties":true})",
            R"(a single property "" is not supported)"},
           {R"({"properties":{"]":{"type":"null"}},"additionalProperties":{"type":"null"}})",
            "a property whose name has a quote"},
           {R"({"type":["object","null"],"properties":{"\n":{"type":"null"}},)"
            R"("additionalProperties":{"type":"null"}})",
            "a property whose name has a quote"},
       }) {
    EXPECT_THAT(followed(schema), HasSubstr(why)) << schema;
    EXPECT_THAT(followed(schema), StartsWith("at #")) << schema;
    EXPECT_THAT(followed(schema, Inexpressible::passed_over), StartsWith("{")) << schema;
  }
}

TEST(FollowableSchema, LengthsBeyondAnIntAreRefused) {
  for (const char* const length : {"2147483648", "4294967296", "18446744073709551615", "1e30"}) {
    for (const auto& [keyword, beside] : std::vector<std::pair<std::string, const char*>>{
             {"minLength", R"("type":"string")"},
             {"maxLength", R"("type":["string","null"])"},
             {"minItems", R"("type":"array","items":{"type":"null"})"},
             {"maxItems", R"("items":{"type":"null"})"},
             {"minItems", R"("prefixItems":[{"type":"null"}])"},
             {"minProperties", R"("properties":{"a":{"type":"null"}},"required":["a"])"},
             {"maxProperties", R"("type":"object")"}}) {
      const std::string schema =
          R"({"items":{)" + std::string(beside) + ",\"" + keyword + "\":" + length + "}}";
      EXPECT_EQ(followed(schema),
                "at #/items: \"" + keyword + "\" is not supported above 2147483647");
      EXPECT_FALSE(followed(schema, Inexpressible::passed_over).contains(keyword));
    }
  }
  EXPECT_THAT(followed(R"({"type":"string","maxLength":2147483647})"), StartsWith("{"));
  // Whole numbers are lengths however they are written.
  EXPECT_THAT(followed(R"({"prefixItems":[{"type":"null"}],"minItems":2.0})"),
              HasSubstr("\"minItems\" is not supported"));
  EXPECT_THAT(followed(R"({"properties":{"a":{"type":"null"}},"minProperties":1.0})"),
              HasSubstr("\"minProperties\" is not supported"));
}

TEST(FollowableSchema, KeywordsHaveValuesOfTheirForm) {
  for (const auto& [schema, why] : std::vector<std::pair<const char*, const char*>>{
           {R"({"type":"integer","minimum":3,"exclusiveMinimum":true,"maximum":4})",
            R"(at #: "exclusiveMinimum" must be a number)"},
           {R"({"type":"integer","maximum":4,"exclusiveMaximum":false})",
            R"(at #: "exclusiveMaximum" must be a number)"},
           {R"({"type":"number","exclusiveMinimum":true})",
            R"("exclusiveMinimum" must be a number)"},
           {R"({"items":{"type":"number","minimum":true}})",
            R"(at #/items: "minimum" must be a number)"},
           {R"({"type":"number","multipleOf":true})", R"("multipleOf" must be a number)"},
           {R"({"type":"object","properties":{},"required":"a"})",
            R"("required" must be an array of names)"},
           {R"({"properties":{"a":{"type":"null"}},"required":["a",1]})",
            R"("required" must be an array of names)"},
           {R"({"type":"string","required":true})", R"("required" must be an array of names)"},
           {R"({"type":"string","pattern":"^a$","minLength":"3"})",
            R"("minLength" must be an integer from 0 on)"},
           {R"({"prefixItems":[{"type":"null"}],"minItems":true})",
            R"("minItems" must be an integer from 0 on)"},
           {R"({"type":"array","maxItems":-1})", R"("maxItems" must be an integer from 0 on)"},
           {R"({"type":"array","maxItems":0.5})", R"("maxItems" must be an integer from 0 on)"},
           {R"({"type":"array","uniqueItems":"no"})", R"("uniqueItems" must be true or false)"}}) {
    EXPECT_THAT(followed(schema), HasSubstr(why)) << schema;
    EXPECT_THAT(followed(schema, Inexpressible::passed_over), StartsWith("{")) << schema;
  }
}

TEST(FollowableSchema, NumbersThatWereRoundedAreRefused) {
  for (const char* const schema :
       {R"({"const":123456789012345678901234567890})", R"({"const":{"a":[9007199254740993.0]}})",
        R"({"const":-1e400})"}) {
    EXPECT_EQ(
        followed(schema),
        R"(at #: numbers from 2^53 on are not supported in "const" but as integers of 64 bits)")
        << schema;
  }
  EXPECT_THAT(followed(R"({"enum":[1,18446744073709551616]})"), HasSubstr(R"(in "enum")"));
}

TEST(FollowableSchema, ReferencesHaveEscapes) {
  const auto takes = [](const std::string& schema, const char* text) {
    return Answers(parse_json(schema).value()).take(text);
  };
  const std::string definitions =
      R"("$defs":{"a/b":{"const":1},"a~1b":{"const":2},"a~b":{"const":3},"a b":{"const":4},)"
      R"("a%20b":{"const":5},"%":{"const":6},"\u00e9":{"const":7},)"
      R"("m~":{"properties":{"c/d":{"const":8},"next":{"$ref":"#/$defs/m~0"}},"required":["c/d"]}},)"
      R"("$targets":{})";
  for (const auto& [reference, text] : std::vector<std::pair<std::string, const char*>>{
           {"a~1b", "1"},
           {"a%2fb", ""},  // the escapes of the URI are undone first
           {"a~01b", "2"},
           {"a~0b", "3"},
           {"a%7E0b", "3"},
           {"a b", "4"},
           {"a%20b", "4"},
           {"a%2520b", "5"},
           {"%25", "6"},
           {"%C3%A9", "7"},
           {"m~0/properties/c~1d", "8"},
           {"m~0", R"({"c/d":8,"next":{"c/d":8}})"},
           {"a~b", ""},
           {"a%", ""},
           {"a~2b", ""}}) {
    const std::string schema =
        "{" + definitions + R"(,"items":{"$ref":"#/$defs/)" + reference + R"("},"maxItems":1})";
    if (*text == '\0') {
      EXPECT_EQ(followed(schema),
                "at #/items: the \"$ref\" \"#/$defs/" + reference + "\" leads nowhere");
      EXPECT_FALSE(followed(schema, Inexpressible::passed_over).contains(R"("items":{"$ref")"));
      continue;
    }
    EXPECT_TRUE(takes(schema, ("[" + std::string(text) + "]").c_str())) << reference;
  }
  // One may be within another, and what refers to it is still told from the others.
  const std::string schema =
      R"({"oneOf":[{"$ref":"#/$defs/x~1y"},{"$ref":"#/$defs/x~1y/properties/z"},)"
      R"({"$ref":"#/$defs/plain"}],"$defs":{"x/y":{"type":"object","properties":{"z":{"type":"integer"}},)"
      R"("required":["z"]},"plain":{"type":"null"}}})";
  for (const char* const text : {R"({"z":12})", "12", "null"}) EXPECT_TRUE(takes(schema, text));
  EXPECT_FALSE(takes(schema, "true"));
  // Data is no reference.
  EXPECT_TRUE(takes(R"({"enum":[{"$ref":"#/a~1b"}],"a/b":{}})", R"({"$ref":"#/a~1b"})"));
}

TEST(FollowableSchema, ReferencesToTheWholeSchema) {
  Answers tree(parse_json(R"({"type":"object","properties":{"a~":{"type":"integer"},)"
                          R"("left":{"$ref":"#"},"right":{"$ref":"#/properties/a~0"}},)"
                          R"("additionalProperties":false})")
                   .value());
  for (const char* const text : {"{}", R"({"left":{"left":{"a~":1}},"right":2})"}) {
    EXPECT_TRUE(tree.take(text)) << text;
  }
  for (const char* const text : {R"({"left":1})", R"({"left":{"left":true}})"}) {
    EXPECT_FALSE(tree.take(text)) << text;
  }
}

TEST(FollowableSchema, OtherReferencesDemandNothingOfToolsAndAreRefusedElsewhere) {
  for (const char* const reference : {"#a", "https://example.org/a", "a", ""}) {
    const std::string schema =
        R"({"items":{"$ref":")" + std::string(reference) + R"("},"$anchor":"a"})";
    EXPECT_THAT(followed(schema), StartsWith("at #/items: the \"$ref\" \"" +
                                             std::string(reference) + "\" is not supported"));
    EXPECT_EQ(followed(schema, Inexpressible::passed_over), R"({"items":{},"$anchor":"a"})");
  }
  EXPECT_THAT(followed(R"({"items":{"$ref":"#/const"},"const":7})"), HasSubstr("leads nowhere"));
}

TEST(FollowableSchema, SchemasMayBeBooleans) {
  const std::string schema =
      R"({"type":"object","properties":{"a":true,"b":{"items":true},"c":{"anyOf":[true,{"type":"null"}]},)"
      R"("d":{"$ref":"#/$defs/any"}},"$defs":{"any":true}})";
  EXPECT_EQ(followed(schema),
            R"({"type":"object","properties":{"a":{},"b":{"items":{}},)"
            R"("c":{"anyOf":[{},{"type":"null"}]},"d":{}},"$defs":{"any":true}})");
  EXPECT_EQ(followed(R"({"properties":{"a":false}})", Inexpressible::passed_over),
            R"({"properties":{"a":{}}})");
  EXPECT_EQ(followed(R"({"properties":{"a":false}})"), R"({"properties":{"a":false}})");
}

TEST(FollowableSchema, ReferencesWithinOtherResourcesAreRefused) {
  for (const char* const schema :
       {R"({"$defs":{"n":{"$id":"http://q/","$defs":{"m":{"type":"null"}},"$ref":"#/$defs/m"},)"
        R"("m":{"type":"boolean"}},"$ref":"#/$defs/n"})",
        R"({"$defs":{"n":{"$id":"n","items":{"$ref":"#/$defs/m"}},"m":{}},"$ref":"#/$defs/n"})",
        R"({"$defs":{"n":{"$id":"n","p":{"items":{"$ref":"#/$defs/m"}}},"m":{}},)"
        R"("$ref":"#/$defs/n/p"})"}) {
    EXPECT_THAT(followed(schema),
                HasSubstr("\"$ref\" is not supported in a schema that has an \"$id\" of its own"))
        << schema;
    EXPECT_FALSE(followed(schema, Inexpressible::passed_over).contains("#/$defs/m"));
  }
  EXPECT_EQ(followed(R"({"items":{"$ref":"#/a","properties":{"b":{"pattern":"x"}}}})",
                     Inexpressible::passed_over),
            R"({"items":{}})");
  for (const char* const schema :
       {R"({"$id":"http://q/","$ref":"#/$defs/n","$defs":{"n":{"$id":"n","type":"null"}}})",
        R"({"$defs":{"n":{"$id":"#n","items":{"$ref":"#/$defs/m"}},"m":{"type":"null"}},)"
        R"("$ref":"#/$defs/n"})",
        R"({"properties":{"$id":{"$ref":"#/$defs/n"}},"$defs":{"n":{"type":"null"}}})"}) {
    EXPECT_THAT(followed(schema), StartsWith("{")) << schema;
  }
}

TEST(FollowableSchema, AlternativesAreComparedWithinBounds) {
  std::string values;
  for (int i = 0; i < 1000; ++i) values += std::to_string(i) + ",";
  std::string alternatives;
  for (int i = 0; i < 30; ++i) {
    alternatives += R"({"enum":[)" + values + std::to_string(-i - 1) + "]},";
  }
  alternatives.pop_back();
  EXPECT_THAT(followed(R"({"oneOf":[)" + alternatives + "]}"), HasSubstr("\"oneOf\""));
  alternatives.clear();
  for (int i = 0; i < 100; ++i) {
    alternatives += R"({"properties":{"kind":{"const":)" + std::to_string(i) +
                    R"(},"x":{"type":"string"}},"required":["kind","x"]},)";
  }
  alternatives.pop_back();
  EXPECT_THAT(followed(R"({"oneOf":[)" + alternatives + "]}"), StartsWith("{"));
  std::string types;
  for (int i = 0; i < 200; ++i) types += R"({"$ref":"#/$defs/a"},)";
  types.pop_back();
  const std::string deep = R"({"$defs":{"a":{"anyOf":[{"$ref":"#/$defs/b"},{"$ref":"#/$defs/b"}]},)"
                           R"("b":{"anyOf":[)" +
                           types + R"(]}},"type":"string","anyOf":[)" + types + "]}";
  EXPECT_THAT(followed(deep), HasSubstr("\"type\" is not supported"));
}

TEST(FollowableSchema, WhatIsFollowedAnywayIsTaken) {
  std::mt19937_64 random(1);
  for (const char* const schema :
       {R"({"type":"string","minLength":2,"maxLength":4,"format":"email"})",
        R"({"type":"string","format":"date","minLength":3,"maxLength":10})",
        R"({"type":"string","pattern":"^a+$","minLength":0,"minimum":3,"format":"date"})",
        R"({"type":"integer","multipleOf":1,"maxLength":3})",
        R"({"type":"array","items":{"type":"boolean"},"uniqueItems":false,"maxItems":2})",
        R"({"type":"array","items":{"type":"boolean"},"uniqueItems":true,"maxItems":1})",
        R"({"prefixItems":[{"type":"boolean"},{"enum":[1,2]}],"items":false,"minItems":2,)"
        R"("maxItems":2})",
        R"({"properties":{"a":{"enum":[1]},"b":{"type":"null"}},"required":["a"],)"
        R"("minProperties":1,"maxProperties":2,"unevaluatedProperties":false})",
        R"({"type":"object","anyOf":[{"properties":{"a":{"type":"null"}}}],"description":"x"})",
        R"({"allOf":[{"$ref":"#/$defs/a"}],"$defs":{"a":{"type":"integer","minimum":3}}})",
        R"({"allOf":[{"properties":{"a":{"const":1}},"required":["a"]},)"
        R"({"properties":{"b":{"const":2}}}]})",
        R"({"enum":["a","ab","abc",7],"type":"string","minLength":2})",
        R"({"type":["string","null"],"enum":["a",null]})",
        R"({"oneOf":[{"type":"null"},{"type":"string","maxLength":2}]})",
        R"({"oneOf":[{"const":"a"},{"enum":["b","c"]}]})",
        R"({"oneOf":[{"properties":{"k":{"const":"a"},"x":{"type":"null"}},"required":["k"]},)"
        R"({"properties":{"k":{"const":"b"}},"required":["k"]}]})",
        R"({"oneOf":[{"properties":{"a":{"type":"null"}},"required":["a"]},)"
        R"({"properties":{"b":{"type":"null"}},"required":["b"]}]})",
        R"({"oneOf":[{"type":"null"},{"type":"object","properties":{"a":{"type":"null"}}}]})",
        R"({"properties":{"*":{"type":"null"}},"required":["*"]})",
        R"({"prefixItems":[{"type":"boolean"}],"items":{},"minItems":1.0})",
        R"({"type":"string","minLength":2.0,"maxLength":4.0})",
        R"({"enum":[18446744073709551615,-9223372036854775808,0.1,9007199254740991.0]})",
        R"({"if":{"type":"string"},"const":1})"}) {
    const auto value = parse_json(schema).value();
    ASSERT_THAT(followed(schema), StartsWith("{")) << schema;
    Answers answers(value);
    answers.expect_valid(random, 100);
    EXPECT_GT(answers.drawn(), 5) << schema;
  }
}

TEST(FollowableSchema, WhateverIsTakenIsFollowed) {
  const std::vector<std::string> members = {
      R"("type":"string")",
      R"("type":"object")",
      R"("type":"array")",
      R"("type":"integer")",
      R"("type":"number")",
      R"("type":["string","integer","null"])",
      R"("type":["array","object"])",
      R"("const":"ab")",
      R"("enum":[1,"ab",null,{"a":1}])",
      R"("pattern":"^a{1,3}$")",
      R"("format":"date")",
      R"("minLength":2)",
      R"("maxLength":3)",
      R"("minimum":3)",
      R"("exclusiveMaximum":20)",
      R"("multipleOf":2)",
      R"("items":{"type":"boolean"})",
      R"("prefixItems":[{"type":"null"},{"type":"integer"}])",
      R"("minItems":1)",
      R"("maxItems":2)",
      R"("uniqueItems":true)",
      R"("contains":{"type":"boolean"})",
      R"("properties":{"a":{"type":"integer"},"b":{"type":"null"}})",
      R"("required":["a"])",
      R"("additionalProperties":false)",
      R"("patternProperties":{"^a":{"type":"integer","maximum":3}})",
      R"("minProperties":1)",
      R"("maxProperties":2)",
      R"("unevaluatedProperties":false)",
      R"("propertyNames":{"maxLength":1})",
      R"("not":{"type":"string"})",
      R"("if":{"type":"string"},"then":{"maxLength":1})",
      R"("anyOf":[{"type":"string"},{"type":"integer"}])",
      R"("oneOf":[{"type":"string"},{"type":"null"}])",
      R"("oneOf":[{"type":"integer"},{"enum":[3,4]}])",
      R"("allOf":[{"type":"integer","minimum":7}])",
      R"("allOf":[{"properties":{"c":{"const":1}}},{"properties":{"d":{"const":2}}}])",
      R"("$ref":"#/$defs/x")"};
  std::mt19937_64 random(7);
  int taken = 0;
  for (int i = 0; i < 1000; ++i) {
    std::string text = R"({"$defs":{"x":{"type":"integer","maximum":9}})";
    for (auto more = 1 + random() % 4; more > 0; --more) {
      text += "," + members[random() % members.size()];
    }
    const auto schema = parse_json(text + "}");
    // Skip this schema: two of its rules have the same name.
    if (!schema || !followable_schema(*schema, Inexpressible::refused)) continue;
    ++taken;
    std::optional<Answers> answers;
    try {
      answers.emplace(*schema);
    } catch (const std::exception&) {
      continue;  // llama.cpp reports the error
    }
    answers->expect_valid(random, 20);
    if (HasFailure()) FAIL() << text;
  }
  EXPECT_GT(taken, 100);
}

#ifdef SLUICE_SANITIZED
constexpr int kDrawsOfNames = 50;  // each takes ten times as long
#else
constexpr int kDrawsOfNames = 300;
#endif

TEST(FollowableSchema, NamesAreNotConfused) {
  std::mt19937_64 random(1);
  std::vector<std::string> schemas;
  for (const std::string name : {"",
                                 "root",
                                 "string",
                                 "value",
                                 "object",
                                 "integer",
                                 "space",
                                 "char",
                                 "dot",
                                 "s",
                                 "ref",
                                 "item",
                                 "tuple-0",
                                 "additional",
                                 "additional-k",
                                 "additional-kv",
                                 "additional-value",
                                 "alternative-0",
                                 "a-kv",
                                 "a-rest",
                                 "a0",
                                 "date_time",
                                 "integral part",
                                 "decimal.part"}) {
    const std::string quoted = "\"" + name + "\"";
    schemas.push_back(R"({"type":"object","properties":{)" + quoted +
                      R"(:{"type":"integer"}},"required":[)" + quoted +
                      R"(],"additionalProperties":false})");
    schemas.push_back(R"({"properties":{)" + quoted +
                      R"(:{"enum":["x"]},"a":{"type":"string","format":"date-time"},)"
                      R"("b":{"type":"integer"},"c":{"type":"number"}},"required":["a"]})");
    schemas.push_back(R"({"properties":{)" + quoted + R"(:{"properties":{)" + quoted +
                      R"(:{"const":1}}},"a":{"const":2}},"additionalProperties":{"const":3}})");
    schemas.push_back(R"({"allOf":[{"properties":{)" + quoted +
                      R"(:{"const":1}}},{"properties":{"b":{"const":2}}}]})");
  }
  for (
      const char* const schema :
      {R"({"properties":{"a b":{"enum":["x"]},"a-b":{"const":1},"a_b":{"const":null},)"
       R"("a.b":{"type":"array","items":{"const":2}},"a b0":{"const":3}},"required":["a b"]})",
       R"({"properties":{"\u00e9":{"enum":["x"]},"\u00e8":{"const":1}},"required":["\u00e9"]})",
       // References whose rules would get one name, also inside each other.
       R"({"properties":{"x":{"$ref":"#/$defs/a_b"},"y":{"$ref":"#/$defs/a-b"}},)"
       R"("required":["x","y"],"$defs":{"a_b":{"const":1},"a-b":{"const":2}}})",
       R"({"properties":{"x":{"$ref":"#/$defs/\u00e9"},"y":{"$ref":"#/$defs/\u00e8"}},)"
       R"("required":["x","y"],"$defs":{"\u00e9":{"const":1},"\u00e8":{"const":2}}})",
       R"({"$ref":"#/$defs/a_b","$defs":{"a_b":{"properties":{"k":{"const":1},)"
       R"("n":{"$ref":"#/$defs/a-b"}},"required":["k"]},"a-b":{"properties":{"k":{"const":2},)"
       R"("n":{"$ref":"#/$defs/a_b"}},"required":["k"]}}})",
       // A rule inside a reference or a property, and a reference with the same rule name.
       R"({"properties":{"u":{"$ref":"#/$defs/user"},"n":{"$ref":"#/$defs/user_name"}},)"
       R"("required":["u","n"],"$defs":{"user":{"properties":{"name":{"const":"x"}},)"
       R"("required":["name"]},"user_name":{"enum":[1,2]}}})",
       R"({"properties":{"ref-defs-a":{"const":"x"},"b":{"$ref":"#/$defs/a"}},)"
       R"("required":["b","ref-defs-a"],"$defs":{"a":{"enum":[1]}}})",
       R"({"properties":{"ref-00000000":{"const":"x"},"b":{"$ref":"#/$defs/a"}},)"
       R"("required":["b","ref-00000000"],"$defs":{"a":{"enum":[1]}}})",
       // Free keys of two objects whose rules would get one name.
       R"({"properties":{"a b":{"properties":{"x":{"const":1}},"additionalProperties":)"
       R"({"const":2}},"a-b":{"properties":{"y":{"const":1}},"additionalProperties":{"const":2}}},)"
       R"("required":["a b","a-b"]})",
       R"({"properties":{"-":{"const":1},"a":{"const":2},"+":{"const":3}},)"
       R"("additionalProperties":{"const":4}})"}) {
    schemas.emplace_back(schema);
  }
  for (const std::string& schema : schemas) {
    ASSERT_THAT(followed(schema), StartsWith("{")) << schema;
    Answers answers(parse_json(schema).value());
    answers.expect_valid(random, kDrawsOfNames);
    EXPECT_GT(answers.drawn(), 5) << schema;
    if (HasFailure()) FAIL() << schema;
  }
}

TEST(FollowableSchema, APatternIsFollowedOnce) {
  for (const char* const pattern :
       {"^\"$", "^\"x$", R"(^\\x$)", "^[^\"]$", R"(^\t{2}$)", "^a/b$"}) {
    const json::value plain = {{"type", "string"}, {"pattern", pattern}};
    const std::string expected = to_json(followable_schema(plain, Inexpressible::refused).value());
    json::value nested = plain;
    for (int depth = 0; depth < 3; ++depth) {
      nested = json::object{{"allOf", json::array{std::move(nested)}}};
      EXPECT_EQ(followed(to_json(nested)), expected);
      const json::value behind = {{"$ref", "#/$defs/a"}, {"$defs", {{"a", nested}}}};
      EXPECT_EQ(followed(to_json(behind)),
                R"({"$ref":"#/$defs/a","$defs":{"a":)" + expected + "}}");
    }
  }
  // Values are compared with the original demands.
  EXPECT_THAT(
      followed(R"({"enum":[{"a":"\""},{"a":"\\\""}],"properties":{"a":{"pattern":"^\"$"}}})"),
      StartsWith(R"({"enum":[{"a":"\""}],)"));
}

TEST(FollowableSchema, DataIsNoSchema) {
  for (const char* const schema :
       {R"({"const":{"pattern":"\\b"}})", R"({"enum":[{"pattern":"\\b"}]})",
        R"({"type":"object","default":{"pattern":"\\b"},"examples":[{"pattern":"x"}]})",
        R"({"$defs":{"unused":{"pattern":"\\b"}}})", R"({"type":"number","pattern":"\\b"})",
        R"({"properties":{"pattern":{"const":{"pattern":"x"}}}})"}) {
    EXPECT_EQ(followed(schema), to_json(parse_json(schema).value()));
    EXPECT_EQ(followed(schema, Inexpressible::passed_over), to_json(parse_json(schema).value()));
  }
}

TEST(FollowableSchema, PatternsAreFoundWhereverASchemaStands) {
  for (const char* const schema :
       {R"({"pattern":"x"})", R"({"type":["null","string"],"pattern":"x"})",
        R"({"properties":{"const":{"pattern":"x"}}})", R"({"items":{"pattern":"x"}})",
        R"({"prefixItems":[{"pattern":"x"}]})", R"({"anyOf":[{"oneOf":[{"pattern":"x"}]}]})",
        R"({"allOf":[{"pattern":"x"}]})", R"({"additionalProperties":{"pattern":"x"}})",
        R"({"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"pattern":"x"}}})",
        R"({"items":{"$ref":"#/const/a"},"const":{"a":{"pattern":"x"}}})"}) {
    EXPECT_THAT(followed(schema),
                MatchesRegex("at #[^:]*: a pattern is not supported: it must begin with .*"))
        << schema;
    EXPECT_EQ(followed(schema, Inexpressible::passed_over).find(R"("pattern":"x")"),
              std::string::npos);
  }
  EXPECT_EQ(followed(R"({"items":{"$ref":"#"},"pattern":"^a$"})"),
            R"({"items":{"$ref":"#/$targets/0"},"pattern":"^a$",)"
            R"("$targets":[{"items":{"$ref":"#/$targets/0"},"pattern":"^a$"}]})");
}

}  // namespace
}  // namespace sluice
