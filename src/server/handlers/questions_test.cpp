// Handlers that ask their client.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "json/json.hpp"
#include "server/handlers/public_server_test_support.hpp"
#include "sluice/testing.hpp"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

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

TEST(LegacyQuestions, SayTheKeyThatTheHandlerGives) {
  Server server("test", "1");
  server.tool("ask", "", [](Call& call) -> Task<std::string> {
    co_await call.list_roots("which");
    co_await call.list_roots();
    co_return "asked";
  });
  std::vector<std::string> asked;
  testing::Client client(server,
                         {.revision = "2025-11-25", .on_roots = [&](const json::object& params) {
                            asked.push_back(to_json(params));
                            return json::object{{"roots", json::array()}};
                          }});
  EXPECT_EQ(client.call("ask").text(), "asked");
  EXPECT_THAT(asked, ElementsAre(R"({"_meta":{"dev.sluice/questionKey":"which"}})", "{}"));
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

}  // namespace
}  // namespace sluice
