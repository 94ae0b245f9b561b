#include "engine/llama/followable_schema.hpp"

#include <common/json.h>
#include <cstdint>
#include <gtest/gtest.h>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <common/json-schema-to-grammar.h>

#include "core/json_schema.hpp"
#include "core/utf8.hpp"
#include "engine/llama/grammar.hpp"
#include "engine/llama/grammar_matcher.hpp"
#include "rpc/error_codes.hpp"

namespace sluice {
namespace {

std::string followed(std::string_view schema, Inexpressible what = Inexpressible::refused) {
  const auto out = followable_schema(parse_json(schema).value(), what);
  return out ? to_json(*out) : out.error().message;
}

/// The texts that a schema's grammar takes.
class Answers {
 public:
  explicit Answers(const json::value& schema)
      : schema_(JsonSchema::compile(schema).value()),
        matcher_(std::make_shared<const Grammar>(
            Grammar::parse(json_schema_to_grammar(
                               common_json::parse(to_json(
                                   followable_schema(schema, Inexpressible::refused).value())),
                               true))
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

  /// One of them at random; empty if it gets too long.
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

  /// All answers follow the schema.
  void expect_valid(std::mt19937_64& random, int times) {
    for (int i = 0; i < times; ++i) {
      const std::string answer = draw(random);
      if (answer.empty()) continue;
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
    return Grammar::parse(
        json_schema_to_grammar(common_json::parse(to_json(schema.value())), true));
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
    EXPECT_EQ(followed(schema), "the bounds of an integer leave none that is supported") << schema;
    EXPECT_EQ(followed(schema, Inexpressible::passed_over), R"({"type":"integer"})");
  }
  EXPECT_EQ(followed(R"({"type":"integer","minimum":-1e30,"exclusiveMaximum":7.5,"maximum":8})"),
            R"({"type":"integer","maximum":7})");
  EXPECT_EQ(followed(R"({"type":"number","minimum":2,"maximum":1})"),
            R"({"type":"number","minimum":2,"maximum":1})");
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
    EXPECT_EQ(followed(schema), "a pattern is not supported: it must begin with ^ and end with $")
        << schema;
    EXPECT_EQ(followed(schema, Inexpressible::passed_over).find(R"("pattern":"x")"),
              std::string::npos);
  }
  EXPECT_EQ(followed(R"({"items":{"$ref":"#"},"pattern":"^a$"})"),
            R"({"items":{"$ref":"#"},"pattern":"^a$"})");
}

}  // namespace
}  // namespace sluice
