#include "cli/remote/call_arguments.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/content/schema_hints.hpp"
#include "cli/options/exit_code.hpp"

namespace sluice {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

json::object schema(std::string_view text) {
  return parse_json(text).value().get_object();
}

const json::object& search() {
  static const json::object kSchema = schema(R"({
    "type":"object",
    "properties":{
      "query":{"type":"string","description":"What to look for"},
      "limit":{"type":"integer","minimum":1},
      "share":{"type":"number"},
      "exact":{"type":"boolean"},
      "tags":{"type":"array","items":{"type":"string"}},
      "sizes":{"type":"array","items":{"type":"integer"}},
      "order":{"enum":["newest","oldest",3]},
      "maybe":{"type":["integer","null"]},
      "either":{"anyOf":[{"type":"number"},{"type":"string"}]},
      "where":{"$ref":"#/$defs/place"},
      "a.b":{"type":"integer"},
      "any":{}},
    "$defs":{"place":{"type":"object","properties":{"city":{"type":"string"},
                                                     "floor":{"type":"integer"}}}},
    "required":["query"]})");
  return kSchema;
}

std::string typed(std::vector<std::string> words) {
  words.insert(words.begin(), "query=q");
  const auto arguments = tool_arguments(words, search());
  if (!arguments) return arguments.error().message;
  json::object rest = *arguments;
  rest.erase("query");
  return to_json(rest);
}

TEST(CallArguments, HaveTheTypesOfTheSchema) {
  EXPECT_EQ(typed({"limit=3"}), R"({"limit":3})");
  EXPECT_EQ(typed({"exact=true"}), R"({"exact":true})");
  EXPECT_EQ(typed({"maybe=null"}), R"({"maybe":null})");
  EXPECT_EQ(typed({"maybe=7"}), R"({"maybe":7})");
  EXPECT_EQ(typed({"either=7"}), R"({"either":7})");
  EXPECT_EQ(typed({"either=seven"}), R"({"either":"seven"})");
  EXPECT_EQ(typed({"order=oldest"}), R"({"order":"oldest"})");
  EXPECT_EQ(typed({"order=3"}), R"({"order":3})");
  EXPECT_EQ(typed({"any=[1,2]"}), R"({"any":[1,2]})");
  EXPECT_EQ(typed({"any=hello"}), R"({"any":"hello"})");
  const auto text = tool_arguments({"query=12"}, search());
  ASSERT_TRUE(text);
  EXPECT_EQ(to_json(*text), R"({"query":"12"})");
}

TEST(CallArguments, GiveArraysAndObjects) {
  EXPECT_EQ(typed({"tags=a", "tags=b"}), R"({"tags":["a","b"]})");
  EXPECT_EQ(typed({"tags=a"}), R"({"tags":["a"]})");
  EXPECT_EQ(typed({R"(tags=["a","b"])"}), R"({"tags":["a","b"]})");
  EXPECT_EQ(typed({"sizes=1", "sizes=2"}), R"({"sizes":[1,2]})");
  EXPECT_EQ(typed({"where.city=Ulm", "where.floor=2"}), R"({"where":{"city":"Ulm","floor":2}})");
  EXPECT_EQ(typed({R"(where={"city":"Ulm"})"}), R"({"where":{"city":"Ulm"}})");
  EXPECT_EQ(typed({"a.b=1"}), R"({"a.b":1})");
}

TEST(CallArguments, CanBeJsonWhateverTheType) {
  EXPECT_EQ(typed({"limit:=\"3\""}), R"({"limit":"3"})");
  EXPECT_THAT(typed({"limit:=x"}), HasSubstr("limit:= is no JSON"));
}

TEST(CallArguments, AreNotChangedOnTheWay) {
  EXPECT_EQ(typed({"limit=9007199254740993"}), R"({"limit":9007199254740993})");
  EXPECT_EQ(typed({"share=18446744073709551615"}), R"({"share":18446744073709551615})");
  EXPECT_THAT(typed({"share=12345678901234567890123"}), HasSubstr("is not a number"));
  EXPECT_EQ(typed({"any=12345678901234567890123"}), R"({"any":"12345678901234567890123"})");
  EXPECT_EQ(typed({"share=1e22"}), R"({"share":1e+22})");
  EXPECT_EQ(typed({"share=0.1"}), R"({"share":0.1})");
  EXPECT_EQ(typed({"share=-0"}), R"({"share":-0})");
  // It would be sent as null.
  EXPECT_THAT(typed({"share=1e309"}), HasSubstr("is not a number"));
  EXPECT_THAT(typed({"share:=-1e999"}), HasSubstr("larger than any"));
  EXPECT_THAT(typed({"any:={\"a\":[1e999]}"}), HasSubstr("larger than any"));
  EXPECT_THAT(typed({"any:={\"a\":[12345678901234567890123]}"}), HasSubstr("more than 64 bits"));
  EXPECT_EQ(typed({"any:=[18446744073709551615,-1,\"\\\"123456789012345678901234\"]"}),
            "{\"any\":[18446744073709551615,-1,\"\\\"123456789012345678901234\"]}");
}

