// What results have beside their contents: `_meta` and cache hints.

#include <chrono>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "json/json.hpp"
#include "sluice/server.hpp"
#include "sluice/testing.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

const json::object kCostMeta{{"example.com/cost", 3}};

const json::object kServersOwn = {
    {"io.modelcontextprotocol/serverInfo", {{"name", "another"}, {"version", "9"}}},
    {"io.modelcontextprotocol/related-task", {{"taskId", "another"}}},
    {"example.com/cost", 3}};

json::object nested(int levels) {
  json::object out;
  for (int i = 1; i < levels; ++i) out = {{"a", std::move(out)}};
  return out;
}

/// A server each of whose results has kCostMeta.
Server marking_server() {
  Server server("test", "1");
  server.tool("mark", "", [] { return ToolResult{.text = "done", .meta = kCostMeta}; });
  server.tool("value", "", [] { return ToolResult{.structured = {{"n", 1}}}; });
  server.tool("text", "", [] { return ToolResult{.structured_text = R"({"n":1})"}; });
  server.tool("long", "", [] {
    return ToolResult{.text = "done", .meta = {{"a", std::string(100'000, 'x')}}};
  });
  server.tool("later", "", [](Call& call) -> Task<ToolResult> {
    co_await call.sleep(1s);
    co_return ToolResult{.text = "done", .meta = kCostMeta};
  });
  server.tool("deep", "", [] { return ToolResult{.text = "done", .meta = nested(101)}; });
  server.tool("deepest", "", [] { return ToolResult{.text = "done", .meta = nested(100)}; });
  server.tool("posing", "", [] { return ToolResult{.text = "done", .meta = kServersOwn}; });
  server.tool("posing_task", "", [] { return ToolResult{.text = "done", .meta = kServersOwn}; },
              {.tasks = TaskSupport::optional});
  server.prompt("posing", "", [] {
    return PromptResult{.messages = {{.content = Content::text("hi")}}, .meta = kServersOwn};
  });
  server.tool("block", "", [] {
    return std::vector<Content>{Content::text("one").with_meta(kCostMeta), Content::text("two")};
  });
  server.resource("note://a", "a",
                  [] {
                    return ResourceResult{
                        .contents = {{.uri = {}, .data = "text", .meta = {{"b", 2}}}},
                        .meta = kCostMeta};
                  },
                  {.caching = {.fresh_for = 1h, .shared = true}});
  server.resource("note://now", "now", [] {
    return ResourceResult{.contents = {{.uri = {}, .data = "12:00"}},
                          .caching = Caching{.fresh_for = 30s}};
  });
  server.prompt("p", "", [] {
    return PromptResult{.messages = {{.content = Content::text("hi")}}, .meta = kCostMeta};
  });
  return server;
}

class ResultTest : public ::testing::TestWithParam<const char*> {
 protected:
  json::value result(const std::string& method, json::object params) {
    return client.request(method, std::move(params)).result;
  }
  static const json::value& cost_in(const json::value& part) {
    return part.at("_meta").at("example.com/cost");
  }
  [[nodiscard]] static bool has_meta_blocks() { return std::string(GetParam()) >= "2025-06-18"; }
  [[nodiscard]] static bool has_cache_hints() { return std::string(GetParam()) >= "2026-07-28"; }

  Server server = marking_server();
  testing::Client client{server, {.revision = GetParam()}};
};

/// In the revision whose clients ask for the result of a task.
class ResultOfTaskTest : public ResultTest {};

TEST_P(ResultTest, OfToolsHaveMeta) {
  EXPECT_EQ(cost_in(client.call("mark").result), 3);
  EXPECT_EQ(cost_in(client.call("later").result), 3);
  EXPECT_EQ(json::value(client.call("long").result).at("_meta").at("a").as_string().size(),
            100'000U);
}

TEST_P(ResultTest, MetaThatIsNestedTooDeepIsLeftOut) {
  const testing::Reply deep = client.call("deep");
  EXPECT_EQ(deep.text(), "done");
  EXPECT_THAT(to_json(deep.result), Not(HasSubstr(R"("a":)")));
  EXPECT_THAT(to_json(client.call("deepest").result), HasSubstr(R"("a":)"));
}

TEST_P(ResultTest, NoMemberOfMetaComesTwice) {
  const json::value called(client.call("posing").result);
  const json::value got = result("prompts/get", {{"name", "posing"}});
  for (const json::value& each : {called, got}) {
    EXPECT_EQ(cost_in(each), 3);
    EXPECT_THAT(to_json(each), Not(HasSubstr("another")));
  }
}

TEST_P(ResultOfTaskTest, NoMemberOfMetaComesTwice) {
  const json::value begun(
      client.request("tools/call", {{"name", "posing_task"}, {"task", json::object()}}).result);
  const json::value& id = begun.at("task").at("taskId");
  const json::value end = result("tasks/result", {{"taskId", id}});
  EXPECT_EQ(end.at("_meta").at("io.modelcontextprotocol/related-task").at("taskId"), id);
  EXPECT_EQ(cost_in(end), 3);
}

TEST_P(ResultTest, BlocksHaveMetaWhereTheRevisionHasIt) {
  const json::value result(client.call("block").result);
  const json::value& first = result.at("content").at(0);
  EXPECT_EQ(first.as_object().contains("_meta"), has_meta_blocks());
  if (has_meta_blocks()) EXPECT_EQ(cost_in(first), 3);
  EXPECT_FALSE(result.at("content").at(1).as_object().contains("_meta"));
}

TEST_P(ResultTest, OfResourcesHaveMetaAndCacheHints) {
  const json::value a = result("resources/read", {{"uri", "note://a"}});
  EXPECT_EQ(cost_in(a), 3);
  EXPECT_EQ(a.at("contents").at(0).at("_meta").at("b"), 2);
  const json::value now = result("resources/read", {{"uri", "note://now"}});
  ASSERT_EQ(now.as_object().contains("ttlMs"), has_cache_hints());
  if (!has_cache_hints()) return;
  EXPECT_EQ(a.at("ttlMs"), 3'600'000);
  EXPECT_EQ(a.at("cacheScope"), "public");
  EXPECT_EQ(now.at("ttlMs"), 30'000);
  EXPECT_EQ(now.at("cacheScope"), "private");
}

TEST_P(ResultTest, OfPromptsHaveMeta) {
  EXPECT_EQ(cost_in(result("prompts/get", {{"name", "p"}})), 3);
}

TEST_P(ResultTest, StructuredContentIsAValueOrText) {
  for (const std::string tool : {"value", "text"}) {
    const testing::Reply reply = client.call(tool);
    EXPECT_EQ(reply.text(), R"({"n":1})") << tool;
    if (has_meta_blocks()) EXPECT_EQ(reply.structured(), (json::value{{"n", 1}})) << tool;
  }
}

std::string compact_name(const ::testing::TestParamInfo<const char*>& tested) {
  std::string name = tested.param;
  std::erase(name, '-');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Revisions, ResultTest,
                         ::testing::Values("2024-11-05", "2025-06-18", "2025-11-25", "2026-07-28"),
                         compact_name);
INSTANTIATE_TEST_SUITE_P(Revisions, ResultOfTaskTest, ::testing::Values("2025-11-25"),
                         compact_name);

}  // namespace
}  // namespace sluice
