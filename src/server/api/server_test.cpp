// sluice/server.hpp, as a program uses it.

#include <chrono>
#include <functional>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "json/json.hpp"
#include "server/handlers/public_server_test_support.hpp"
#include "sluice/testing.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

enum class Color { red, green };
struct Form {
  const std::string name;
  std::optional<int> age;
  double size = 1;
  bool sure = false;
  Color color = Color::red;
  std::vector<Color> others;
};
struct Topic {
  std::string topic;
  std::optional<std::string> style;
};
struct NestedTopic {
  Topic topic;
};
struct ManyNames {
  std::vector<std::string> names;
};
static_assert(detail::is_form<Form>());
static_assert(!detail::is_form<NestedTopic>() && !detail::is_form<ManyNames>());
static_assert(!detail::is_form<std::string>());

TEST_F(PublicServerTest, AStructIsTheSchemaTheArgumentsAndTheResult) {
  server.tool("add", "Adds", [](Add in) { return Total{in.a + in.b}; }, {.title = "Sum"});
  serve();
  const Tool& tool = *bench.catalog->index().find_tool("add");
  EXPECT_EQ(parse_json(tool.input_schema).value(), schema_of<Add>());
  EXPECT_EQ(parse_json(tool.output_schema).value(), schema_of<Total>(SchemaUse::encoding));
  EXPECT_EQ(tool.metadata.title, "Sum");
  const json::value answer = call("add", R"({"a":2,"b":3})");
  EXPECT_EQ(answer.at_pointer("/result/structuredContent/sum").as_int64(), 5);
  EXPECT_EQ(text_of(answer), R"({"sum":5})");
  EXPECT_TRUE(caller.channels.empty()) << "answered at once";
}

TEST_F(PublicServerTest, HandlersReturnTextContentResultsAndNothing) {
  server.tool("text", "", [] { return "hello"; });
  server.tool("number", "", [] { return 7; });
  server.tool("content", "", [] { return Content::image("x", "image/png"); });
  server.tool("result", "", [] { return ToolResult{.text = "bad", .is_error = true}; });
  server.tool("nothing", "", [] {});
  server.tool("raw", "", [](json::object in) { return json::value(std::move(in)); });
  serve();
  EXPECT_EQ(text_of(call("text", "{}")), "hello");
  EXPECT_EQ(text_of(call("number", "{}")), "7");
  EXPECT_EQ(call("content", "{}").at_pointer("/result/content/0/mimeType").as_string(),
            "image/png");
  EXPECT_TRUE(call("result", "{}").at_pointer("/result/isError").as_bool());
  EXPECT_EQ(text_of(call("nothing", "{}")), "");
  EXPECT_EQ(call("raw", R"({"x":[1]})").at_pointer("/result/structuredContent/x/0").as_int64(), 1);
}

TEST_F(PublicServerTest, ArraysAndScalarsAreStructuredWhereTheRevisionHasThem) {
  server.tool("number", "", [] { return 7; });
  server.tool("sums", "", [] { return std::vector<Total>{{1}, {2}}; });
  server.tool("raw", "", [] { return json::value(json::array{"a"}); },
              {.output_schema = {{"type", "array"}}});
  serve();
  EXPECT_EQ(bench.catalog->index().find_tool("number")->output_schema, R"({"type":"integer"})");
  EXPECT_EQ(parse_json(bench.catalog->index().find_tool("sums")->output_schema).value(),
            schema_of<std::vector<Total>>(SchemaUse::encoding));
  EXPECT_EQ(call("number", "{}").at_pointer("/result/structuredContent").as_int64(), 7);
  const json::value sums = call("sums", "{}");
  EXPECT_EQ(sums.at_pointer("/result/structuredContent/1/sum").as_int64(), 2);
  EXPECT_EQ(text_of(sums), R"([{"sum":1},{"sum":2}])");
  EXPECT_EQ(call("raw", "{}").at_pointer("/result/structuredContent/0").as_string(), "a");
  const json::value old =
      answer_of(bench.request("tools/call", R"("name":"raw","arguments":{})", caller));
  EXPECT_EQ(text_of(old), R"(["a"])");
  EXPECT_FALSE(old.at("result").as_object().contains("structuredContent"));
}

TEST_F(PublicServerTest, AToolWithoutParametersTakesNone) {
  server.tool("bare", "", [] { return "x"; });
  server.tool("raw", "", [](const json::object&) { return "x"; });
  serve();
  EXPECT_EQ(parse_json(bench.catalog->index().find_tool("bare")->input_schema)
                .value()
                .at("additionalProperties"),
            false);
  EXPECT_TRUE(call("bare", R"({"a":1})").at_pointer("/result/isError").as_bool());
  EXPECT_EQ(text_of(call("bare", "{}")), "x");
  EXPECT_EQ(text_of(call("raw", R"({"a":1})")), "x");
}

