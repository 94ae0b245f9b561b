// What a caller gets when a handler fails, or says what cannot be sent.

#include <algorithm>
#include <chrono>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "core/text/utf8.hpp"
#include "json/json.hpp"
#include "rpc/error_codes.hpp"
#include "server/handlers/public_server_test_support.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

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

#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wreturn-type"
TEST_F(PublicServerTest, CoroutinesThatAreWrittenWrongFail) {
  server.tool("forgets", "", [](Add in) -> Task<Total> {
    if (in.a > 0) co_return Total{.sum = in.a};
  });
  server.tool("twice", "", [](Call&) -> Task<std::string> {
    const auto text = []() -> Task<std::string> { co_return "text"; };
    Task<std::string> once = text();
    co_await std::move(once);
    co_return co_await std::move(once);  // NOLINT(bugprone-use-after-move)
  });
  serve();
  EXPECT_FALSE(call("forgets", R"({"a":1,"b":1})").as_object().contains("error"));
  EXPECT_EQ(call("forgets", R"({"a":0,"b":1})").at_pointer("/error/code").as_int64(), -32603);
  EXPECT_EQ(call("twice", "{}").at_pointer("/error/code").as_int64(), -32603);
}
#pragma clang diagnostic pop

TEST_F(PublicServerTest, TheDataOfAnErrorMayBeAValue) {
  server.tool("object", "",
              []() -> std::string { throw Error{7, "wait", json::object{{"seconds", 5}}}; });
  server.tool("array", "", []() -> std::string { throw Error{7, "wait", json::array{1, 2}}; });
  server.tool("string", "", []() -> std::string { throw Error{7, "wait", json::value("5")}; });
  server.tool("text", "", []() -> std::string { throw Error{7, "wait", "5"}; });
  serve();
  EXPECT_EQ(call("object", "{}").at_pointer("/error/data"), (json::value{{"seconds", 5}}));
  EXPECT_EQ(call("array", "{}").at_pointer("/error/data"), (json::array{1, 2}));
  EXPECT_EQ(call("string", "{}").at_pointer("/error/data"), "5");
  EXPECT_EQ(call("text", "{}").at_pointer("/error/data"), 5);
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

TEST_F(PublicServerTest, AHandlerThatFailsAgainAndAgainIsLoggedByNameTenTimes) {
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
  EXPECT_EQ(std::ranges::count(logged, '\n'), 11) << logged;
  EXPECT_NE(logged.find("a handler failed tool=broken what=\"of no use\""), std::string::npos);
  EXPECT_NE(logged.find("a handler failed tool=late what=\"of no use\""), std::string::npos);
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

}  // namespace
}  // namespace sluice
