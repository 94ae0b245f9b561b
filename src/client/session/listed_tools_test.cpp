#include "client/session/listed_tools.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <string_view>
#include <utility>

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

json::object listed(std::string_view tools) {
  return parse_json(std::string(R"({"tools":[)") + std::string(tools) + "]}")->get_object();
}

constexpr std::string_view kQuery =
    R"({"name":"query","inputSchema":{"type":"object","properties":{
        "region":{"type":"string","x-mcp-header":"Region"},
        "limit":{"type":"integer","x-mcp-header":"Limit"},
        "dry":{"type":"boolean","x-mcp-header":"Dry"},
        "deep":{"type":"object","properties":{"er":{"type":"string","x-mcp-header":"Er"}}},
        "sql":{"type":"string"}}}})";

TEST(ListedToolsTest, MirrorWhatIsGiven) {
  ListedTools tools;
  json::object result = listed(kQuery);
  tools.learn(result, true);
  EXPECT_EQ(result.at("tools").as_array().size(), 1);
  EXPECT_THAT(
      tools.headers_of_call("query", {{"region", "eu"},
                                      {"limit", -7},
                                      {"dry", true},
                                      {"deep", {{"er", " zwölf"}}},
                                      {"sql", "select"}}),
      ElementsAre(Pair("Mcp-Param-Region", "eu"), Pair("Mcp-Param-Limit", "-7"),
                  Pair("Mcp-Param-Dry", "true"), Pair("Mcp-Param-Er", "=?base64?IHp3w7ZsZg==?=")));
  EXPECT_THAT(tools.headers_of_call("query", {{"region", nullptr}, {"limit", {1}}, {"deep", 3}}),
              IsEmpty());
  EXPECT_THAT(tools.headers_of_call("other", {{"region", "eu"}}), IsEmpty());
}

TEST(ListedToolsTest, MayBeRepeatedIfTheyDoNoMoreTheSecondTime) {
  ListedTools tools;
  json::object result = listed(
      R"({"name":"look","annotations":{"readOnlyHint":true}},
         {"name":"set","annotations":{"readOnlyHint":false,"idempotentHint":true}},
         {"name":"add","annotations":{"idempotentHint":false}},
         {"name":"odd","annotations":{"idempotentHint":"true"}},{"name":"plain"})");
  tools.learn(result, false);
  EXPECT_TRUE(tools.may_be_repeated("look"));
  EXPECT_TRUE(tools.may_be_repeated("set"));
  for (const char* const name : {"add", "odd", "plain", "unknown"}) {
    EXPECT_FALSE(tools.may_be_repeated(name)) << name;
  }
}

TEST(ListedToolsTest, OutputIsCheckedByItsSchema) {
  ListedTools tools;
  json::object result = listed(
      R"({"name":"count","outputSchema":{"type":"object","properties":{"n":{"type":"integer"}},
          "required":["n"]}},
         {"name":"broken","outputSchema":{"type":"no such type"}})");
  tools.learn(result, false);
  const auto check = [&tools](std::string_view tool, std::string_view answer) {
    const Result<void> checked =
        tools.check_output(tool, parse_json(std::string(answer))->get_object());
    return checked ? "fits" : std::to_string(checked.error().code) + " " + checked.error().message;
  };
  EXPECT_EQ(check("count", R"({"structuredContent":{"n":1}})"), "fits");
  EXPECT_EQ(check("count", R"({"structuredContent":{"n":"1"}})"),
            "-32602 The result of \"count\" breaks its outputSchema: structuredContent.n: "
            "expected integer, got string");
  EXPECT_EQ(check("count", R"({"content":[]})"),
            "-32602 The result of \"count\" breaks its outputSchema: it has no structuredContent");
  EXPECT_EQ(check("count", R"({"isError":true,"content":[]})"), "fits");
  EXPECT_EQ(check("broken", R"({"structuredContent":{}})"), "fits");
  EXPECT_EQ(check("unknown", R"({"structuredContent":{}})"), "fits");
}

TEST(ListedToolsTest, OutputThatIsTooDearToCheckFits) {
  ListedTools tools;
  json::object result =
      listed(R"({"name":"dear","outputSchema":{"uniqueItems":true,"items":{"type":"integer"}}})");
  tools.learn(result, false);
  json::array many;
  for (std::uint64_t i = 0; i < ListedTools::kMaxSteps; ++i) many.emplace_back(i);
  many.emplace_back("no integer");
  EXPECT_TRUE(tools.check_output("dear", {{"structuredContent", std::move(many)}}));
}

TEST(ListedToolsTest, SchemasAreBounded) {
  ListedTools tools;
  const std::string long_text(ListedTools::kMaxSchemas / 2, 'x');
  for (const std::string name : {"a", "a", "b"}) {
    json::object result = listed(R"({"name":")" + name +
                                 R"(","outputSchema":{"const":1,"title":")" + long_text + "\"}}");
    tools.learn(result, false);
  }
  EXPECT_FALSE(tools.check_output("a", {{"structuredContent", 2}})) << "counted once";
  EXPECT_TRUE(tools.check_output("b", {{"structuredContent", 2}}));
}

TEST(ListedToolsTest, LeaveInvalidToolsOut) {
  ListedTools tools;
  json::object result = listed(
      R"({"name":"bad","inputSchema":{"properties":{"a":{"type":"number","x-mcp-header":"A"}}}},
         {"name":"plain"},7,)" +
      std::string(kQuery));
  tools.learn(result, true);
  ASSERT_EQ(result.at("tools").as_array().size(), 3);
  EXPECT_EQ(result.at("tools").at(0).at("name"), "plain");
  // A tool that has changed is known as it is now.
  json::object changed = listed(R"({"name":"query","inputSchema":{"type":"object"}})");
  tools.learn(changed, true);
  EXPECT_THAT(tools.headers_of_call("query", {{"region", "eu"}}), IsEmpty());
  json::object nothing;
  tools.learn(nothing, true);
  EXPECT_THAT(nothing, IsEmpty());
}

}  // namespace
}  // namespace sluice