TEST_F(PublicServerTest, ResultsAreTheirCallersAndStaleUnlessTheServerSaysMore) {
  server = Server("test", "1", {.list_caching = {.fresh_for = 2s, .shared = true}});
  server.resource("test://mine", "mine", [] { return "x"; });
  server.resource("test://all", "all", [] { return "x"; },
                  {.caching = {.fresh_for = 5min, .shared = true}});
  server.resource_template("test://{day}", "days", [](const Variables&) { return "x"; },
                           {.caching = {.fresh_for = -1s}});
  serve();
  const auto caching = [&](std::string_view method, const std::string& params) {
    const json::value answer = answer_of(bench.request(method, modern("{}", params), caller));
    const json::object& result = answer.at("result").as_object();
    return to_json(json::array{result.at("ttlMs"), result.at("cacheScope")});
  };
  EXPECT_EQ(caching("resources/list", ""), R"([2000,"public"])");
  EXPECT_EQ(caching("server/discover", ""), R"([2000,"public"])");
  EXPECT_EQ(caching("resources/read", R"("uri":"test://mine")"), R"([0,"private"])");
  EXPECT_EQ(caching("resources/read", R"("uri":"test://all")"), R"([300000,"public"])");
  EXPECT_EQ(caching("resources/read", R"("uri":"test://monday")"), R"([0,"private"])");
}

TEST_F(PublicServerTest, TheShortestWaysToLogAndToReturn) {
  const std::string name = "Ada";
  server.tool("it", "", [&name](Call& call) -> Task<Total> {
    call.log(LoggingLevel::error, "read " + name);
    call.log(LoggingLevel::error, "as a literal");
    call.log(LoggingLevel::error, {{"read", name}}, "reader");
    co_return {5};
  });
  server.tool("yields", "", [&name](Call& /*call*/) -> Stream<Total> {
    co_yield log(LoggingLevel::error, "yielded " + name);
    co_return {6};
  });
  serve();
  for (const std::string tool : {"it", "yields"}) {
    bench.request("tools/call",
                  R"("name":")" + tool +
                      R"(","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",)"
                      R"("io.modelcontextprotocol/clientCapabilities":{},)"
                      R"("io.modelcontextprotocol/logLevel":"error"})",
                  caller);
    bench.run_all();
    for (const char* const each :
         {tool == "it" ? R"("data":"read Ada")" : R"("data":"yielded Ada")",
          tool == "it" ? R"({"read":"Ada"})" : R"("sum":6)"}) {
      EXPECT_THAT(caller.channel().written, HasSubstr(each));
    }
  }
}

TEST_F(PublicServerTest, ResourcesTemplatesAndPromptsMayTakeTheirTime) {
  server.resource("note://a", "a",
                  [](Call& call) -> Task<std::string> {
                    co_await call.sleep(1s);
                    co_return "text";
                  },
                  {.mime_type = "text/plain"});
  server.resource_template("note://{name}/x", "x", [](Name in) { return "of " + in.name; });
  server.prompt("write", "Writes",
                [](Topic in) { return "Write about " + in.topic + in.style.value_or(""); });
  server.completion(PromptRef{"write"}, "topic",
                    [](const std::string& typed) { return std::vector<std::string>{typed + "!"}; });
  serve();
  EXPECT_TRUE(
      answer_of(bench.request("resources/read", modern("{}", R"("uri":"note://a")"), caller))
          .is_null());
  bench.executors[0].advance(1s);
  const json::value read = answer_of("");
  EXPECT_EQ(read.at_pointer("/result/contents/0/text").as_string(), "text");
  EXPECT_EQ(read.at_pointer("/result/contents/0/mimeType").as_string(), "text/plain");
  EXPECT_TRUE(read.at_pointer("/result").as_object().contains("ttlMs"));
  EXPECT_EQ(
      answer_of(bench.request("resources/read", modern("{}", R"("uri":"note://b/x")"), caller))
          .at_pointer("/result/contents/0/text")
          .as_string(),
      "of b");
  const std::vector<PromptArgument>& arguments = bench.definition.prompts.front().arguments;
  ASSERT_EQ(arguments.size(), 2U);
  EXPECT_TRUE(arguments[0].required);
  EXPECT_FALSE(arguments[1].required);
  EXPECT_EQ(
      answer_of(bench.request("prompts/get",
                              modern("{}", R"("name":"write","arguments":{"topic":"C"})"), caller))
          .at_pointer("/result/messages/0/content/text")
          .as_string(),
      "Write about C");
  EXPECT_EQ(answer_of(bench.request("completion/complete",
                                    modern("{}", R"("ref":{"type":"ref/prompt","name":"write"},)"
                                                 R"("argument":{"name":"topic","value":"C"})"),
                                    caller))
                .at_pointer("/result/completion/values/0")
                .as_string(),
            "C!");
}

TEST_F(PublicServerTest, MiddlewareStandsAroundHandlers) {
  std::vector<std::string> heard;
  server.tool("add", "", [](Add in) { return Total{in.a + in.b}; });
  server.tool("late", "", [](Call& call) -> Task<std::string> {
    co_await call.sleep(2s);
    co_return "done";
  });
  server
      .use([&heard](Request& request) -> Task<> {
        const RequestEnd end = co_await request.next();
        heard.push_back(request.name() + (end.error ? " " + std::to_string(*end.error) : "") +
                        (end.cancelled ? " cancelled" : ""));
      })
      .use([](Request& request) -> Task<> {
        const int answer = co_await request.callback<int>([](Resolver<int> resolver) {
          std::thread([resolver]() mutable { resolver.succeed(42); }).join();
        });
        if (answer != 42 || request.principal() == "mallory") throw Error{403, "Not for you"};
        co_await request.next();
      });
  serve();
  EXPECT_EQ(call("add", R"({"a":1,"b":1})").at_pointer("/result/structuredContent/sum").as_int64(),
            2);
  call("none", "{}");
  call("late", "{}");
  bench.executors[0].advance(2s);
  EXPECT_EQ(text_of(answer_of({})), "done");
  call("late", "{}");
  caller.channel().close();
  bench.run_all();
  RecordingCaller mallory("mallory");
  bench.request("tools/list", modern("{}"), mallory);
  bench.run_all();
  EXPECT_EQ(error_code(mallory.channel().replies.back()), 403);
  EXPECT_EQ(heard,
            (std::vector<std::string>{"add", "none -32602", "late", "late cancelled", " 403"}));
}

TEST(SkillRemoval, TakesTheWholeSkill) {
  Server server("test", "1");
  const auto add = [&] {
    server.skill("acme/one", {{"SKILL.md", "---\nname: one\ndescription: d\n---\nx"},
                              {"references/MORE.md", "more"}});
  };
  add();
  server.resource("note://r", "r", [] { return std::string("r"); });
  testing::Client client(server);
  EXPECT_THROW(server.remove_resource("skill://acme/one/references/MORE.md"),
               std::invalid_argument);
  EXPECT_EQ(client.request("skills/list").result.at("skills").as_array().size(), 1U);
  EXPECT_TRUE(server.remove_resource("skill://acme/one/SKILL.md"));
  EXPECT_FALSE(server.remove_resource("skill://acme/one/SKILL.md"));
  const testing::Reply left = client.request("resources/list");
  ASSERT_EQ(left.result.at("resources").as_array().size(), 1U);
  EXPECT_TRUE(client.request("skills/list").error);
  add();
  EXPECT_EQ(client.request("skills/list").result.at("skills").as_array().size(), 1U);
}

TEST(ListCursors, AreGoodAtAnyServerAndAfterChanges) {
  const auto made = [] {
    Server made("test", "1", {.page_size = 2});
    for (const char* const name : {"a", "b", "c"}) {
      made.tool(name, "", [] { return std::string(); });
    }
    return made;
  };
  Server one = made();
  testing::Client first(one);
  testing::Client second(made());
  const json::object begun = first.request("tools/list").result;
  const json::object cursor{{"cursor", begun.at("nextCursor")}};
  const auto names = [&](testing::Client& client) {
    const testing::Reply rest = client.request("tools/list", cursor);
    if (rest.error) return rest.error->message;
    std::string out;
    for (const json::value& tool : rest.result.at("tools").as_array()) {
      out.append(tool.at("name").as_string());
    }
    return out;
  };
  EXPECT_EQ(names(second), "c");
  one.resource("note://r", "r", [] { return std::string(); });
  one.tool("d", "", [] { return std::string(); });
  one.remove_tool("a");
  EXPECT_EQ(names(first), "cd");
  one.remove_tool("b");
  EXPECT_THAT(names(first), HasSubstr("which may have changed; begin again without one"));
}

TEST_F(PublicServerTest, MistakesInADefinitionAreSaidWhenTheyAreMade) {
  EXPECT_THROW(server.completion(PromptRef{"none"}, "x",
                                 [](const std::string&) { return std::vector<std::string>(); }),
               std::invalid_argument);
  EXPECT_THROW(server.resource_template("note://{", "x", [] { return std::string(); }),
               std::invalid_argument);
  EXPECT_THROW(server.prompt("add", "", [](Add) { return std::string(); }), std::invalid_argument);
  EXPECT_THROW(Server("test", "1", {.state_keys = {"short"}}), std::invalid_argument);
  EXPECT_THROW(server.use(Middleware()), std::invalid_argument);
  EXPECT_THROW(server.tool("null", "", static_cast<std::string (*)()>(nullptr)),
               std::invalid_argument);
  EXPECT_THROW(server.tool("empty", "", std::function<std::string()>()), std::invalid_argument);
  json::object meta;
  for (int i = 0; i < 100; ++i) meta = {{"a", std::move(meta)}};
  const auto add = [&] { server.tool("deep", "", [] { return std::string(); }, {.meta = meta}); };
  EXPECT_THROW(add(), std::invalid_argument);
  meta = meta.at("a").as_object();
  EXPECT_NO_THROW(add());
}

}  // namespace
}  // namespace sluice
