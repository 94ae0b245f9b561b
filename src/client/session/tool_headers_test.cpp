#include "client/session/tool_headers.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <string_view>

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

TEST(ToolHeadersTest, MirrorWhatIsGiven) {
  ToolHeaders headers;
  json::object result = listed(kQuery);
  headers.learn(result);
  EXPECT_EQ(result.at("tools").as_array().size(), 1);
  EXPECT_THAT(
      headers.of_call("query", {{"region", "eu"},
                                {"limit", -7},
                                {"dry", true},
                                {"deep", {{"er", " zwölf"}}},
                                {"sql", "select"}}),
      ElementsAre(Pair("Mcp-Param-Region", "eu"), Pair("Mcp-Param-Limit", "-7"),
                  Pair("Mcp-Param-Dry", "true"), Pair("Mcp-Param-Er", "=?base64?IHp3w7ZsZg==?=")));
  EXPECT_THAT(headers.of_call("query", {{"region", nullptr}, {"limit", {1}}, {"deep", 3}}),
              IsEmpty());
  EXPECT_THAT(headers.of_call("other", {{"region", "eu"}}), IsEmpty());
}

TEST(ToolHeadersTest, LeaveInvalidToolsOut) {
  ToolHeaders headers;
  json::object result = listed(
      R"({"name":"bad","inputSchema":{"properties":{"a":{"type":"number","x-mcp-header":"A"}}}},
         {"name":"plain"},7,)" +
      std::string(kQuery));
  headers.learn(result);
  ASSERT_EQ(result.at("tools").as_array().size(), 3);
  EXPECT_EQ(result.at("tools").at(0).at("name"), "plain");
  // A tool that has changed is known as it is now.
  json::object changed = listed(R"({"name":"query","inputSchema":{"type":"object"}})");
  headers.learn(changed);
  EXPECT_THAT(headers.of_call("query", {{"region", "eu"}}), IsEmpty());
  json::object nothing;
  headers.learn(nothing);
  EXPECT_THAT(nothing, IsEmpty());
}

}  // namespace
}  // namespace sluice
