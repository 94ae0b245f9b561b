// sluice/server.hpp, as a program uses it.

#include "sluice/server.hpp"

#include <algorithm>
#include <atomic>
#include <future>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sstream>
#include <stdexcept>
#include <thread>
#include <tuple>

#include "core/text/utf8.hpp"
#include "json/json.hpp"
#include "rpc/error_codes.hpp"
#include "server/api/server_state.hpp"
#include "server/dispatch/server_test_support.hpp"
#include "sluice/concurrency.hpp"
#include "sluice/testing.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

struct Add {
  int a;
  int b;
};
struct Total {
  int sum = 0;
};
struct Name {
  std::string name;
};
enum class Color { red, green };
struct Form {
  const std::string name;
  std::optional<int> age;
  double size = 1;
  bool sure = false;
  Color color = Color::red;
  std::vector<Color> others;
};
struct Nested {
  Name name;
};
struct ManyNames {
  std::vector<std::string> names;
};
static_assert(detail::is_form<Form>());
static_assert(!detail::is_form<Nested>() && !detail::is_form<ManyNames>());
static_assert(!detail::is_form<std::string>());

struct Topic {
  std::string topic;
  std::optional<std::string> style;
};

/// A server whose definition a bench serves.
class PublicServerTest : public ::testing::Test {
 protected:
  void serve() {
    const ServerDefinition made = server.state()->definition();
    bench.definition.tools = made.tools;
    bench.definition.resources = made.resources;
    bench.definition.resource_templates = made.resource_templates;
    bench.definition.prompts = made.prompts;
    bench.definition.middleware = made.middleware;
    bench.definition.workers = made.workers;
    bench.definition.logs = true;
    bench.definition.list_caching = made.list_caching;
    bench.serve();
  }
  static std::string modern(std::string_view capabilities, std::string_view more = {}) {
    std::string out =
        R"("_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","progressToken":7,)"
        R"("io.modelcontextprotocol/clientCapabilities":)";
    out.append(capabilities).append("}");
    if (!more.empty()) out.append(",").append(more);
    return out;
  }
  /// Calls a tool as a client of 2026-07-28. Returns the answer, given at once or through the
  /// channel; null if there is none yet.
  json::value call(std::string_view tool, std::string_view arguments,
                   std::string_view capabilities = "{}", std::string_view more = {}) {
    std::string members =
        R"("name":")" + std::string(tool) + R"(","arguments":)" + std::string(arguments);
    if (!more.empty()) members.append(",").append(more);
    return answer_of(bench.request("tools/call", modern(capabilities, members), caller));
  }
  json::value answer_of(const std::string& now) {
    bench.run_all();
    if (!now.empty()) return parse_json(now).value();
    const RecordingChannel& channel = caller.channel();
    if (!channel.replies.empty()) return parse_json(channel.replies.back()).value();
    // The last event is the answer.
    const std::size_t data = channel.written.rfind("data: ");
    if (data == std::string::npos) return nullptr;
    return parse_json(channel.written.substr(data + 6)).value();
  }
  static std::string text_of(const json::value& answer) {
    return std::string(answer.at_pointer("/result/content/0/text").as_string());
  }
  std::size_t events() {
    std::size_t count = 0;
    const std::string& written = caller.channel().written;
    for (std::size_t at = 0; (at = written.find("data: ", at)) != std::string::npos; ++at) ++count;
    return count;
  }

  Server server{"test", "1"};
  ServerBench bench;
  RecordingCaller caller;
};

TEST_F(PublicServerTest, ATaskDoesNotWaitForTheRoomOfTheCallThatItWas) {
  bool finished = false;
  server.tool("first", "",
              [&](Call& call) -> Task<Total> {
                while (call.text(std::string(1000, 'x'))) {
                }
                call.begin_task();
                co_await call.room();
                EXPECT_TRUE(call.text("not sent"));
                finished = true;
                co_return Total{};
              },
              {.tasks = TaskSupport::required, .asks_first = true});
  serve();
  const json::value created =
      call("first", "{}", R"({"extensions":{"io.modelcontextprotocol/tasks":{}}})");
  EXPECT_EQ(created.at_pointer("/result/resultType"), "task");
  EXPECT_TRUE(finished);
}

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

TEST_F(PublicServerTest, ThreeKindsOfFailureAreToldApart) {
  server.tool("failure", "", []() -> std::string { throw ToolError("no such city"); });
  server.tool("error", "", []() -> std::string { throw Error{-32050, "try later"}; });
  server.tool("surprise", "", []() -> std::string { throw std::runtime_error("secret"); });
  server.tool("late", "", [](Call& call) -> Task<std::string> {
    co_await call.sleep(1s);
    throw std::runtime_error("secret");
  });
  serve();
  const json::value failure = call("failure", "{}");
  EXPECT_TRUE(failure.at_pointer("/result/isError").as_bool());
  EXPECT_EQ(text_of(failure), "no such city");
  EXPECT_EQ(call("error", "{}").at_pointer("/error/code").as_int64(), -32050);
  EXPECT_EQ(call("surprise", "{}").at_pointer("/error/message").as_string(), "Internal error");
  EXPECT_TRUE(call("late", "{}").is_null());
  bench.executors[0].advance(1s);
  EXPECT_EQ(answer_of("").at_pointer("/error/message").as_string(), "Internal error");
}

