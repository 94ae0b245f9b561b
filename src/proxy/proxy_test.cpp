#include "proxy/proxy.hpp"

#include <chrono>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <optional>
#include <string>
#include <utility>

#include "protocol/error_codes.hpp"
#include "proxy/gathering.hpp"
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
using ::testing::UnorderedElementsAre;

using Kind = FakeClient::Kind;

json::object text_result(std::string_view text) {
  return {{"resultType", "complete"}, {"content", {{{"type", "text"}, {"text", text}}}}};
}

/// Answers calls with the name of the server, of the tool and the number of the connection.
void answer_calls(FakeServer& server) {
  server.on_message = [&server](FakeLink& link, const json::object& message) {
    const std::string_view method = text_at(message, "method");
    if (method == "tools/call") {
      const std::string text = server.name + " " +
                               std::string(message.at("params").at("name").as_string()) + " " +
                               std::to_string(link.number());
      return server.answer(link, message, text_result(text));
    }
    if (method == "tools/list") {
      return server.answer(
          link, message,
          {{"tools", {{{"name", "tool"}, {"inputSchema", {{"type", "object"}}}, {"x-own", 1}}}}});
    }
    const bool is_open = method == "subscriptions/listen";
    if (message.contains("id") && !is_open) server.answer(link, message, json::object());
  };
}

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
        return server.post(link, {{"jsonrpc", "2.0"},
                                  {"id", "q"},
                                  {"method", "elicitation/create"},
                                  {"params", question}});
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
    EXPECT_EQ(inputs.begin()->value().at("params").at("message"), "Who?");
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

