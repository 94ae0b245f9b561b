#include <chrono>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "proxy/proxy.hpp"
#include "proxy/proxy_test_support.hpp"
#include "proxy/upstream/upstream_error.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

using Kind = FakeClient::Kind;

/// All clients have one session with a server.
class OneSession : public ::testing::Test {
 protected:
  explicit OneSession(bool is_modern) : server("behind", is_modern) {
    server.on_message = [this](FakeLink& link, const json::object& message) {
      if (text_at(message, "method") != "tools/call") {
        const bool is_open = text_at(message, "method") == "subscriptions/listen";
        if (message.contains("id") && !is_open) server.answer(link, message, json::object());
        return;
      }
      const auto& params = message.at("params").as_object();
      calls.insert_or_assign(std::string(text_at(params, "name")), message);
    };
  }
  /// The client of a connection in the legacy era.
  std::unique_ptr<FakeClient> session_client(json::object capabilities = {}) {
    auto client = std::make_unique<FakeClient>(*proxy.server, Kind::session);
    client->capabilities = std::move(capabilities);
    client->initialize();
    proxy.run();
    return client;
  }
  FakeLink& link() { return *server.links.at(0); }
  void answer(const std::string& tool) {
    server.answer(link(), calls.at(tool),
                  {{"resultType", "complete"}, {"content", {{{"type", "text"}, {"text", tool}}}}});
    proxy.run();
  }
  void tell(std::string_view method, json::object params) {
    server.post(link(), {{"jsonrpc", "2.0"}, {"method", method}, {"params", std::move(params)}});
    proxy.run();
  }

  FakeServer server;
  int idle = 0;
  FakeProxy proxy{{server.upstream()},
                  {.has_one_session = true, .idle = {.after = 1min, .run = [this] { ++idle; }}}};
  std::map<std::string, json::object> calls;  // by their tools, unanswered
};

/// With a server of either era.
class OneSessionTest : public OneSession, public ::testing::WithParamInterface<bool> {
 protected:
  OneSessionTest() : OneSession(GetParam()) {}
};

/// With a server that asks by requests of its own.
class OneLegacySessionTest : public OneSession {
 protected:
  OneLegacySessionTest() : OneSession(false) {}
};

/// With a server whose questions are rounds of the call.
class OneModernSessionTest : public OneSession {
 protected:
  OneModernSessionTest() : OneSession(true) {}
  /// Answers a call with a question.
  void ask(const std::string& tool) {
    const json::object question{
        {"method", "elicitation/create"},
        {"params",
         {{"message", "Who?"},
          {"requestedSchema", {{"type", "object"}, {"properties", json::object()}}}}}};
    server.answer(link(), calls.at(tool),
                  {{"resultType", "input_required"}, {"inputRequests", {{"who", question}}}});
    calls.erase(tool);
    proxy.run();
  }
};

TEST_P(OneSessionTest, ClientsOfAllKindsShareIt) {
  for (const Kind kind : {Kind::session, Kind::connection, Kind::request}) {
    FakeClient client(*proxy.server, kind, {.id = "10.0.0.1", .isolated = false});
    if (kind == Kind::session) client.initialize();
    const auto id = client.request("tools/call", {{"name", "tool"}});
    proxy.run();
    answer("tool");
    EXPECT_THAT(client.result_of(id), HasSubstr(R"("text":"tool")"));
  }
  proxy.advance(5min);
  EXPECT_THAT(server.links, SizeIs(1));
  EXPECT_EQ(server.opened, 1U);
}

