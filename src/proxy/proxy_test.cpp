#include "proxy/proxy.hpp"

#include <chrono>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <optional>
#include <string>
#include <utility>

#include "core/text/base64.hpp"
#include "protocol/error_codes.hpp"
#include "proxy/clients/client_pool.hpp"
#include "proxy/proxy_test_support.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

using Kind = FakeClient::Kind;

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

TEST(ProxyTest, RefusesCapabilitiesThatItDoesNotKeep) {
  FakeServer server("behind", false);
  answer_calls(server);
  FakeProxy proxy({server.upstream()});
  const json::object too_large{{"experimental", {{"x", {{"y", std::string(20'000, 's')}}}}}};
  for (const json::object& declared : {too_large, json::object{{"sampling", 5}}}) {
    for (const Kind kind : {Kind::session, Kind::connection, Kind::request}) {
      FakeClient client(*proxy.server, kind);
      client.capabilities = declared;
      const auto id = kind == Kind::session ? client.initialize() : client.request("tools/list");
      proxy.run();
      EXPECT_THAT(client.result_of(id), AllOf(HasSubstr("-32602"), HasSubstr("capabilities")));
    }
  }
  EXPECT_EQ(server.opened, 0U);
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

TEST(ProxyTest, ACallerHasAConnectionToAModernProgramForItself) {
  FakeServer server("behind", true);
  server.shares_connection = true;
  answer_calls(server);
  FakeProxy proxy({server.upstream()});
  FakeClient alice(*proxy.server, Kind::request, {.id = "alice"});
  FakeClient bob(*proxy.server, Kind::request, {.id = "bob"});
  FakeClient anybody(*proxy.server, Kind::request, {.id = "10.0.0.1", .isolated = false});
  for (FakeClient* const each : {&alice, &bob, &alice, &bob}) {
    each->request("tools/call", {{"name", "tool"}});
    proxy.run();
  }
  EXPECT_EQ(server.opened, 2U);
  for (int i = 0; i < 2; ++i) {
    anybody.request("tools/call", {{"name", "tool"}});
    proxy.run();
  }
  EXPECT_EQ(server.opened, 4U);
}

TEST(ProxyTest, ACallerWithAKeyDoesNotTakeAllPlaces) {
  FakeServer server("behind", true);
  FakeProxy proxy({server.upstream()});
  FakeClient alice(*proxy.server, Kind::request, {.id = "alice"});
  FakeClient bob(*proxy.server, Kind::request, {.id = "bob"});
  for (std::size_t i = 0; i < ClientPool::kMaxOfOne; ++i) {
    alice.request("tools/call", {{"name", "tool"}});
  }
  const auto refused = alice.request("tools/call", {{"name", "tool"}});
  const auto deaf =
      alice.request("subscriptions/listen", {{"notifications", {{"toolsListChanged", true}}}});
  proxy.run();
  EXPECT_THAT(alice.result_of(refused), HasSubstr("128 requests"));
  EXPECT_THAT(alice.result_of(deaf), HasSubstr("128 requests"));
  answer_calls(server);
  const auto taken = bob.request("tools/call", {{"name", "tool"}});
  proxy.run();
  EXPECT_THAT(bob.result_of(taken), HasSubstr("behind tool"));
}

TEST(ProxyTest, ACancellationOfNoRequestIsNotPassedOn) {
  FakeServer server("behind", false);
  answer_calls(server);
  FakeProxy proxy({server.upstream()});
  FakeClient client(*proxy.server, Kind::session);
  client.initialize();
  proxy.run();
  client.request("tools/call", {{"name", "tool"}});
  proxy.run();
  for (const json::value& id : {json::value(1.0), json::value(json::object{{"a", 1}})}) {
    client.send({{"jsonrpc", "2.0"},
                 {"method", "notifications/cancelled"},
                 {"params", {{"requestId", id}}}});
  }
  client.send({{"jsonrpc", "2.0"}, {"method", "notifications/own"}});
  proxy.run();
  EXPECT_THAT(server.heard, Contains(HasSubstr("notifications/own")));
  EXPECT_THAT(server.heard, Not(Contains(HasSubstr("cancelled"))));
}

TEST(ProxyTest, TheQuestionsOfACallThatIsGivenUpAreAnswered) {
  FakeServer server("behind", false);
  server.on_message = [&server](FakeLink& link, const json::object& message) {
    if (text_at(message, "method") != "tools/call") return;
    const json::object schema{{"type", "object"}, {"properties", json::object()}};
    server.post(link, {{"jsonrpc", "2.0"},
                       {"id", "q"},
                       {"method", "elicitation/create"},
                       {"params", {{"message", "Who?"}, {"requestedSchema", schema}}}});
  };
  FakeProxy proxy({server.upstream()});
  FakeClient client(*proxy.server, Kind::session);
  client.initialize();
  proxy.run();
  const auto call = client.request("tools/call", {{"name", "tool"}});
  proxy.run();
  ASSERT_THAT(client.heard_of("elicitation/create"), SizeIs(1));
  client.cancel(call);
  proxy.run();
  EXPECT_THAT(server.heard, Contains(AllOf(HasSubstr(R"("id":"q")"), HasSubstr("given up"))));
}

TEST(ProxyTest, AServerThatIsHeardDoesNotHang) {
  FakeServer server("behind", false);
  FakeLink* by = nullptr;
  json::object asked;
  server.on_message = [&](FakeLink& link, const json::object& message) {
    if (text_at(message, "method") != "tools/call") return;
    by = &link;
    asked = message;
  };
  FakeProxy proxy({server.upstream()});
  FakeClient client(*proxy.server, Kind::session);
  client.initialize();
  proxy.run();
  const auto call = client.request("tools/call", {{"name", "tool"}});
  proxy.run();
  ASSERT_NE(by, nullptr);
  proxy.advance(5min);
  ASSERT_THAT(server.heard, Contains(HasSubstr("\"ping\""))) << "which it does not answer";
  for (int i = 0; i < 10; ++i) {
    by->say({{"jsonrpc", "2.0"},
             {"method", "notifications/progress"},
             {"params",
              {{"progressToken", asked.at("params").at("_meta").at("progressToken")},
               {"progress", i}}}});
    proxy.advance(10s);
  }
  server.answer(*by, asked, text_result("done"));
  proxy.run();
  EXPECT_THAT(client.result_of(call), HasSubstr("done"));
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
  EXPECT_EQ(code({{"region", 5}}), kHeaderMismatch);
  EXPECT_EQ(code({{"region", {"north"}}}), kHeaderMismatch);
  upstream.learn("tools/list", {{"tools", {{{"name", "tool"}, {"inputSchema", json::object()}}}}});
  EXPECT_EQ(code({{"region", "south"}}), 0) << "it has changed";
}

TEST(ProxyTest, WhatIsLearnedOfToolsIsBounded) {
  FakeServer server("behind", true);
  Upstream upstream(server.upstream());
  const auto learn = [&upstream](const std::string& name) {
    const json::object region{{"type", "string"}, {"x-mcp-header", "Region"}};
    const json::object schema{{"type", "object"}, {"properties", {{"region", region}}}};
    upstream.learn("tools/list",
                   {{"tools", json::array{json::object{{"name", name}, {"inputSchema", schema}}}}});
  };
  const Fields fields;
  MirroredHeaders headers;
  headers.all = &fields;
  const auto knows = [&](const std::string& name) {
    return !upstream.check({{"name", name}, {"arguments", json::object()}}, headers);
  };
  learn("first");
  learn(std::string(Upstream::kMaxLearned, 'x'));
  EXPECT_TRUE(knows("first")) << "the other one is too long";
  learn(std::string(Upstream::kMaxLearned - 30, 'y'));
  EXPECT_TRUE(knows(std::string(Upstream::kMaxLearned - 30, 'y')));
  EXPECT_FALSE(knows("first"));
  for (std::size_t i = 0; i < Upstream::kMaxTools; ++i) learn(std::to_string(i));
  EXPECT_TRUE(knows(std::to_string(Upstream::kMaxTools - 1)));
}

TEST(ProxyTest, AServerThatHangsIsGivenUpHoweverMuchItHasToAnswer) {
  FakeServer server("behind", false);
  server.shares_connection = true;
  ProxyOptions options;
  options.has_one_session = true;
  FakeProxy proxy({server.upstream()}, options);
  std::vector<std::unique_ptr<FakeClient>> clients;
  std::vector<std::int64_t> ids;
  for (int i = 0; i < 50; ++i) {
    FakeClient& client = *clients.emplace_back(std::make_unique<FakeClient>(
        *proxy.server, Kind::session, Principal{.id = "p" + std::to_string(i)}));
    client.initialize();
    proxy.run();
    for (int call = 0; call < 20; ++call) {
      ids.push_back(client.request("tools/call", {{"name", "t"}}));
    }
    proxy.run();
  }
  server.is_silent = true;
  for (int i = 0; i < 12; ++i) proxy.advance(std::chrono::minutes(1));
  for (std::size_t i = 0; i < ids.size(); ++i) {
    EXPECT_THAT(clients[i / 20]->result_of(ids[i]), HasSubstr("it hangs"));
  }
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
  EXPECT_THAT(server.heard, Contains(HasSubstr("notifications/cancelled")));
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
