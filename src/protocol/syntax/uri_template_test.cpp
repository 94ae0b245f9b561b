#include "protocol/syntax/uri_template.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sluice {
namespace {

using ::testing::HasSubstr;
using Variables = UriTemplate::Variables;

std::optional<Variables> match(std::string_view text, std::string_view uri) {
  const Result<UriTemplate> made = UriTemplate::parse(text);
  EXPECT_TRUE(made) << made.error().message;
  std::size_t steps = 0;
  return made ? made->match(uri, steps) : std::nullopt;
}

std::size_t steps_of(std::string_view text, std::string_view uri) {
  std::size_t steps = 0;
  (void)UriTemplate::parse(text).value().match(uri, steps);
  return steps;
}

TEST(UriTemplate, FindsTheVariablesOfAUri) {
  EXPECT_EQ(match("test://template/{id}/data", "test://template/12/data"),
            (Variables{{"id", "12"}}));
  EXPECT_EQ(match("file:///{+path}", "file:///a/b.txt"), (Variables{{"path", "a/b.txt"}}));
  EXPECT_EQ(match("repo{/owner,name}", "repo/me/it"), (Variables{{"name", "it"}, {"owner", "me"}}));
  EXPECT_EQ(match("x:/a{/rest*}", "x:/a/b/c"), (Variables{{"rest", "b/c"}}));
  EXPECT_EQ(match("x:{name}.{type}", "x:a.b.c"), (Variables{{"name", "a"}, {"type", "b.c"}}));
  EXPECT_EQ(match("x:{name}{.type}", "x:a.b"), (Variables{{"name", "a"}, {"type", "b"}}));
  EXPECT_EQ(match("x:{a,b}", "x:1,2"), (Variables{{"a", "1"}, {"b", "2"}}));
  EXPECT_EQ(match("x:a{#part}", "x:a#p/1"), (Variables{{"part", "p/1"}}));
  EXPECT_EQ(match("x:a", "x:a"), Variables{});
}

TEST(UriTemplate, DecodesValues) {
  EXPECT_EQ(match("x:{v}", "x:a%20%C3%A9%2F"), (Variables{{"v", "a é/"}}));
  EXPECT_EQ(match("x:{v}", "x:%zz"), std::nullopt);
  EXPECT_EQ(match("x:{v}", "x:%4"), std::nullopt);
  EXPECT_EQ(match("x:{v}", "x:%FF"), std::nullopt);
}

TEST(UriTemplate, TakesParametersInAnyOrder) {
  constexpr std::string_view kSearch = "x:find{?q,page}";
  EXPECT_EQ(match(kSearch, "x:find"), Variables{});
  EXPECT_EQ(match(kSearch, "x:find?page=2&q=a%26b"), (Variables{{"page", "2"}, {"q", "a&b"}}));
  EXPECT_EQ(match(kSearch, "x:find?q="), (Variables{{"q", ""}}));
  EXPECT_EQ(match(kSearch, "x:find?q=1&q=2"), std::nullopt);
  EXPECT_EQ(match(kSearch, "x:find?other=1"), std::nullopt);
  EXPECT_EQ(match(kSearch, "x:find?q"), std::nullopt);
  EXPECT_EQ(match("x:f?v=1{&q}", "x:f?v=1&q=2"), (Variables{{"q", "2"}}));
  EXPECT_EQ(match("x:f{?q}{#at}", "x:f?q=2#end"), (Variables{{"at", "end"}, {"q", "2"}}));
}

TEST(UriTemplate, RefusesOtherUris) {
  for (const std::string_view uri :
       {"", "x:", "x:/", "x:/a/b", "x:/a?b", "y:/a", "x:/a/", "x:/a#b"}) {
    EXPECT_EQ(match("x:/{v}", uri), std::nullopt) << uri;
  }
  EXPECT_EQ(match("x:{+v}", "x:" + std::string(UriTemplate::kMaxUri, 'a')), std::nullopt);
}

TEST(UriTemplate, TakesNoLongerForHardCases) {
  std::string text = "x:";
  for (int i = 0; i < 32; ++i) text.append("{+v" + std::to_string(i) + "}a");
  EXPECT_EQ(match(text, "x:" + std::string(UriTemplate::kMaxUri - 3, 'a') + "b"), std::nullopt);
}

TEST(UriTemplate, CountsWhatAComparisonCosts) {
  const std::string uri = "x:a/" + std::string(4000, 'a');
  EXPECT_EQ(steps_of("y:{v}", uri), 1);
  EXPECT_EQ(steps_of("{+v}/end", uri), 1);
  EXPECT_GT(steps_of("x:{v}/a/{+w}", uri), 2 * 4000U);  // "/a/" fits nowhere
  EXPECT_GT(steps_of("x:{+v}a{+w}", uri), 3 * 4000U);
}

TEST(UriTemplate, ComparesSegmentsWithTheirOwnVariablesOnly) {
  std::string uri = "x:";
  while (uri.size() < UriTemplate::kMaxUri - 10) uri.append("segment/");
  EXPECT_LT(steps_of("x:{v}/{w}/{u}/", uri), uri.size() / 4);
}

TEST(UriTemplate, SaysWhatIsWrongWithATemplate) {
  const std::pair<std::string_view, std::string_view> cases[] = {
      {"x:{", "brace"},
      {"x:}", "brace"},
      {"x:{}", "valid variable name"},
      {"x:{a b}", "'a b'"},
      {"x:{a}{a}", "twice"},
      {"x:{?q}z", "may follow"},
      {"x:{?q}{r}", "may follow"},
      {"x:{;a}", "supported"},
      {"x:{a:3}", "'a:3'"},
  };
  for (const auto& [text, why] : cases) {
    const Result<UriTemplate> made = UriTemplate::parse(text);
    ASSERT_FALSE(made) << text;
    EXPECT_THAT(made.error().message, HasSubstr(why)) << text;
  }
  std::string many;
  for (int i = 0; i < 33; ++i) many.append("{v" + std::to_string(i) + "}");
  EXPECT_FALSE(UriTemplate::parse(many));
}

TEST(UriTemplate, KnowsItsVariables) {
  const Result<UriTemplate> made = UriTemplate::parse("x:{a}{?b}{#c}");
  ASSERT_TRUE(made);
  EXPECT_TRUE(made->has_variable("a"));
  EXPECT_TRUE(made->has_variable("b"));
  EXPECT_TRUE(made->has_variable("c"));
  EXPECT_FALSE(made->has_variable("x:"));
  EXPECT_FALSE(made->has_variable("d"));
}

}  // namespace
}  // namespace sluice