TEST_P(OneSessionTest, ProgressCancellationsAndAnswersStayWithTheirClients) {
  FakeClient one(*proxy.server, Kind::connection);
  const auto two = session_client();
  const auto first = one.request("tools/call", {{"name", "one"}});
  two->request("ping");
  const auto second = two->request("tools/call", {{"name", "two"}});
  proxy.run();
  for (const char* const tool : {"one", "two"}) {
    const auto& meta = calls.at(tool).at("params").at("_meta");
    tell("notifications/progress",
         {{"progressToken", meta.at("progressToken")}, {"progress", 1}, {"message", tool}});
  }
  const auto heard_one = one.heard_of("notifications/progress");
  const auto heard_two = two->heard_of("notifications/progress");
  ASSERT_THAT(heard_one, SizeIs(1));
  ASSERT_THAT(heard_two, SizeIs(1));
  EXPECT_EQ(heard_one[0]->at("params").at("message"), "one");
  EXPECT_EQ(heard_one[0]->at("params").at("progressToken"), first);
  EXPECT_EQ(heard_two[0]->at("params").at("message"), "two");
  EXPECT_EQ(heard_two[0]->at("params").at("progressToken"), second);
  two->cancel(second);
  proxy.run();
  EXPECT_THAT(server.heard.back(),
              AllOf(HasSubstr("notifications/cancelled"),
                    HasSubstr(R"("requestId":)" + to_json(calls.at("two").at("id")))));
  answer("one");
  EXPECT_THAT(one.result_of(first), HasSubstr(R"("text":"one")"));
  EXPECT_EQ(two->answer_to(second), nullptr);
}

TEST_F(OneLegacySessionTest, WhatBelongsToATaskThatNobodyFollowsReachesNoOtherClient) {
  const auto client = session_client({{"elicitation", json::object()}});
  const auto id = client->request("tools/call", {{"name", "tool"}});
  proxy.run();
  const json::object meta{{"io.modelcontextprotocol/related-task", {{"taskId", "of another"}}}};
  tell("notifications/message", {{"level", "error"}, {"data", "for another"}, {"_meta", meta}});
  EXPECT_THAT(client->heard_of("notifications/message"), IsEmpty());
  server.post(link(), {{"jsonrpc", "2.0"},
                       {"id", "q1"},
                       {"method", "elicitation/create"},
                       {"params",
                        {{"message", "Your PIN?"},
                         {"requestedSchema", {{"type", "object"}, {"properties", json::object()}}},
                         {"_meta", meta}}}});
  proxy.run();
  EXPECT_THAT(client->heard_of("elicitation/create"), IsEmpty());
  EXPECT_THAT(server.heard.back(), AllOf(HasSubstr(R"("id":"q1")"), HasSubstr("Nobody follows")));
  answer("tool");
  EXPECT_THAT(client->result_of(id), HasSubstr(R"("text":"tool")"));
}

TEST_P(OneSessionTest, PartialResultsAreNotAskedForAndReachNobody) {
  FakeClient one(*proxy.server, Kind::connection);
  const auto two = session_client({{"partialResults", json::object()}});
  const json::object meta{{"partialResultToken", "same"}};
  one.request("tools/call", {{"name", "one"}, {"_meta", meta}});
  two->request("tools/call", {{"name", "two"}, {"_meta", meta}});
  proxy.run();
  for (const char* const tool : {"one", "two"}) {
    const auto& sent = calls.at(tool).at("params").at("_meta").as_object();
    EXPECT_FALSE(sent.contains("partialResultToken"));
    for (const std::string& token : {std::string("same"), to_json(sent.at("progressToken"))}) {
      const json::object params{{"partialResultToken", token}, {"seq", 0}};
      tell("notifications/tools/partial_result", params);
      link().say_in_reply_to(calls.at(tool), {{"jsonrpc", "2.0"},
                                              {"method", "notifications/tools/partial_result"},
                                              {"params", params}});
      proxy.run();
    }
  }
  EXPECT_THAT(one.heard_of("notifications/tools/partial_result"), IsEmpty());
  EXPECT_THAT(two->heard_of("notifications/tools/partial_result"), IsEmpty());
  answer("one");
  answer("two");
}

TEST_P(OneSessionTest, TheEndOfAClientCancelsItsCallsAlone) {
  FakeClient stays(*proxy.server, Kind::connection);
  const auto id = stays.request("tools/call", {{"name", "kept"}});
  {
    FakeClient goes(*proxy.server, Kind::connection);
    goes.request("tools/call", {{"name", "dropped"}});
    proxy.run();
  }
  proxy.run();
  EXPECT_THAT(server.heard.back(),
              AllOf(HasSubstr("notifications/cancelled"),
                    HasSubstr(R"("requestId":)" + to_json(calls.at("dropped").at("id")))));
  answer("kept");
  EXPECT_THAT(stays.result_of(id), HasSubstr("kept"));
}

