#include <chrono>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <optional>
#include <string>

#include "proxy/proxy.hpp"
#include "proxy/proxy_test_support.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

using Kind = FakeClient::Kind;

/// A client of each era to servers of each era.
struct Eras {
  Kind client;
  bool modern_server;
};
class ProxyErasTest : public ::testing::TestWithParam<Eras> {
 protected:
  ProxyErasTest() {
    client.name = "asker";
    answer_calls(server);
    if (GetParam().client == Kind::session) client.initialize();
    proxy.run();
  }
  // The proxy says goodbye to the server when it ends. By then the variables of the test, which
  // `on_message` may refer to, are gone.
  ~ProxyErasTest() override { server.on_message = {}; }

  [[nodiscard]] bool is_legacy_client() const { return GetParam().client == Kind::session; }

  FakeServer server{"behind", GetParam().modern_server};
  FakeProxy proxy{{server.upstream()}};
  FakeClient client{*proxy.server, GetParam().client};
};

/// Modern clients, whose requests come before the proxy has a session with the server.
class ProxyOfModernClientsTest : public ProxyErasTest {};

TEST_P(ProxyErasTest, DescribesTheServer) {
  std::string about;
  if (is_legacy_client()) {
    about = client.result_of(1);
    EXPECT_THAT(about, AllOf(HasSubstr(R"("protocolVersion":"2025-11-25")"),
                             Not(HasSubstr("resultType")), Not(HasSubstr("ttlMs"))));
  } else {
    const auto id = client.request("server/discover");
    proxy.run();
    about = client.result_of(id);
    EXPECT_THAT(about, AllOf(HasSubstr(R"("supportedVersions":["2026-07-28")"),
                             HasSubstr(R"("resultType":"complete")"), HasSubstr(R"("ttlMs":)")));
  }
  EXPECT_THAT(about, AllOf(HasSubstr(R"("name":"behind")"), HasSubstr(R"("version":"7")"),
                           HasSubstr(R"("instructions":"Use behind")"),
                           HasSubstr(R"("resources":{"subscribe":true})")));
}

TEST_P(ProxyErasTest, PassesOnWhatItDoesNotKnow) {
  const auto id = client.request("tools/list", {{"x-mine", 2}}, {{"traceparent", "00-1"}});
  proxy.run();
  EXPECT_THAT(client.result_of(id), HasSubstr(R"("x-own":1)"));
  EXPECT_EQ(client.result_of(id).contains("resultType"), !is_legacy_client());
  EXPECT_THAT(server.heard.back(), AllOf(HasSubstr(R"("x-mine":2)"), HasSubstr("traceparent")));
  EXPECT_EQ(server.heard.back().contains("clientCapabilities"), GetParam().modern_server);
}