TEST_P(ProxyErasTest, TellsOfWhatMayHaveChangedBeforeTheServerKnewWhoListens) {
  if (is_legacy_client()) return;  // whose server is there before it is
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
  EXPECT_THAT(client.heard_of("notifications/resources/updated"), SizeIs(1));
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
  proxy.advance(5min);
  proxy.advance(31s);
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

/// A call of a client that does not read, up to the moment at which the server has to wait.
class UnreadCall {
 public:
  UnreadCall(FakeServer& server, FakeProxy& proxy, FakeClient& client)
      : server_(&server), proxy_(&proxy) {
    server.on_message = [this](FakeLink& link, const json::object& message) {
      if (text_at(message, "method") != "tools/call") return;
      asked_ = message;
      by = &link;
    };
    id = client.request("tools/call", {{"name", "tool"}});
    proxy.run();
    client.reads = false;
    while (by->paused.empty() && said < 1000) say();
    server.heard.clear();
  }
  void say() {
    by->say({{"jsonrpc", "2.0"},
             {"method", "notifications/progress"},
             {"params",
              {{"progressToken", asked_.at("params").at("_meta").at("progressToken")},
               {"progress", ++said},
               {"message", std::string(10'000, 'x')}}}});
    proxy_->run();
  }
  void answer() {
    server_->answer(*by, asked_, text_result("done"));
    proxy_->run();
  }

  FakeLink* by = nullptr;
  std::int64_t id = 0;
  int said = 0;

 private:
  FakeServer* server_;
  FakeProxy* proxy_;
  json::object asked_;
};

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

INSTANTIATE_TEST_SUITE_P(All, ProxyErasTest,
                         ::testing::Values(Eras{Kind::session, false}, Eras{Kind::session, true},
                                           Eras{Kind::connection, false},
                                           Eras{Kind::connection, true}, Eras{Kind::request, false},
                                           Eras{Kind::request, true}),
                         [](const auto& info) {
                           const Eras& eras = info.param;
                           return std::string(eras.client == Kind::session      ? "Session"
                                              : eras.client == Kind::connection ? "Connection"
                                                                                : "Request") +
                                  (eras.modern_server ? "Modern" : "Legacy");
                         });

TEST(ProxyTest, EachClientHasItsOwnSession) {
  FakeServer server("behind", false);
  answer_calls(server);
  FakeProxy proxy({server.upstream()});
  FakeClient one(*proxy.server, Kind::session);
  FakeClient two(*proxy.server, Kind::session);
  one.initialize();
  two.initialize();
  proxy.run();
  EXPECT_EQ(server.opened, 2U);
  const auto first = one.request("tools/call", {{"name", "tool"}});
  const auto second = two.request("tools/call", {{"name", "tool"}});
  proxy.run();
  EXPECT_NE(one.result_of(first), two.result_of(second));
  EXPECT_EQ(server.opened, 2U);
}

TEST(ProxyTest, RequestsShareASessionOnlyIfTheyAreOfOneCaller) {
  FakeServer server("behind", false);
  answer_calls(server);
  FakeProxy proxy({server.upstream()});
  FakeClient alice(*proxy.server, Kind::request, {.id = "alice"});
  FakeClient bob(*proxy.server, Kind::request, {.id = "bob"});
  FakeClient anybody(*proxy.server, Kind::request, {.id = "10.0.0.1", .isolated = false});
  for (FakeClient* const each : {&alice, &alice, &bob, &alice, &anybody, &anybody}) {
    each->request("tools/call", {{"name", "tool"}});
    proxy.run();
  }
  EXPECT_EQ(server.opened, 4U);
  EXPECT_THAT(server.links, SizeIs(2));  // those of anybody have ended
  proxy.advance(ClientPool::kIdleTime);
  EXPECT_THAT(server.links, IsEmpty());
}

TEST(ProxyTest, RequestsAtTheSameTimeHaveSessionsOfTheirOwn) {
  FakeServer server("behind", false);
  FakeProxy proxy({server.upstream()}, {.shares_principals = true});
  FakeClient client(*proxy.server, Kind::request, {.id = "10.0.0.1", .isolated = false});
  client.request("tools/call", {{"name", "tool"}});
  client.request("tools/call", {{"name", "tool"}});
  proxy.run();
  EXPECT_EQ(server.opened, 2U);
}

TEST(ProxyTest, AModernServerKeepsNothingSoAnyCallerMayFollow) {
  FakeServer server("behind", true);
  answer_calls(server);
  FakeProxy proxy({server.upstream()});
  FakeClient alice(*proxy.server, Kind::request, {.id = "alice"});
  FakeClient anybody(*proxy.server, Kind::request, {.id = "10.0.0.1", .isolated = false});
  for (FakeClient* const each : {&alice, &anybody, &alice}) {
    each->request("tools/call", {{"name", "tool"}});
    proxy.run();
  }
  EXPECT_EQ(server.opened, 1U);
}

TEST(ProxyTest, ServersHavePrefixesThatStayWhenOneIsAdded) {
  FakeServer red("red", false);
  FakeServer blue("blue", true);
  FakeServer more("more", true);
  for (FakeServer* const each : {&red, &blue, &more}) answer_calls(*each);
  for (const bool has_more : {false, true}) {
    std::vector<UpstreamOptions> upstreams{red.upstream(true), blue.upstream(true)};
    if (has_more) upstreams.insert(upstreams.begin(), more.upstream(true));
    FakeProxy proxy(std::move(upstreams));
    FakeClient client(*proxy.server, Kind::session);
    client.initialize();
    proxy.run();
    EXPECT_THAT(client.result_of(1), AllOf(HasSubstr("Use red"), HasSubstr("Use blue"),
                                           HasSubstr(R"("name":"sluice proxy")")));
    const auto list = client.request("tools/list");
    const auto call = client.request("tools/call", {{"name", "blue_tool"}});
    const auto lost = client.request("tools/call", {{"name", "tool"}});
    const auto read = client.request("resources/read", {{"uri", "green+x:y"}});
    proxy.run();
    EXPECT_THAT(client.result_of(list),
                AllOf(HasSubstr(R"("name":"red_tool")"), HasSubstr(R"("name":"blue_tool")"),
                      HasSubstr(R"("x-own":1)")));
    EXPECT_THAT(client.result_of(call), HasSubstr("blue tool"));
    EXPECT_THAT(client.result_of(lost), HasSubstr("Unknown tool: tool"));
    EXPECT_THAT(client.result_of(read), HasSubstr(R"("code":-32002)"));
  }
}

TEST(ProxyTest, PagesOfServersArePutTogether) {
  FakeServer red("red", false);
  FakeServer blue("blue", true);
  const auto paged = [](FakeServer& server, int pages) {
    server.on_message = [&server, pages](FakeLink& link, const json::object& message) {
      const std::string_view cursor = text_at(message.at("params").as_object(), "cursor");
      const int page = cursor.empty() ? 0 : std::stoi(std::string(cursor));
      json::object result{{"tools", {{{"name", "t" + std::to_string(page)}}}}};
      if (page + 1 < pages) result["nextCursor"] = std::to_string(page + 1);
      server.answer(link, message, std::move(result));
    };
  };
  paged(red, 3);
  paged(blue, 2);
  FakeProxy proxy({red.upstream(true), blue.upstream(true)});
  FakeClient client(*proxy.server, Kind::connection);
  std::vector<std::string> names;
  std::string cursor;
  for (int page = 0; page < 3; ++page) {
    json::object params;
    if (!cursor.empty()) params["cursor"] = cursor;
    const auto id = client.request("tools/list", std::move(params));
    proxy.run();
    const json::object& result = client.answer_to(id)->at("result").as_object();
    for (const json::value& tool : result.at("tools").as_array()) {
      names.emplace_back(tool.at("name").as_string());
    }
    cursor = text_at(result, "nextCursor");
  }
  EXPECT_THAT(names, UnorderedElementsAre("red_t0", "blue_t0", "red_t1", "blue_t1", "red_t2"));
  EXPECT_EQ(cursor, "");
  const auto bad = client.request("tools/list", {{"cursor", "7"}});
  proxy.run();
  EXPECT_THAT(client.result_of(bad), HasSubstr("-32602"));
}

TEST(ProxyTest, ADeadServerDoesNotTakeTheOthersDown) {
  FakeServer red("red", false);
  FakeServer blue("blue", true);
  answer_calls(red);
  answer_calls(blue);
  red.absent = true;
  FakeProxy proxy({red.upstream(true), blue.upstream(true)});
  FakeClient client(*proxy.server, Kind::session);
  client.initialize();
  proxy.run();
  EXPECT_THAT(client.result_of(1), HasSubstr("Use blue"));
  const auto list = client.request("tools/list");
  const auto call = client.request("tools/call", {{"name", "red_tool"}});
  proxy.run();
  EXPECT_THAT(client.result_of(list), AllOf(HasSubstr("blue_tool"), Not(HasSubstr("red_tool"))));
  EXPECT_THAT(client.result_of(call),
              AllOf(HasSubstr("The server red: nobody listens"), HasSubstr("tried again in")));
  red.absent = false;
  proxy.advance(31s);
  const auto again = client.request("tools/call", {{"name", "red_tool"}});
  proxy.run();
  EXPECT_THAT(client.result_of(again), HasSubstr("red tool"));
}

TEST(ProxyTest, AServerThatNeverAnswersDelaysTheOthersOnlyForAWhile) {
  FakeServer red("red", true);
  FakeServer blue("blue", true);
  answer_calls(blue);
  red.is_silent = true;
  FakeProxy proxy({red.upstream(true), blue.upstream(true)});
  FakeClient client(*proxy.server, Kind::connection);
  const auto list = client.request("tools/list");
  proxy.run();
  EXPECT_EQ(client.answer_to(list), nullptr);
  proxy.advance(Gathering::kPatience);
  EXPECT_THAT(client.result_of(list), HasSubstr("blue_tool"));
}

TEST(ProxyTest, AForgottenSessionIsBegunAnew) {
  FakeServer server("behind", false);
  bool has_forgotten = false;
  answer_calls(server);
  const auto usual = server.on_message;
  FakeProxy proxy({server.upstream()});
  FakeClient client(*proxy.server, Kind::session);
  client.initialize();
  proxy.run();
  client.request("logging/setLevel", {{"level", "warning"}});
  client.request("resources/subscribe", {{"uri", "x:y"}});
  proxy.run();
  server.heard.clear();
  server.on_message = [&](FakeLink& link, const json::object& message) {
    if (!std::exchange(has_forgotten, true)) return link.forget_session(to_json(message.at("id")));
    usual(link, message);
  };
  const auto id = client.request("tools/call", {{"name", "tool"}});
  proxy.run();
  EXPECT_THAT(client.result_of(id), HasSubstr("behind tool"));
  EXPECT_THAT(server.clients, SizeIs(2));
  EXPECT_THAT(server.heard, ::testing::Contains(HasSubstr("logging/setLevel")));
  EXPECT_THAT(server.heard, ::testing::Contains(HasSubstr("resources/subscribe")));
}

TEST(ProxyTest, AServerThatHasToWaitIsNotTakenForOneThatHangs) {
  FakeServer server("behind", false);
  UpstreamOptions upstream = server.upstream();
  upstream.idle_timeout = 5s;
  FakeProxy proxy({upstream});
  FakeClient client(*proxy.server, Kind::connection);
  const UnreadCall call(server, proxy, client);
  proxy.advance(20s);
  EXPECT_THAT(server.heard, IsEmpty());
  client.drain();
  proxy.advance(11s);
  EXPECT_THAT(server.heard, ElementsAre(HasSubstr("ping"))) << "now its silence counts";
}

/// The fields of a request over HTTP.
struct Fields final : HeaderSource {
  [[nodiscard]] Field find(std::string_view name) const override {
    return name == "Mcp-Param-Region" ? Field{.value = "north", .count = 1} : Field{};
  }
};

TEST(ProxyTest, HeaderFieldsMustAgreeWithTheArgumentsOfAToolThatHasBeenListed) {
  FakeServer server("behind", true);
  Upstream upstream(server.upstream());
  const Fields fields;
  MirroredHeaders headers;
  headers.all = &fields;
  const auto code = [&](json::object arguments) {
    const auto checked =
        upstream.check({{"name", "tool"}, {"arguments", std::move(arguments)}}, headers);
    return checked ? 0 : checked.error().code;
  };
  EXPECT_EQ(code({{"region", "south"}}), 0) << "it is not known";
  const json::object region{{"type", "string"}, {"x-mcp-header", "Region"}};
  const json::object schema{{"type", "object"}, {"properties", {{"region", region}}}};
  const json::object tool{{"name", "tool"}, {"inputSchema", schema}};
  upstream.learn("tools/list", {{"tools", json::array{tool}}});
  EXPECT_EQ(code({{"region", "north"}}), 0);
  EXPECT_EQ(code({{"region", "south"}}), kHeaderMismatch);
  EXPECT_EQ(code({}), kHeaderMismatch);
  upstream.learn("tools/list", {{"tools", {{{"name", "tool"}, {"inputSchema", json::object()}}}}});
  EXPECT_EQ(code({{"region", "south"}}), 0) << "it has changed";
}

TEST(ProxyTest, ARequestDoesNotOvertakeTheLevelOfItsLogMessages) {
  FakeServer server("behind", false);
  std::optional<json::object> level;
  server.on_message = [&](FakeLink& link, const json::object& message) {
    if (text_at(message, "method") == "logging/setLevel") {
      level = message;
    } else {
      server.answer(link, message, json::object());
    }
  };
  FakeProxy proxy({server.upstream()});
  FakeClient client(*proxy.server, Kind::connection);
  const json::object meta{{"io.modelcontextprotocol/logLevel", "info"}};
  const auto first = client.request("tools/call", {{"name", "tool"}}, meta);
  const auto dropped = client.request("tools/call", {{"name", "tool"}}, meta);
  proxy.run();
  EXPECT_THAT(server.heard, ElementsAre(HasSubstr("logging/setLevel")));
  client.cancel(dropped);
  proxy.run();
  server.answer(*server.links.front(), *level, json::object());
  proxy.run();
  EXPECT_EQ(client.result_of(first).contains("resultType"), true);
  EXPECT_THAT(server.heard, ElementsAre(HasSubstr("logging/setLevel"), HasSubstr("tools/call")));
  // The server knows the level by now.
  client.request("tools/call", {{"name", "tool"}}, meta);
  proxy.run();
  EXPECT_THAT(server.heard, SizeIs(3));
}

TEST(ProxyTest, AServerThatSaysNothingOfTheLevelHoldsRequestsOnlyForAWhile) {
  FakeServer server("behind", false);
  server.on_message = [&](FakeLink& link, const json::object& message) {
    if (text_at(message, "method") == "tools/call") server.answer(link, message, json::object());
  };
  FakeProxy proxy({server.upstream()});
  FakeClient client(*proxy.server, Kind::connection);
  const auto id = client.request("tools/call", {{"name", "tool"}},
                                 {{"io.modelcontextprotocol/logLevel", "info"}});
  proxy.run();
  EXPECT_EQ(client.answer_to(id), nullptr);
  proxy.advance(30s);
  EXPECT_NE(client.answer_to(id), nullptr);
}

TEST(ProxyTest, ASessionHearsOfWhatMayHaveChangedBeforeItsServerCouldTell) {
  FakeServer server("behind", false);
  answer_calls(server);
  FakeProxy proxy({server.upstream()});
  FakeClient client(*proxy.server, Kind::session);
  client.initialize();
  proxy.run();
  const std::string changed = "notifications/tools/list_changed";
  server.links.front()->begin_listening();
  proxy.run();
  EXPECT_THAT(client.heard_of(changed), IsEmpty());
  client.request("tools/call", {{"name", "tool"}});
  proxy.run();
  server.links.front()->begin_listening();
  proxy.run();
  EXPECT_THAT(client.heard_of(changed), SizeIs(1));
}

TEST(ProxyTest, ACallWhoseClientDoesNotComeBackIsGivenUp) {
  FakeServer server("behind", false);
  server.on_message = [&server](FakeLink& link, const json::object& message) {
    if (text_at(message, "method") == "ping") return server.answer(link, message, {});
    if (text_at(message, "method") != "tools/call") return;
    server.post(link,
                {{"jsonrpc", "2.0"},
                 {"id", 1},
                 {"method", "elicitation/create"},
                 {"params",
                  {{"message", "Who?"},
                   {"requestedSchema", {{"type", "object"}, {"properties", json::object()}}}}}});
  };
  FakeProxy proxy({server.upstream()});
  FakeClient client(*proxy.server, Kind::request);
  const auto id = client.request("tools/call", {{"name", "tool"}});
  proxy.run();
  const json::object result = client.answer_to(id)->at("result").as_object();
  ASSERT_EQ(text_at(result, "resultType"), "input_required");
  proxy.advance(ParkedCalls::kAnswerTime);
  EXPECT_THAT(server.heard.back(), HasSubstr("notifications/cancelled"));
  const auto late =
      client.request("tools/call", {{"name", "tool"}, {"requestState", result.at("requestState")}});
  proxy.run();
  EXPECT_THAT(client.result_of(late), HasSubstr("is not open any more"));
}

TEST(ProxyTest, QuestionsOutsideOfCallsReachTheClientOfTheSession) {
  FakeServer server("behind", false);
  answer_calls(server);
  FakeProxy proxy({server.upstream()});
  FakeClient client(*proxy.server, Kind::session);
  client.capabilities = {{"roots", json::object()}};
  client.initialize();
  proxy.run();
  server.post(*server.links[0], {{"jsonrpc", "2.0"}, {"id", 5}, {"method", "roots/list"}});
  proxy.run();
  const auto asked = client.heard_of("roots/list");
  ASSERT_THAT(asked, SizeIs(1));
  client.send(
      {{"jsonrpc", "2.0"}, {"id", asked[0]->at("id")}, {"result", {{"roots", json::array()}}}});
  proxy.run();
  EXPECT_EQ(server.heard.back(), R"({"jsonrpc":"2.0","id":5,"result":{"roots":[]}})");
  client.send({{"jsonrpc", "2.0"}, {"method", "notifications/roots/list_changed"}});
  proxy.run();
  EXPECT_THAT(server.heard.back(), HasSubstr("notifications/roots/list_changed"));
}

TEST(ProxyTest, CloseEndsAllSessions) {
  FakeServer server("behind", false);
  FakeProxy proxy({server.upstream()});
  FakeClient client(*proxy.server, Kind::session);
  client.initialize();
  proxy.run();
  bool is_done = false;
  proxy.proxy->close([&is_done] { is_done = true; });
  proxy.run();
  EXPECT_TRUE(is_done);
  EXPECT_THAT(server.links, IsEmpty());
  const auto id = client.request("tools/list");
  proxy.run();
  EXPECT_THAT(client.result_of(id), HasSubstr("shutting down"));
}

}  // namespace
}  // namespace sluice