TEST_P(OneSessionTest, EachClientHearsOfTheChangesThatItWants) {
  auto one = session_client();
  const auto two = session_client();
  one->request("resources/subscribe", {{"uri", "x:one"}});
  two->request("resources/subscribe", {{"uri", "x:two"}});
  proxy.run();
  const auto changes_of = [](const FakeClient& client) {
    std::string out;
    for (const auto* const each : client.heard_of("notifications/resources/updated")) {
      out += text_at(each->at("params").as_object(), "uri");
    }
    return out;
  };
  tell("notifications/resources/updated", {{"uri", "x:one"}});
  tell("notifications/resources/updated", {{"uri", "x:two"}});
  tell("notifications/tools/list_changed", {});
  EXPECT_EQ(changes_of(*one), "x:one");
  EXPECT_EQ(changes_of(*two), "x:two");
  EXPECT_THAT(one->heard_of("notifications/tools/list_changed"), SizeIs(1));
  EXPECT_THAT(two->heard_of("notifications/tools/list_changed"), SizeIs(1));
  server.heard.clear();
  one.reset();
  proxy.run();
  if (server.modern) {
    EXPECT_THAT(server.heard, Contains(AllOf(HasSubstr("subscriptions/listen"), HasSubstr("x:two"),
                                             Not(HasSubstr("x:one")))));
  } else {
    EXPECT_THAT(server.heard,
                Contains(AllOf(HasSubstr("resources/unsubscribe"), HasSubstr("x:one"))));
  }
}

TEST_P(OneSessionTest, EachClientHearsTheLogAtItsLevel) {
  const auto talkative = session_client();
  const auto quiet = session_client();
  talkative->request("logging/setLevel", {{"level", "debug"}});
  proxy.run();
  quiet->request("logging/setLevel", {{"level", "error"}});
  proxy.run();
  EXPECT_THAT(server.heard, Not(Contains(HasSubstr(R"("level":"error")"))));
  for (const char* const level : {"debug", "error"}) {
    tell("notifications/message", {{"level", level}, {"data", level}});
  }
  EXPECT_THAT(talkative->heard_of("notifications/message"), SizeIs(2));
  const auto heard = quiet->heard_of("notifications/message");
  ASSERT_THAT(heard, SizeIs(1));
  EXPECT_EQ(heard[0]->at("params").at("data"), "error");
}

TEST_F(OneLegacySessionTest, AQuestionGoesOnlyToAClientThatCanBeAsked) {
  const json::object question{{"message", "Who?"},
                              {"requestedSchema", {{"type", "object"}, {"properties", {}}}}};
  const auto ask = [&](const char* id) {
    server.post(
        link(),
        {{"jsonrpc", "2.0"}, {"id", id}, {"method", "elicitation/create"}, {"params", question}});
    proxy.run();
  };
  const auto able = session_client({{"elicitation", json::object()}});
  const auto unable = session_client();
  const auto id = unable->request("tools/call", {{"name", "tool"}});
  proxy.run();
  ask("q1");
  EXPECT_THAT(unable->heard_of("elicitation/create"), IsEmpty());
  EXPECT_THAT(server.heard.back(), AllOf(HasSubstr(R"("id":"q1")"), HasSubstr(R"("error")")));
  answer("tool");
  EXPECT_THAT(unable->result_of(id), HasSubstr(R"("text":"tool")"));
  // Outside of calls.
  ask("q2");
  EXPECT_THAT(unable->heard_of("elicitation/create"), IsEmpty());
  EXPECT_THAT(able->heard_of("elicitation/create"), SizeIs(1));
}

TEST_F(OneLegacySessionTest, AQuestionOfACallThatIsAnsweredGoesToNobodyElse) {
  const json::object able{{"elicitation", json::object()}};
  const auto one = session_client(able);
  const auto two = session_client(able);
  one->request("tools/call", {{"name", "one"}});
  two->request("tools/call", {{"name", "two"}});
  proxy.run();
  const json::object& call = calls.at("one");
  // In one piece, so that the question is still on its way when the call ends.
  link().say_in_reply_to(
      call, {{"jsonrpc", "2.0"},
             {"id", "q"},
             {"method", "elicitation/create"},
             {"params", {{"message", "For one only"}, {"requestedSchema", json::object()}}}});
  link().say_in_reply_to(call,
                         {{"jsonrpc", "2.0"}, {"id", call.at("id")}, {"result", json::object()}});
  proxy.run();
  EXPECT_THAT(two->heard_of("elicitation/create"), IsEmpty());
  EXPECT_THAT(server.heard.back(), AllOf(HasSubstr(R"("id":"q")"), HasSubstr(R"("error")")));
}

