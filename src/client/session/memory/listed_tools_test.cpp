#include "client/session/memory/listed_tools.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <string_view>
#include <utility>

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
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
  constexpr int kFitting = 64;
  const std::string title((ListedTools::kMaxSchemas / kFitting) - 100, 'x');
  const auto learn = [&](int number) {
    json::object result = listed(R"({"name":")" + std::to_string(number) +
                                 R"(","outputSchema":{"const":1,"title":")" + title + "\"}}");
    tools.learn(result, false);
  };
  learn(0);
  for (int i = 0; i <= kFitting; ++i) learn(i);
  EXPECT_FALSE(tools.check_output("0", {{"structuredContent", 2}})) << "counted once";
  EXPECT_FALSE(tools.check_output("63", {{"structuredContent", 2}}));
  EXPECT_TRUE(tools.check_output("64", {{"structuredContent", 2}}));
}

TEST(ListedToolsTest, OutputWhoseSchemaIsTooDearToCompileFits) {
  ListedTools tools;
  json::array any_of;
  for (int i = 0; i < 60; ++i) {
    any_of.push_back({{"pattern", "^[\\u0080-\\uffee]{100}" + std::to_string(i) + "$"}});
  }
  json::object result = {
      {"tools", {{{"name", "dear"}, {"outputSchema", {{"type", "string"}, {"anyOf", any_of}}}}}}};
  tools.learn(result, false);
  EXPECT_TRUE(tools.check_output("dear", {{"structuredContent", 1}}));
}

TEST(ListedToolsTest, OutputWhoseSchemaIsTooLongFits) {
  ListedTools tools;
  const std::string title(ListedTools::kMaxSchema, 'x');
  json::object result =
      listed(R"({"name":"long","outputSchema":{"const":1,"title":")" + title + "\"}}");
  tools.learn(result, false);
  EXPECT_TRUE(tools.check_output("long", {{"structuredContent", 2}}));
}

TEST(ListedToolsTest, CompiledSchemasAreMadeAgainBeyondTheirMemory) {
  ListedTools tools;
  json::array schemas;
  for (std::size_t i = 0; i < JsonSchemaLimits::for_peers().max_patterns; ++i) {
    schemas.push_back({{"pattern", "^" + std::to_string(i)}});
  }
  const json::value schema = {{"type", "string"}, {"anyOf", schemas}};
  constexpr int kTools = 10;
  const std::size_t each =
      JsonSchema::compile(schema, {.limits = JsonSchemaLimits::for_peers()})->memory();
  ASSERT_GT(each * kTools, ListedTools::kMaxCompiled);
  json::array list;
  for (int i = 0; i < kTools; ++i) {
    list.push_back({{"name", std::to_string(i)}, {"outputSchema", schema}});
  }
  json::object result = {{"tools", list}};
  tools.learn(result, false);
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < kTools; ++i) {
      const std::string name = std::to_string(i);
      EXPECT_TRUE(tools.check_output(name, {{"structuredContent", "5"}}));
      EXPECT_FALSE(tools.check_output(name, {{"structuredContent", "x"}}));
      EXPECT_LE(tools.compiled_bytes(), ListedTools::kMaxCompiled);
      EXPECT_GE(tools.compiled_bytes(), each);
    }
  }
  tools.learn(result, false);
  EXPECT_EQ(tools.compiled_bytes(), 0) << "what is listed again is compiled again";
}

TEST(ListedToolsTest, LeaveInvalidToolsOut) {
  ListedTools tools;
  json::object result = listed(
      R"({"name":"bad","inputSchema":{"properties":{"a":{"type":"number","x-mcp-header":"A"}}}},
         {"name":"plain"},7,)" +
      std::string(kQuery));
  ::testing::internal::CaptureStderr();
  tools.learn(result, true);
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(log, HasSubstr("a tool is left out, because the header fields for its parameters "
                             "are invalid tool=bad why="));
  EXPECT_THAT(log, Not(HasSubstr("plain")));
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

TEST(ListedToolsTest, NamesAreBounded) {
  ListedTools tools;
  const auto learn = [&](char first) {
    json::object result = listed(R"({"name":")" + std::string(ListedTools::kMaxNames / 2, first) +
                                 R"(","annotations":{"readOnlyHint":true}})");
    tools.learn(result, false);
  };
  for (const char first : {'a', 'b', 'c', 'b'}) learn(first);
  EXPECT_TRUE(tools.may_be_repeated(std::string(ListedTools::kMaxNames / 2, 'a')));
  EXPECT_TRUE(tools.may_be_repeated(std::string(ListedTools::kMaxNames / 2, 'b')));
  EXPECT_FALSE(tools.may_be_repeated(std::string(ListedTools::kMaxNames / 2, 'c')));
}

}  // namespace
}  // namespace sluice