TEST_P(ProxyErasTest, TellsTheServerWhoAsks) {
  client.request("tools/list");
  proxy.run();
  if (GetParam().modern_server) {
    EXPECT_THAT(server.heard.back(), HasSubstr(R"(clientInfo":{"name":"asker")"));
  } else {
    EXPECT_THAT(server.clients, ElementsAre(R"("asker")"));
  }
}

TEST_P(ProxyErasTest, PassesOnProgressChunkByChunk) {
  std::optional<json::object> asked;
  FakeLink* by = nullptr;
  server.on_message = [&](FakeLink& link, const json::object& message) {
    asked = message;
    by = &link;
  };
  const auto id = client.request("tools/call", {{"name", "tool"}});
  proxy.run();
  ASSERT_TRUE(asked);
  for (int i = 1; i <= 3; ++i) {
    server.post(*by, {{"jsonrpc", "2.0"},
                      {"method", "notifications/progress"},
                      {"params",
                       {{"progressToken", asked->at("params").at("_meta").at("progressToken")},
                        {"progress", i},
                        {"total", 3},
                        {"message", "part " + std::to_string(i)}}}});
    proxy.run();
    ASSERT_THAT(client.heard_of("notifications/progress"), SizeIs(i));
  }
  const json::object& last = *client.heard_of("notifications/progress").back();
  EXPECT_EQ(last.at("params").at("progressToken"), id);
  EXPECT_EQ(last.at("params").at("message"), "part 3");
  server.answer(*by, *asked, text_result("done"));
  proxy.run();
  EXPECT_THAT(client.result_of(id), HasSubstr("done"));
}

TEST_P(ProxyErasTest, TellsTheServerWhatIsCancelled) {
  std::optional<json::object> asked;
  server.on_message = [&](FakeLink&, const json::object& message) {
    if (text_at(message, "method") == "tools/call") asked = message;
  };
  const auto id = client.request("tools/call", {{"name", "tool"}});
  proxy.run();
  ASSERT_TRUE(asked);
  client.cancel(id);
  proxy.run();
  EXPECT_THAT(server.heard.back(), AllOf(HasSubstr("notifications/cancelled"),
                                         HasSubstr(R"("requestId":)" + to_json(asked->at("id")))));
  EXPECT_EQ(client.answer_to(id), nullptr);
}

TEST_P(ProxyErasTest, PassesOnErrors) {
  server.on_message = [this](FakeLink& link, const json::object& message) {
    server.refuse(link, message, -32602, "not like this");
  };
  const auto id = client.request("tools/call", {{"name", "tool"}});
  proxy.run();
  EXPECT_THAT(client.result_of(id), HasSubstr(R"("code":-32602,"message":"not like this")"));
}

TEST_P(ProxyErasTest, AsksTheClientWhatTheServerAsks) {
  std::optional<json::object> asked;
  const json::object question{
      {"message", "Who?"},
      {"requestedSchema", {{"type", "object"}, {"properties", {{"who", {{"type", "string"}}}}}}}};
  int calls = 0;
  server.on_message = [&](FakeLink& link, const json::object& message) {
    const json::value* const params = message.if_contains("params");
    if (text_at(message, "method") == "tools/call") {
      ++calls;
      const json::object& given = params->as_object();
      if (!server.modern) {
        asked = message;
        json::object named = question;
        named["_meta"] = {{"dev.sluice/questionKey", "k"}};
        return server.post(
            link,
            {{"jsonrpc", "2.0"}, {"id", "q"}, {"method", "elicitation/create"}, {"params", named}});
      }
      const json::object* const inputs = object_at(given, "inputResponses");
      if (inputs == nullptr) {
        return server.answer(
            link, message,
            {{"resultType", "input_required"},
             {"requestState", "mine"},
             {"inputRequests", {{"k", {{"method", "elicitation/create"}, {"params", question}}}}}});
      }
      EXPECT_EQ(given.at("requestState"), "mine");
      return server.answer(link, message, text_result(to_json(inputs->at("k").at("content"))));
    }
    if (!message.contains("method") && message.at("id") == "q") {
      server.answer(link, *asked, text_result(to_json(message.at("result").at("content"))));
    }
  };
  const json::object said{{"action", "accept"}, {"content", {{"who", "me"}}}};
  auto id = client.request("tools/call", {{"name", "tool"}});
  proxy.run();
  if (is_legacy_client()) {
    const auto questions = client.heard_of("elicitation/create");
    ASSERT_THAT(questions, SizeIs(1));
    client.send({{"jsonrpc", "2.0"}, {"id", questions[0]->at("id")}, {"result", said}});
  } else {
    const json::object result = client.answer_to(id)->at("result").as_object();
    ASSERT_EQ(text_at(result, "resultType"), "input_required") << to_json(result);
    const json::object& inputs = result.at("inputRequests").as_object();
    ASSERT_EQ(inputs.size(), 1U);
    EXPECT_EQ(inputs.begin()->key(), "k");
    EXPECT_EQ(inputs.begin()->value().at("params"), json::value(question));
    id = client.request("tools/call", {{"name", "tool"},
                                       {"requestState", result.at("requestState")},
                                       {"inputResponses", {{inputs.begin()->key(), said}}}});
  }
  proxy.run();
  EXPECT_THAT(client.result_of(id), HasSubstr(R"({\"who\":\"me\"})"));
  EXPECT_EQ(calls, server.modern ? 2 : 1);
}

TEST_P(ProxyErasTest, TellsOfChanges) {
  FakeLink* by = nullptr;
  server.on_message = [&](FakeLink& link, const json::object& message) {
    by = &link;
    if (message.contains("id") && text_at(message, "method") != "subscriptions/listen") {
      server.answer(link, message, json::object());
    }
  };
  if (is_legacy_client()) {
    client.request("resources/subscribe", {{"uri", "x:y"}});
  } else {
    client.request(
        "subscriptions/listen",
        {{"notifications", {{"toolsListChanged", true}, {"resourceSubscriptions", {"x:y"}}}}});
  }
  proxy.run();
  ASSERT_NE(by, nullptr);
  EXPECT_THAT(server.heard, ::testing::Contains(HasSubstr("x:y")));
  client.heard.clear();
  server.post(*by, {{"jsonrpc", "2.0"}, {"method", "notifications/tools/list_changed"}});
  server.post(*by, {{"jsonrpc", "2.0"},
                    {"method", "notifications/resources/updated"},
                    {"params", {{"uri", "x:y"}}}});
  server.post(*by, {{"jsonrpc", "2.0"},
                    {"method", "notifications/resources/updated"},
                    {"params", {{"uri", "x:other"}}}});
  proxy.run();
  EXPECT_THAT(client.heard_of("notifications/tools/list_changed"), SizeIs(1));
  const auto updated = client.heard_of("notifications/resources/updated");
  ASSERT_THAT(updated, SizeIs(1));
  EXPECT_EQ(updated[0]->at("params").at("uri"), "x:y");
}

TEST_P(ProxyOfModernClientsTest, TellsOfWhatMayHaveChangedBeforeTheServerKnewWhoListens) {
  server.on_message = [this](FakeLink& link, const json::object& message) {
    if (text_at(message, "method") != "subscriptions/listen") {
      return server.answer(link, message, json::object());
    }
    const json::value& id = message.at("id");
    server.post(link, {{"jsonrpc", "2.0"},
                       {"method", "notifications/subscriptions/acknowledged"},
                       {"params",
                        {{"_meta", {{"io.modelcontextprotocol/subscriptionId", id}}},
                         {"notifications", {{"toolsListChanged", true}}}}}});
  };
  client.request(
      "subscriptions/listen",
      {{"notifications", {{"toolsListChanged", true}, {"resourceSubscriptions", {"x:y"}}}}});
  proxy.run();
  EXPECT_THAT(client.heard_of("notifications/tools/list_changed"), SizeIs(1));
  EXPECT_THAT(client.heard_of("notifications/resources/updated"), Not(IsEmpty()));
  EXPECT_THAT(client.heard_of("notifications/prompts/list_changed"), IsEmpty());
}

TEST_P(ProxyErasTest, PassesOnTheLogAtTheLevelThatIsWanted) {
  server.on_message = [this](FakeLink& link, const json::object& message) {
    if (text_at(message, "method") != "tools/call") return server.answer(link, message, {});
    for (const char* level : {"debug", "error"}) {
      server.post(link, {{"jsonrpc", "2.0"},
                         {"method", "notifications/message"},
                         {"params", {{"level", level}, {"data", level}}}});
    }
    server.answer(link, message, text_result("done"));
  };
  if (is_legacy_client()) client.request("logging/setLevel", {{"level", "warning"}});
  client.request("tools/call", {{"name", "tool"}},
                 {{"io.modelcontextprotocol/logLevel", "warning"}});
  proxy.run();
  const auto told = client.heard_of("notifications/message");
  ASSERT_THAT(told, SizeIs(1));
  EXPECT_EQ(told[0]->at("params").at("data"), "error");
}

TEST_P(ProxyErasTest, StartsALostServerAnew) {
  std::optional<std::size_t> died;
  server.on_message = [&](FakeLink& link, const json::object&) {
    if (!died) {
      died = link.number();
      link.die();
    }
  };
  const auto lost = client.request("tools/call", {{"name", "tool"}});
  proxy.run();
  EXPECT_THAT(client.result_of(lost), HasSubstr("The server behind: it has died"));
  answer_calls(server);
  const auto again = client.request("tools/call", {{"name", "tool"}});
  proxy.run();
  EXPECT_THAT(client.result_of(again), HasSubstr("behind tool " + std::to_string(*died + 1)));
}

TEST_P(ProxyErasTest, RestartsAServerThatHangs) {
  server.on_message = {};
  const auto stuck = client.request("tools/call", {{"name", "tool"}});
  proxy.run();
  const std::size_t before = server.opened;
  server.is_silent = true;
  ::testing::internal::CaptureStderr();
  proxy.advance(5min);
  proxy.advance(31s);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              HasSubstr("a server behind the proxy has gone; the next request starts anew with it "
                        "server=behind why=\"it hangs: it answers neither a request nor a ping\""));
  EXPECT_THAT(client.result_of(stuck), HasSubstr("it hangs"));
  server.is_silent = false;
  answer_calls(server);
  const auto again = client.request("tools/call", {{"name", "tool"}});
  proxy.run();
  EXPECT_THAT(client.result_of(again), HasSubstr("behind tool"));
  EXPECT_EQ(server.opened, before + 1);
}

TEST_P(ProxyErasTest, LeavesASlowServerThatLivesAlone) {
  std::optional<json::object> asked;
  FakeLink* by = nullptr;
  server.on_message = [&](FakeLink& link, const json::object& message) {
    if (text_at(message, "method") == "ping") return server.answer(link, message, {});
    asked = message;
    by = &link;
  };
  const auto id = client.request("tools/call", {{"name", "tool"}});
  proxy.run();
  for (int i = 0; i < 5; ++i) {
    proxy.advance(5min);
    proxy.advance(31s);
  }
  server.answer(*by, *asked, text_result("at last"));
  proxy.run();
  EXPECT_THAT(client.result_of(id), HasSubstr("at last"));
}

TEST_P(ProxyErasTest, AServerWaitsWhileTheClientDoesNotReadAndNothingIsLost) {
  UnreadCall call(server, proxy, client);
  EXPECT_LT(call.said, 300) << "a stream has a MiB";
  EXPECT_THAT(call.by->paused, SizeIs(1));
  call.say();  // what was under way
  client.drain();
  proxy.run();
  EXPECT_THAT(call.by->paused, IsEmpty());
  EXPECT_THAT(client.heard_of("notifications/progress"), SizeIs(call.said));
  call.answer();
  EXPECT_THAT(client.result_of(call.id), HasSubstr("done"));
}

TEST_P(ProxyErasTest, ACallThatIsCancelledWhileItsServerWaitsLeavesNothingPaused) {
  const UnreadCall call(server, proxy, client);
  EXPECT_THAT(call.by->paused, SizeIs(1));
  client.cancel(call.id);
  proxy.run();
  EXPECT_THAT(call.by->paused, IsEmpty());
}

std::string name_of(const ::testing::TestParamInfo<Eras>& info) {
  const Eras& eras = info.param;
  return std::string(eras.client == Kind::session      ? "Session"
                     : eras.client == Kind::connection ? "Connection"
                                                       : "Request") +
         (eras.modern_server ? "Modern" : "Legacy");
}

constexpr Eras kModernClients[] = {{Kind::connection, false},
                                   {Kind::connection, true},
                                   {Kind::request, false},
                                   {Kind::request, true}};

INSTANTIATE_TEST_SUITE_P(Legacy, ProxyErasTest,
                         ::testing::Values(Eras{Kind::session, false}, Eras{Kind::session, true}),
                         name_of);
INSTANTIATE_TEST_SUITE_P(Modern, ProxyErasTest, ::testing::ValuesIn(kModernClients), name_of);
INSTANTIATE_TEST_SUITE_P(Modern, ProxyOfModernClientsTest, ::testing::ValuesIn(kModernClients),
                         name_of);

}  // namespace
}  // namespace sluice