TEST_F(OneModernSessionTest, AQuestionGoesOnlyToTheClientOfItsCall) {
  const json::object able{{"elicitation", json::object()}};
  const auto asked = session_client(able);
  const auto other = session_client(able);
  const auto unable = session_client();
  const auto id = asked->request("tools/call", {{"name", "tool"}});
  const auto refused = unable->request("tools/call", {{"name", "another"}});
  proxy.run();
  ask("tool");
  ask("another");
  const auto questions = asked->heard_of("elicitation/create");
  ASSERT_THAT(questions, SizeIs(1));
  EXPECT_THAT(other->heard_of("elicitation/create"), IsEmpty());
  EXPECT_THAT(unable->heard_of("elicitation/create"), IsEmpty());
  EXPECT_THAT(unable->result_of(refused), HasSubstr("needs a client that declares the capability"));
  EXPECT_FALSE(calls.contains("another"));

  asked->send({{"jsonrpc", "2.0"},
               {"id", questions[0]->at("id")},
               {"result", {{"action", "accept"}, {"content", {{"name", "Ada"}}}}}});
  proxy.run();
  EXPECT_THAT(to_json(calls.at("tool")), HasSubstr(R"("who":{"action":"accept")"));
  answer("tool");
  EXPECT_THAT(asked->result_of(id), HasSubstr(R"("text":"tool")"));
}

TEST_F(OneModernSessionTest, NoRoundFollowsTheQuestionOfAClientThatGoes) {
  auto asked = session_client({{"elicitation", json::object()}});
  asked->request("tools/call", {{"name", "tool"}});
  proxy.run();
  ask("tool");
  ASSERT_THAT(asked->heard_of("elicitation/create"), SizeIs(1));
  asked.reset();
  proxy.run();
  EXPECT_THAT(calls, IsEmpty());
}

TEST_F(OneLegacySessionTest, AQuestionOfAClientThatGoesIsRefused) {
  auto asked = session_client({{"sampling", json::object()}});
  server.post(link(), {{"jsonrpc", "2.0"},
                       {"id", "q"},
                       {"method", "sampling/createMessage"},
                       {"params", {{"messages", json::array()}, {"maxTokens", 1}}}});
  proxy.run();
  ASSERT_THAT(asked->heard_of("sampling/createMessage"), SizeIs(1));
  asked.reset();
  proxy.run();
  EXPECT_THAT(server.heard, Contains(AllOf(HasSubstr(R"("id":"q")"), HasSubstr("has gone"))));
}

TEST_P(OneSessionTest, OpensBeforeTheFirstClientAndSaysWhenNobodyComes) {
  std::optional<Result<json::object>> opened;
  proxy.proxy->open(proxy.server->loop(), [&](auto outcome) { opened = std::move(outcome); });
  proxy.run();
  ASSERT_TRUE(opened && *opened);
  EXPECT_EQ(text_at(**opened, "instructions"), "Use behind");
  proxy.advance(59s);
  EXPECT_EQ(idle, 0);
  {
    FakeClient client(*proxy.server, Kind::connection);
    client.request("tools/call", {{"name", "tool"}});
    proxy.advance(10min);
    EXPECT_EQ(idle, 0);
  }
  proxy.run();
  proxy.advance(59s);
  EXPECT_EQ(idle, 0);
  proxy.advance(1s);
  EXPECT_EQ(idle, 1);
}

TEST_P(OneSessionTest, SaysWhyItCannotBeOpened) {
  server.absent = true;
  std::optional<Result<json::object>> opened;
  proxy.proxy->open(proxy.server->loop(), [&](auto outcome) { opened = std::move(outcome); });
  proxy.run();
  ASSERT_TRUE(opened && !*opened);
  EXPECT_EQ(opened->error().message, "The server behind: nobody listens");
  EXPECT_EQ(upstream_status(opened->error()), kLostConnection);
}

INSTANTIATE_TEST_SUITE_P(All, OneSessionTest, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "Modern" : "Legacy"; });

}  // namespace
}  // namespace sluice