TEST_F(PublicServerTest, WhatLeavesIsJsonWhateverHandlersSay) {
  constexpr const char* kBytes = "caf\xE9 \xFF";
  constexpr const char* kReadable = "caf\uFFFD \uFFFD";
  server.tool("text", "\xFF", [=] { return kBytes; });
  server.tool("value", "", [=] { return json::value{{kBytes, kBytes}}; });
  server.tool("failure", "", [=]() -> std::string { throw ToolError(kBytes); });
  server.tool("error", "", [=]() -> std::string { throw Error{1, kBytes, "not\njson"}; });
  server.tool("lines", "", [] { return ToolResult{.structured_text = "{\n\"a\":\r\n1}"}; });
  server.tool("broken", "", [] { return ToolResult{.structured_text = "{} {}"}; });
  server.tool("said", "", [=](Call& call) -> Task<std::string> {
    call.text(kBytes);
    call.progress(2, 3, kBytes);
    call.log(LoggingLevel::error, json::value{kBytes}, kBytes);
    co_await call.sleep(1s);
    co_return kBytes;
  });
  server.resource("note://a", "a",
                  [] { return ResourceContents{.uri = "note://a", .data = "\xFF"}; });
  serve();
  EXPECT_EQ(text_of(call("text", "{}")), kReadable);
  EXPECT_EQ(call("value", "{}").at_pointer("/result/structuredContent").as_object().begin()->key(),
            kReadable);
  EXPECT_EQ(text_of(call("failure", "{}")), kReadable);
  EXPECT_EQ(call("error", "{}").at("error"),
            (json::value{{"code", 1}, {"message", kReadable}, {"data", "not\njson"}}));
  EXPECT_EQ(bench.request("tools/call", modern("{}", R"("name":"lines","arguments":{})"), caller)
                .find_first_of("\r\n"),
            std::string::npos);
  EXPECT_EQ(call("broken", "{}").at_pointer("/error/message").as_string(),
            "Internal error: tool 'broken' has made no valid result");
  const json::value read =
      answer_of(bench.request("resources/read", modern("{}", R"("uri":"note://a")"), caller));
  EXPECT_EQ(read.at_pointer("/result/contents/0"),
            (json::value{{"uri", "note://a"}, {"text", "\uFFFD"}}));
  call("said", "{}", R"({},"io.modelcontextprotocol/logLevel":"debug")");
  bench.executors[0].advance(1s);
  EXPECT_EQ(text_of(answer_of("")), kReadable);
  EXPECT_EQ(events(), 4U);
  EXPECT_TRUE(is_valid_utf8(caller.channel().written));
}

/// Arrays in arrays, `levels` of them.
json::value nested(std::size_t levels) {
  json::value out;
  for (std::size_t i = 0; i < levels; ++i) {
    json::array around;
    around.push_back(std::move(out));
    out = std::move(around);
  }
  return out;
}

TEST_F(PublicServerTest, TheTextsOfErrorsHaveALimit) {
  std::string message = "x";
  while (message.size() <= Error::kMaxText) message += "\u00E9";
  server.tool("error", "", [&]() -> std::string {
    throw Error{1, message, std::string(Error::kMaxText + 1, '1')};
  });
  server.tool("fits", "", [&]() -> std::string {
    throw Error{1, message.substr(0, Error::kMaxText - 1),
                std::string(Error::kMaxText - 2, ' ') + "[]"};
  });
  server.prompt("failure", "", [&]() -> std::string { throw ToolError(message); });
  serve();
  ::testing::internal::CaptureStderr();
  const json::value error = call("error", "{}").at("error");
  call("error", "{}");
  const std::string logged = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(error.at("message").as_string(), message.substr(0, Error::kMaxText - 1))
      << "cut between characters";
  EXPECT_FALSE(error.as_object().contains("data"));
  EXPECT_EQ(std::ranges::count(logged, '\n'), 1) << logged;
  EXPECT_THAT(logged, HasSubstr("tool=error"));
  const json::value fits = call("fits", "{}").at("error");
  EXPECT_EQ(fits.at("message").as_string().size(), Error::kMaxText - 1);
  EXPECT_EQ(fits.at("data"), json::array());
  EXPECT_EQ(answer_of(bench.request("prompts/get", modern("{}", R"("name":"failure")"), caller))
                .at_pointer("/error/message")
                .as_string()
                .size(),
            Error::kMaxText - 1);
}

TEST_F(PublicServerTest, WhatIsSaidBesideTextHasALimit) {
  const std::string text(Call::kMaxMessage + 1, 'x');
  server.tool("said", "", [&](Call& call) -> Task<std::string> {
    call.progress(1, {}, text);
    call.log(LoggingLevel::error, json::value(text), text);
    json::array numbers;
    while (numbers.size() < 30'000) numbers.push_back(0.123456789);
    call.log(LoggingLevel::error, numbers);
    call.log(LoggingLevel::error, nested(kMaxNestedDepth + 1));
    call.log(LoggingLevel::error, nested(kMaxNestedDepth));
    co_return "done";
  });
  serve();
  call("said", "{}", R"({},"io.modelcontextprotocol/logLevel":"debug")");
  std::vector<json::value> params;
  std::istringstream events(caller.channel().written);
  for (std::string line; std::getline(events, line);) {
    if (!line.starts_with("data: ")) continue;
    const json::value message = parse_json(line.substr(6)).value();
    if (message.as_object().contains("params")) params.push_back(message.at("params"));
  }
  ASSERT_EQ(params.size(), 5U);
  EXPECT_EQ(params[0].at("message").as_string().size(), Call::kMaxMessage);
  EXPECT_EQ(params[1].at("logger").as_string().size(), Call::kMaxMessage);
  EXPECT_EQ(params[1].at("data"), "(the data of this log message is too long)");
  EXPECT_EQ(params[2].at("data"), "(the data of this log message is too long)");
  EXPECT_EQ(params[3].at("data"), "(the data of this log message is nested too deep)");
  EXPECT_EQ(params[4].at("data"), nested(kMaxNestedDepth));
}

TEST_F(PublicServerTest, ResultsAndQuestionsAreAsDeepAsAPeerCanRead) {
  for (const bool fits : {true, false}) {
    const std::size_t levels = kMaxNestedDepth + (fits ? 0 : 1);
    server.tool("json", "", [=] { return nested(levels); });
    server.tool("value", "", [=] {
      return ToolResult{.value = std::make_shared<const json::value>(nested(levels))};
    });
    server.tool("text", "", [=] { return ToolResult{.structured_text = to_json(nested(levels))}; });
    server.tool("asks", "", [=](Call& call) -> Task<std::string> {
      co_await call.ask({{.method = "roots/list", .params = {{"a", nested(levels - 1)}}}});
      co_return "not yet";
    });
    serve();
    for (const char* const tool : {"json", "value", "text"}) {
      const json::value answer = call(tool, "{}");
      if (fits) {
        EXPECT_EQ(answer.at_pointer("/result/structuredContent"), nested(levels)) << tool;
      } else {
        EXPECT_EQ(answer.at_pointer("/error/code"), kInternalError) << tool;
      }
    }
    const json::value asked = call("asks", "{}", R"({"roots":{}})");
    if (fits) {
      EXPECT_EQ(asked.at_pointer("/result/resultType"), "input_required");
    } else {
      EXPECT_EQ(asked.at_pointer("/error/message"), "Internal error");
    }
  }
}

TEST_F(PublicServerTest, ACallMayTakeAsLongAsADurationCanBe) {
  server = Server("test", "1", {.call_timeout = std::chrono::nanoseconds::max()});
  std::optional<TimePoint> deadline;
  server.tool("deadline", "", [&](Call& call) -> Task<std::string> {
    deadline = call.deadline();
    co_await call.sleep(1h);
    co_return "done";
  });
  serve();
  bench.executors[0].advance(1s);
  call("deadline", "{}");
  ASSERT_TRUE(deadline);
  EXPECT_GT(*deadline, bench.executors[0].clock().now() + std::chrono::hours(1000));
  bench.executors[0].advance(1h);
  EXPECT_EQ(text_of(answer_of("")), "done");
}

TEST_F(PublicServerTest, AHandlerThatFailsAgainAndAgainIsLoggedByNameAndOnce) {
  server.tool("broken", "", []() -> std::string { throw std::runtime_error("of no use"); });
  server.tool("late", "", [](Call& call) -> Task<std::string> {
    co_await call.sleep(0s);
    throw std::runtime_error("of no use");
  });
  serve();
  ::testing::internal::CaptureStderr();
  for (int i = 0; i < 100; ++i) call("broken", "{}");
  call("late", "{}");
  bench.executors[0].advance(1s);
  const std::string logged = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(std::ranges::count(logged, '\n'), 2) << logged;
  EXPECT_NE(logged.find("a handler failed tool=broken what=\"of no use\""), std::string::npos);
  EXPECT_NE(logged.find("a handler failed tool=late what=\"of no use\""), std::string::npos);
}

TEST_F(PublicServerTest, AStreamShowsWhatItYieldsBeforeItsResult) {
  server.tool("count", "", [](Add in) -> Stream<Total> {
    Total total;
    for (int i = in.a; i <= in.b; ++i) {
      total.sum += i;
      co_yield text(std::to_string(i));
    }
    co_return total;
  });
  serve();
  const json::value answer = call("count", R"({"a":1,"b":3})");
  EXPECT_EQ(answer.at_pointer("/result/structuredContent/sum").as_int64(), 6);
  EXPECT_EQ(events(), 4U);
  EXPECT_NE(caller.channel().written.find(R"("message":"3")"), std::string::npos);
}

TEST_F(PublicServerTest, AStreamWaitsForASlowPeerAndGoesOnWhenItReads) {
  int made = 0;
  server.tool("many", "", [&made]() -> Stream<Total> {
    for (; made < 100'000; ++made) co_yield text("a line of some length to fill the buffer");
    co_return Total{made};
  });
  serve();
  EXPECT_TRUE(bench.request("tools/call", modern("{}", R"("name":"many")"), caller).empty());
  caller.channel().writable = false;
  bench.executors[0].advance({});
  const int before = made;
  EXPECT_LT(before, 100'000);
  for (int i = 0; i < 100'000 && made < 100'000; ++i) {
    caller.channel().written.clear();
    caller.channel().drain();
    bench.executors[0].advance({});
  }
  EXPECT_EQ(answer_of("").at_pointer("/result/structuredContent/sum").as_int64(), 100'000);
}

TEST_F(PublicServerTest, CancellationDestroysTheCoroutineWhereItWaits) {
  struct Guard {
    bool* gone;
    ~Guard() { *gone = true; }
  };
  bool gone = false;
  std::stop_token token;
  server.tool("wait", "", [&](Call& call) -> Task<std::string> {
    const Guard guard{&gone};
    token = call.stop_token();
    co_await call.sleep(1h);
    co_return "never";
  });
  serve();
  EXPECT_TRUE(call("wait", "{}").is_null());
  EXPECT_FALSE(gone);
  caller.channel().close();
  bench.run_all();
  EXPECT_TRUE(gone);
  EXPECT_TRUE(token.stop_requested());
  EXPECT_EQ(bench.executors[0].timers(), 0U);
}

TEST_F(PublicServerTest, ACharacterMayBeSplitBetweenTwoTexts) {
  server.tool("it", "", [](Call& call) {
    for (const char* const part : {"1\xe2\x82", "\xac", "2\xe2", "\x82",
                                   "\xac"
                                   "3\xe2"})
      call.text(part);
    return 1;
  });
  serve();
  call("it", "{}");
  std::string heard;
  const std::string& written = caller.channel().written;
  static constexpr std::string_view kMessage = R"("message":")";
  for (std::size_t at = 0; (at = written.find(kMessage, at)) != std::string::npos;) {
    at += kMessage.size();
    heard += written.substr(at, written.find('"', at) - at);
  }
  EXPECT_EQ(heard, "1\u20ac2\u20ac3\ufffd");
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

/// Uses everything of its call when it is destroyed.
struct LastWords {
  explicit LastWords(Call& of) : call(&of) {}
  LastWords(const LastWords&) = delete;
  LastWords& operator=(const LastWords&) = delete;
  ~LastWords() {
    said = true;
    heard = call->log(LoggingLevel::info, "bye") || call->progress(1) || call->text("bye");
    call->disconnect(1ms);
    key = call->idempotency_key();
    call->begin_task();
    std::ignore = call->ask({{.method = "roots/list", .key = "a"}});
    std::ignore = call->sleep(1h);
    std::ignore = call->room();
  }
  Call* call;
  static inline bool said;
  static inline bool heard;
  static inline std::string key;
};

TEST_F(PublicServerTest, DestructorsOfACoroutineThatIsGivenUpMayUseTheCall) {
  server = Server("test", "1", {.call_timeout = 5s});
  std::promise<void> running;
  std::promise<void> go_on;
  server.tool("wait", "", [](Call& call) -> Task<std::string> {
    const LastWords words(call);
    co_await call.sleep(1h);
    co_return "never";
  });
  server.tool("work", "", [&](Call& call) -> Task<std::string> {
    const LastWords words(call);
    co_await call.in_background([&] {
      running.set_value();
      go_on.get_future().wait();
    });
    co_return "never";
  });
  const auto is_said = [] { return std::exchange(LastWords::said, false); };
  serve();

  EXPECT_TRUE(call("wait", "{}").is_null());
  caller.channel().close();
  bench.run_all();
  EXPECT_TRUE(is_said());
  EXPECT_FALSE(LastWords::heard);
  EXPECT_NE(std::exchange(LastWords::key, ""), "");

  EXPECT_TRUE(call("wait", "{}").is_null());
  bench.executors[0].advance(5s);
  EXPECT_EQ(answer_of("").at_pointer("/error/code").as_int64(), kTimedOut);
  EXPECT_TRUE(is_said());

  call("work", "{}");
  running.get_future().wait();
  caller.channel().close();
  bench.run_all();
  EXPECT_FALSE(is_said());
  LastWords::key.clear();
  go_on.set_value();
  while (!LastWords::said) bench.run_all();
  EXPECT_FALSE(LastWords::heard);
  EXPECT_NE(LastWords::key, "");
}

TEST_F(PublicServerTest, WhatADestructorWaitsForIsNoConcernOfACallThatIsOver) {
  static std::optional<Resolver<int>> resolver;
  static std::optional<Awaiting<void>> slept;
  struct Waits {
    Call* call;
    ~Waits() {
      std::ignore = call->callback<int>([](Resolver<int> it) { resolver = std::move(it); });
      slept = call->sleep(1h);
    }
  };
  server.tool("wait", "", [](Call& call) -> Task<std::string> {
    const Waits waits{&call};
    co_await call.sleep(1h);
    co_return "never";
  });
  serve();
  EXPECT_TRUE(call("wait", "{}").is_null());
  caller.channel().close();
  bench.run_all();
  ASSERT_TRUE(resolver && slept);
  EXPECT_EQ(bench.executors[0].timers(), 0U);
  resolver->succeed(7);
  EXPECT_EQ(bench.executors[0].run(), 0U);
  resolver.reset();
  slept.reset();
}

TEST_F(PublicServerTest, WhatIsAwaitedMayOutliveItsCall) {
  std::optional<Awaiting<void>> slept;
  std::optional<Awaiting<std::vector<json::value>>> asked;
  server.tool("keep", "", [&](Call& call) -> Task<std::string> {
    slept = call.sleep(1h);
    asked = call.ask({{.method = "roots/list"}});
    co_await call.sleep(1s);
    co_return "kept";
  });
  serve();
  bench.request("initialize", R"("protocolVersion":"2025-11-25","capabilities":{"roots":{}})",
                caller);
  bench.request("tools/call", R"("name":"keep")", caller);
  bench.executors[0].advance(1s);
  EXPECT_EQ(text_of(answer_of("")), "kept");
  ASSERT_TRUE(slept && asked);
  slept.reset();
  asked.reset();
  EXPECT_EQ(bench.executors[0].run(), 0U);
}

TEST_F(PublicServerTest, ADestructorMayEndTheCallThatGoesOnWithoutIt) {
  // The client gets the question as the result, which ends the call while with_timeout() gives up
  // its task.
  struct Asks {
    Call* call;
    ~Asks() { std::ignore = call->ask({{.method = "roots/list", .key = "a"}}); }
  };
  server.tool("ask", "", [](Call& call) -> Task<std::string> {
    co_await with_timeout(1s, [](Call& in) -> Task<> {
      const Asks asks{&in};
      co_await in.sleep(1h);
    }(call));
    co_return "never";
  });
  serve();
  EXPECT_TRUE(call("ask", "{}", R"({"roots":{}})").is_null());
  bench.executors[0].advance(1s);
  EXPECT_EQ(answer_of("").at_pointer("/result/resultType"), "input_required");
}

TEST_F(PublicServerTest, ACallThatTakesTooLongFails) {
  server = Server("test", "1", {.call_timeout = 5s});
  server.tool("wait", "", [](Call& call) -> Task<std::string> {
    EXPECT_TRUE(call.deadline().has_value());
    co_await call.sleep(1h);
    co_return "never";
  });
  serve();
  EXPECT_TRUE(call("wait", "{}").is_null());
  ::testing::internal::CaptureStderr();
  bench.executors[0].advance(5s);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr("tool=wait what=\"it took longer than call_timeout\""));
  EXPECT_EQ(answer_of("").at_pointer("/error/code").as_int64(), kTimedOut);
}

TEST_F(PublicServerTest, QuestionsThatAreAskedTogetherHaveKeysOfTheirOwn) {
  server.tool("ask", "", [](Call& call) -> Task<std::string> {
    // The third question has the default key input-3.
    for (const std::string key : {"input-3", "twice"}) {
      try {
        co_await call.ask({{.method = "roots/list", .key = key},
                           {.method = "roots/list", .key = "twice"},
                           {.method = "roots/list"}});
      } catch (const std::logic_error& error) {
        call.text(error.what());
      }
    }
    co_return "asked";
  });
  serve();
  call("ask", "{}", R"({"roots":{}})");
  for (const std::string key : {"input-3", "twice"}) {
    EXPECT_THAT(caller.channel().written,
                HasSubstr("two questions of a handler have the key " + key));
  }
}

template <class Base>
struct Silent final : Base {
  using Base::Base;
  [[nodiscard]] const char* what() const noexcept override { return nullptr; }
};

TEST_F(PublicServerTest, AnExceptionMaySayNothing) {
  server.tool("fail", "", []() -> std::string { throw Silent<std::exception>(); });
  server.tool("fail_for_the_model", "", []() -> std::string { throw Silent<ToolError>("no"); });
  server.resource("note://a", "a", []() -> std::string { throw Silent<ToolError>("no"); });
  serve();
  EXPECT_EQ(call("fail", "{}").at_pointer("/error/code").as_int64(), kInternalError);
  const json::value failure = call("fail_for_the_model", "{}");
  EXPECT_TRUE(failure.at_pointer("/result/isError").as_bool());
  EXPECT_EQ(text_of(failure), "");
  const json::value unread =
      answer_of(bench.request("resources/read", modern("{}", R"("uri":"note://a")"), caller));
  EXPECT_EQ(unread.at_pointer("/error/message"), "");
}

TEST_F(PublicServerTest, AQuestionRunsTheHandlerAgainWithTheAnswer) {
  int runs = 0;
  server.tool("greet", "", [&runs](Call& call) -> Task<std::string> {
    ++runs;
    const auto answer = co_await call.elicit<Name>("Your name?", "who");
    co_return answer ? "Hello, " + answer.content->name : "Hello";
  });
  serve();
  constexpr std::string_view kCan = R"({"elicitation":{}})";
  const json::value asked = call("greet", "{}", kCan);
  EXPECT_EQ(asked.at_pointer("/result/resultType").as_string(), "input_required");
  const json::value& question = asked.at_pointer("/result/inputRequests/who");
  EXPECT_EQ(question.at_pointer("/params/message").as_string(), "Your name?");
  EXPECT_FALSE(
      question.at_pointer("/params/requestedSchema").as_object().contains("additionalProperties"));
  const std::string state =
      R"("requestState":)" + to_json(asked.at_pointer("/result/requestState"));
  const json::value told = call(
      "greet", "{}", kCan,
      R"("inputResponses":{"who":{"action":"accept","content":{"name":"Ada","age":9}}},)" + state);
  EXPECT_EQ(text_of(told), "Hello, Ada") << "what was not asked for does no harm";
  EXPECT_EQ(runs, 2);
  EXPECT_EQ(text_of(call("greet", "{}", kCan,
                         R"("inputResponses":{"who":{"action":"decline"}},)" + state)),
            "Hello");
  EXPECT_EQ(call("greet", "{}").at_pointer("/error/code").as_int64(), -32021);
}

TEST_F(PublicServerTest, ACompletionIsNotAnsweredWithAQuestion) {
  server.prompt("greet", "", [](const Name& in) { return in.name; });
  server.completion(PromptRef{"greet"}, "name",
                    [](const std::string&, Call& call) -> Task<std::vector<std::string>> {
                      const auto answer = co_await call.elicit<Name>("Your name?");
                      co_return std::vector{answer.content->name};
                    });
  serve();
  const json::value answer = answer_of(
      bench.request("completion/complete",
                    modern(R"({"elicitation":{}})", R"("ref":{"type":"ref/prompt","name":"greet"},)"
                                                    R"("argument":{"name":"name","value":""})"),
                    caller));
  EXPECT_EQ(answer.at_pointer("/error/code").as_int64(), -32600);
}

TEST_F(PublicServerTest, AllRunsOfOneRequestHaveOneKey) {
  std::vector<std::string> keys;
  server.tool("pay", "", [&keys](Call& call) -> Task<std::string> {
    const std::string& key = call.idempotency_key();
    keys.push_back(key);
    const auto answer = co_await call.elicit<Name>("Your name?", "who");
    co_return answer ? answer.content->name : "nobody";
  });
  serve();
  constexpr std::string_view kCan = R"({"elicitation":{}})";
  const json::value asked = call("pay", "{}", kCan);
  const std::string retry = R"("inputResponses":{"who":{"action":"decline"}},"requestState":)" +
                            to_json(asked.at_pointer("/result/requestState"));
  call("pay", "{}", kCan, retry);
  call("pay", "{}", kCan, retry);  // replayed
  call("pay", "{}", kCan);
  call("pay", "{}");
  ASSERT_EQ(keys.size(), 5U);
  EXPECT_FALSE(keys[0].empty());
  EXPECT_EQ(keys[1], keys[0]);
  EXPECT_EQ(keys[2], keys[0]);
  EXPECT_NE(keys[3], keys[0]);
  EXPECT_NE(keys[4], keys[3]);
}

TEST_F(PublicServerTest, ABlockingHandlerRunsOnAThreadOfItsOwn) {
  std::thread::id worker;
  server.tool("slow", "", blocking([&worker](Add in, Call& call) {
                worker = std::this_thread::get_id();
                for (int i = 0; i < 100; ++i) call.text("working");
                return Total{in.a * in.b};
              }));
  serve();
  bench.request("tools/call", modern("{}", R"("name":"slow","arguments":{"a":6,"b":7})"), caller);
  json::value answer;
  while (caller.channel().finishes == 0 && caller.channel().replies.empty()) bench.run_all();
  answer = answer_of("");
  EXPECT_EQ(answer.at_pointer("/result/structuredContent/sum").as_int64(), 42);
  EXPECT_EQ(events(), 101U);
  EXPECT_NE(worker, std::this_thread::get_id());
}

TEST_F(PublicServerTest, ABlockingHandlerWhoseCallIsCancelledIsLetGo) {
  std::promise<void> begun;
  std::promise<void> ended;
  server.tool("slow", "", blocking([&](Call& call) {
                begun.set_value();
                while (call.text("working")) {
                }
                ended.set_value();
                return "never";
              }));
  serve();
  bench.request("tools/call", modern("{}", R"("name":"slow")"), caller);
  begun.get_future().wait();
  caller.channel().close();
  const std::future<void> end = ended.get_future();
  while (end.wait_for(0s) != std::future_status::ready) bench.run_all();
}

TEST_F(PublicServerTest, ABlockingHandlerWhoseClientDoesNotReadKeepsNoThreadFromOthers) {
  Server narrow("test", "1", {.workers = 1});
  std::promise<void> stopped;
  bool endless = false;
  narrow.tool("talk", "", blocking([&](Call& call) {
                const std::string text(10'000, 'x');
                for (int i = 0; endless || i < 200; ++i) {
                  if (call.text(text)) continue;
                  stopped.set_value();
                  break;
                }
                return "said";
              }));
  narrow.tool("work", "", [](Call& call) -> Task<std::string> {
    co_await call.in_background([] {});
    co_return "done";
  });
  server = narrow;
  serve();
  for (const bool for_ever : {false, true}) {
    endless = for_ever;
    RecordingCaller unread;
    bench.request("tools/call", modern("{}", R"("name":"talk")"), unread);
    unread.channel().writable = false;
    RecordingCaller other("bob");
    bench.request("tools/call", modern("{}", R"("name":"work")"), other);
    const auto until = std::chrono::steady_clock::now() + 20s;
    while (other.channel().replies.empty() && std::chrono::steady_clock::now() < until) {
      bench.run_all();
    }
    ASSERT_EQ(other.channel().replies.size(), 1U);
    EXPECT_THAT(other.channel().replies[0], HasSubstr("done"));
    if (for_ever) {
      stopped.get_future().wait();
      bench.run_all();
    }
    EXPECT_LT(unread.channel().written.size(), 1'000'000U);
    unread.channel().drain();
    bench.run_all();
    EXPECT_THAT(unread.channel().written,
                HasSubstr(for_ever ? "Your streams hold as much memory as they may" : "said"));
    EXPECT_GT(unread.channel().written.size(), 2'000'000U);
  }
}

TEST_F(PublicServerTest, AValueFromAnotherThreadWakesTheCoroutine) {
  std::optional<Resolver<int>> resolver;
  server.tool("wait", "", [&resolver](Call& call) -> Task<Total> {
    co_return Total{co_await call.callback<int>([&resolver](Resolver<int> it) { resolver = it; })};
  });
  serve();
  EXPECT_TRUE(call("wait", "{}").is_null());
  std::thread([&resolver] { resolver->succeed(9); }).join();
  EXPECT_EQ(answer_of("").at_pointer("/result/structuredContent/sum").as_int64(), 9);
  // Nobody waits any more.
  resolver->succeed(10);
  bench.run_all();
}

/// Only so many moves and copies of it on this thread succeed as `budget` says.
class Fragile {
 public:
  Fragile() = default;
  Fragile(const Fragile& /*other*/) { spend(); }
  Fragile(Fragile&& /*other*/) { spend(); }  // NOLINT(performance-noexcept-move-constructor)
  Fragile& operator=(const Fragile&) = delete;
  Fragile& operator=(Fragile&&) = delete;
  ~Fragile() = default;

  static inline thread_local int budget = 0;

 private:
  static void spend() {
    if (budget-- <= 0) throw Error{7, "it cannot be moved", {}};
  }
};

TEST_F(PublicServerTest, AValueThatCannotBeMovedFailsItsWaiter) {
  static constexpr int kEnough = 20;
  std::optional<Resolver<Fragile>> resolver;
  server.tool("callback", "", [&resolver](Call& call) -> Task<std::string> {
    co_await call.callback<Fragile>([&resolver](Resolver<Fragile> it) { resolver = it; });
    co_return "moved";
  });
  server.tool("in_background", "", [](Add in, Call& call) -> Task<std::string> {
    co_await call.in_background([&in] {
      Fragile::budget = in.a;
      return Fragile();
    });
    co_return "moved";
  });
  serve();
  const auto is_failure = [](const json::value& answer) {
    const json::value* const error = answer.as_object().if_contains("error");
    return error != nullptr && error->at("code").as_int64() == 7;
  };
  int failed = 0;
  for (int budget = 0; budget <= kEnough; ++budget) {
    EXPECT_TRUE(call("callback", "{}").is_null());
    const Fragile value;
    Fragile::budget = budget;
    try {
      resolver->succeed(value);
    } catch (const Error&) {
      resolver->fail(std::current_exception());
    }
    const json::value answer = answer_of("");
    ASSERT_FALSE(answer.is_null()) << budget;
    if (is_failure(answer)) ++failed;
  }
  // There are several places where it is moved.
  EXPECT_GT(failed, 2);
  EXPECT_LT(failed, kEnough);

  for (int budget = 0; budget <= kEnough; ++budget) {
    Fragile::budget = budget;
    bench.request("tools/call",
                  modern("{}", R"("name":"in_background","arguments":{"a":)" +
                                   std::to_string(budget) + R"(,"b":0})"),
                  caller);
    const auto until = std::chrono::steady_clock::now() + 20s;
    while (caller.channel().replies.empty() && std::chrono::steady_clock::now() < until) {
      bench.run_all();
    }
    ASSERT_EQ(caller.channel().replies.size(), 1U) << budget;
  }
}

TEST_F(PublicServerTest, ACallIsGivenUpAlsoAfterAnExceptionOnItsLoop) {
  std::shared_ptr<detail::Mailbox> mailbox;
  bool gone = false;
  struct Leaves {
    bool* gone;
    ~Leaves() { *gone = true; }
  };
  server.tool("wait", "", [&](Call& call) -> Task<std::string> {
    const Leaves leaves{&gone};
    mailbox = call.backend().loop().mailbox();
    co_await call.sleep(1h);
    co_return "never";
  });
  serve();
  EXPECT_TRUE(call("wait", "{}").is_null());
  mailbox->post([] { throw std::runtime_error("no memory"); });
  EXPECT_THROW(bench.run_all(), std::runtime_error);
  caller.channel().close();
  bench.run_all();
  EXPECT_TRUE(gone);
}

TEST_F(PublicServerTest, ACoroutineIsThereAsLongAsAWorkerUsesIt) {
  struct Told {
    explicit Told(std::atomic<bool>& flag) : gone(&flag) {}
    ~Told() { *gone = true; }
    Told(const Told&) = delete;
    Told& operator=(const Told&) = delete;
    std::atomic<bool>* gone;
    int value = 7;
  };
  std::atomic<bool> gone = false;
  std::promise<void> running;
  std::promise<void> go_on;
  std::promise<int> seen;
  server.tool("work", "", [&](Call& call) -> Task<std::string> {
    Told local(gone);
    co_await call.in_background([&] {
      running.set_value();
      go_on.get_future().wait();
      seen.set_value(local.value);
    });
    co_return "done";
  });
  serve();
  call("work", "{}");
  running.get_future().wait();
  caller.channel().close();
  bench.run_all();
  EXPECT_FALSE(gone);
  go_on.set_value();
  EXPECT_EQ(seen.get_future().get(), 7);
  while (!gone) bench.run_all();
}

TEST_F(PublicServerTest, AJobThatHasNotBegunIsDroppedWithItsCall) {
  Server narrow("test", "1", {.workers = 1, .max_background_jobs = 1});
  std::promise<void> running;
  std::promise<void> go_on;
  int ran = 0;
  narrow.tool("hold", "", [&](Call& call) -> Task<std::string> {
    co_await call.in_background([&] {
      running.set_value();
      go_on.get_future().wait();
    });
    co_return "held";
  });
  narrow.tool("work", "", [&](Call& call) -> Task<std::string> {
    co_await call.in_background([&] { ++ran; });
    co_return "done";
  });
  server = narrow;
  serve();
  call("hold", "{}");
  running.get_future().wait();
  RecordingCaller leaving;
  bench.request("tools/call", modern("{}", R"("name":"work")"), leaving);
  leaving.channel().close();
  bench.run_all();
  // The dropped job has freed its place in the queue, which is the only one.
  RecordingCaller next;
  bench.request("tools/call", modern("{}", R"("name":"work")"), next);
  bench.run_all();
  go_on.set_value();
  while (next.channel().replies.empty()) bench.run_all();
  EXPECT_THAT(next.channel().replies.back(), HasSubstr("done"));
  EXPECT_EQ(ran, 1);
}

TEST_F(PublicServerTest, WhatNobodyWillHandOverFailsItsWaiter) {
  server.tool("void", "", [](Call& call) -> Task<std::string> {
    co_await call.callback<void>([](Resolver<void> it) { it.succeed(); });
    co_return "done";
  });
  server.tool("dropped", "", [](Call& call) -> Task<std::string> {
    co_await call.callback<void>([](const Resolver<void>&) {});
    co_return "never";
  });
  server.tool("twice", "", [](Call& call) -> Task<std::string> {
    co_return std::to_string(co_await call.callback<int>([](Resolver<int> it) {
      const Resolver<int> copy = it;
      it.succeed(1);
      it.succeed(2);
    }));
  });
  serve();
  EXPECT_EQ(text_of(call("void", "{}")), "done");
  EXPECT_EQ(text_of(call("twice", "{}")), "1");
  const json::value answer = call("dropped", "{}");
  EXPECT_EQ(answer.at_pointer("/error/code").as_int64(), kInternalError) << to_json(answer);
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
  json::object meta;
  for (int i = 0; i < 100; ++i) meta = {{"a", std::move(meta)}};
  const auto add = [&] { server.tool("deep", "", [] { return std::string(); }, {.meta = meta}); };
  EXPECT_THROW(add(), std::invalid_argument);
  meta = meta.at("a").as_object();
  EXPECT_NO_THROW(add());
}

}  // namespace
}  // namespace sluice
