#include "proxy/translation/names.hpp"

#include <gtest/gtest.h>

namespace sluice {
namespace {

json::object object_of(std::string_view text) {
  return parse_json(text).value().as_object();
}

TEST(NamesTest, APrefixIsALetterAndThenLettersDigitsAndHyphens) {
  EXPECT_TRUE(is_prefix("docs"));
  EXPECT_TRUE(is_prefix("d-2"));
  for (const std::string_view bad : {"", "2d", "-d", "d_s", "d+s", "d s", "d.s", "ü"}) {
    EXPECT_FALSE(is_prefix(bad)) << bad;
  }
  EXPECT_TRUE(is_prefix(std::string(kMaxPrefix, 'a')));
  EXPECT_FALSE(is_prefix(std::string(kMaxPrefix + 1, 'a')));
  EXPECT_EQ(prefix_of("my_server 2"), "my-server-2");
  EXPECT_EQ(prefix_of("2nd"), "");
}

TEST(NamesTest, ANameSaysWhoseItIs) {
  EXPECT_EQ(prefixed_name("git", "hub_search"), "git_hub_search");
  EXPECT_EQ(prefixed_name("", "search"), "search");
  const auto own = split_prefixed_name("git_hub_search");
  ASSERT_TRUE(own);
  EXPECT_EQ(own->prefix, "git");
  EXPECT_EQ(own->name, "hub_search");
  EXPECT_FALSE(split_prefixed_name("search"));
  EXPECT_FALSE(split_prefixed_name("_search"));
}

TEST(NamesTest, AUriKeepsAValidSchemeAndUiItsOwn) {
  for (const std::string uri : {"file:///a_b+c", "ui://chart/a", "urn:x", ""}) {
    const std::string prefixed = prefixed_uri("docs", uri);
    const auto own = split_prefixed_uri(prefixed);
    ASSERT_TRUE(own) << prefixed;
    EXPECT_EQ(own->prefix, "docs");
    EXPECT_EQ(own->name, uri);
  }
  EXPECT_EQ(prefixed_uri("docs", "file:///a"), "docs+file:///a");
  EXPECT_EQ(prefixed_uri("docs", "ui://chart"), "ui://docs+chart");
  EXPECT_EQ(prefixed_uri("Docs", "file:///A"), "docs+file:///A") << "RFC 3986, section 3.1";
  EXPECT_EQ(prefixed_uri("Docs", "ui://Chart"), "ui://docs+Chart");
  EXPECT_FALSE(split_prefixed_uri("file:///a+b"));
  EXPECT_FALSE(split_prefixed_uri("ui://chart"));
}

TEST(NamesTest, ParamsLoseTheirPrefixes) {
  const auto taken = [](std::string_view method, std::string_view text) {
    json::object params = object_of(text);
    const std::string prefix = take_prefix(method, params);
    return prefix + " " + to_json(params);
  };
  EXPECT_EQ(taken("tools/call", R"({"name":"a_b_c"})"), R"(a {"name":"b_c"})");
  EXPECT_EQ(taken("tools/call", R"({"name":"b"})"), R"( {"name":"b"})");
  EXPECT_EQ(taken("tools/call", R"({"name":7})"), R"( {"name":7})");
  EXPECT_EQ(taken("resources/read", R"({"uri":"a+x:y"})"), R"(a {"uri":"x:y"})");
  EXPECT_EQ(taken("completion/complete", R"({"ref":{"type":"ref/prompt","name":"a_b"}})"),
            R"(a {"ref":{"type":"ref/prompt","name":"b"}})");
  EXPECT_EQ(taken("completion/complete", R"({"ref":{"type":"ref/resource","uri":"a+b:{c}"}})"),
            R"(a {"ref":{"type":"ref/resource","uri":"b:{c}"}})");
  EXPECT_EQ(taken("other", R"({"name":"a_b"})"), R"( {"name":"a_b"})");
}

TEST(NamesTest, ResultsGetPrefixesWhereverTheyNameSomething) {
  const auto given = [](std::string_view method, std::string_view text) {
    json::object result = object_of(text);
    add_prefix("a", method, result);
    return to_json(result);
  };
  EXPECT_EQ(
      given("tools/list", R"({"tools":[{"name":"x","_meta":{"ui":{"resourceUri":"ui://p"}}},7]})"),
      R"({"tools":[{"name":"a_x","_meta":{"ui":{"resourceUri":"ui://a+p"}}},7]})");
  EXPECT_EQ(given("prompts/list", R"({"prompts":[{"name":"x"}]})"),
            R"({"prompts":[{"name":"a_x"}]})");
  EXPECT_EQ(given("resources/list", R"({"resources":[{"uri":"x:y","name":"n"}]})"),
            R"({"resources":[{"uri":"a+x:y","name":"n"}]})");
  EXPECT_EQ(given("resources/templates/list", R"({"resourceTemplates":[{"uriTemplate":"x:{y}"}]})"),
            R"({"resourceTemplates":[{"uriTemplate":"a+x:{y}"}]})");
  EXPECT_EQ(given("resources/read", R"({"contents":[{"uri":"x:y","text":"x:y"}]})"),
            R"({"contents":[{"uri":"a+x:y","text":"x:y"}]})");
  EXPECT_EQ(
      given(
          "tools/call",
          R"({"content":[{"type":"resource_link","uri":"x:y"},{"type":"resource","resource":{"uri":"x:z"}}]})"),
      R"({"content":[{"type":"resource_link","uri":"a+x:y"},{"type":"resource","resource":{"uri":"a+x:z"}}]})");
  EXPECT_EQ(given("prompts/get",
                  R"({"messages":[{"content":{"type":"resource","resource":{"uri":"x:z"}}}]})"),
            R"({"messages":[{"content":{"type":"resource","resource":{"uri":"a+x:z"}}}]})");
  EXPECT_EQ(given("tools/list", R"({"tools":7})"), R"({"tools":7})");
}

}  // namespace
}  // namespace sluice