TEST(CallArguments, DoNotReplaceEachOther) {
  EXPECT_EQ(typed({R"(where={"city":"Ulm"})", "where.floor=2"}),
            R"({"where":{"city":"Ulm","floor":2}})");
  EXPECT_EQ(typed({"where.floor=2", R"(where={"city":"Ulm"})"}),
            "where would replace its members; give it before them");
  EXPECT_THAT(typed({"any=5", "any.x=1"}), HasSubstr("has no members"));
}

TEST(CallArguments, AShortSchemaThatMeansBillionsIsReadAtOnce) {
  json::array alternatives;
  for (int i = 0; i < 100; ++i) {
    alternatives.push_back(json::object{{"$ref", "#/properties/x"}});
  }
  const json::object root{
      {"properties", json::object{{"x", json::object{{"anyOf", std::move(alternatives)}}}}}};
  EXPECT_EQ(type_text(root.at("properties").at("x"), root), "");
  const auto arguments = tool_arguments({"x=1"}, root);
  ASSERT_TRUE(arguments);
  EXPECT_EQ(to_json(*arguments), R"({"x":1})");
}

TEST(CallArguments, QuoteTheSchemaOfWhatDoesNotFit) {
  EXPECT_EQ(typed({"limit=many"}),
            "limit: \"many\" is not a whole number; the schema says "
            R"({"type":"integer","minimum":1})");
  EXPECT_THAT(typed({"limit=1.5"}), HasSubstr("is not a whole number"));
  EXPECT_THAT(typed({"order=oldes"}),
              AllOf(HasSubstr("did you mean oldest?"), HasSubstr(R"(["newest","oldest",3])")));
  EXPECT_THAT(typed({"limit=1", "limit=2"}), HasSubstr("limit: is given twice"));
  EXPECT_THAT(typed({"sizes=a"}), HasSubstr("sizes: \"a\" is not a whole number"));
  EXPECT_THAT(typed({"limit.a=1"}), HasSubstr("has no members"));
}

TEST(CallArguments, NameWhatIsUnknownOrMissing) {
  EXPECT_THAT(typed({"limt=3"}), AllOf(HasSubstr("there is no argument limt; did you mean limit?"),
                                       HasSubstr("the schema says {")));
  const auto missing = tool_arguments({"limit=3"}, search());
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, kExitUsage);
  EXPECT_THAT(missing.error().message,
              AllOf(HasSubstr("give NAME=VALUE for: query"), HasSubstr("What to look for")));
  EXPECT_THAT(typed({std::string(100, '.') + "=1"}), HasSubstr("at most 32 dots"));
}

TEST(CallArguments, GoBeforeThoseThatAreGivenAsJson) {
  const auto arguments =
      tool_arguments({"limit=2"}, search(), schema(R"({"query":"x","limit":1})"));
  ASSERT_TRUE(arguments);
  EXPECT_EQ(to_json(*arguments), R"({"query":"x","limit":2})");
  EXPECT_FALSE(tool_arguments({}, search(), schema(R"({"query":"x","other":1})")));
}

TEST(CallArguments, OfAnOpenSchemaMayHaveAnyName) {
  const auto arguments = tool_arguments({"a=1", "b=x"}, schema(R"({"type":"object"})"));
  ASSERT_TRUE(arguments);
  EXPECT_EQ(to_json(*arguments), R"({"a":1,"b":"x"})");
}

TEST(CallArguments, OfPromptsAreTexts) {
  const auto arguments = text_arguments({"style=short", "n=1"});
  ASSERT_TRUE(arguments);
  EXPECT_EQ(arguments->at(1).second, "1");
  EXPECT_FALSE(text_arguments({"a=1", "a=2"}));
  EXPECT_FALSE(text_arguments({"a:=1"}));
}

}  // namespace
}  // namespace sluice
