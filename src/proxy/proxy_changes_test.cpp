// Changes through a proxy: what a client is told of them, and the subscriptions that bring them.

#include <algorithm>
#include <chrono>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "proxy/proxy.hpp"
#include "proxy/proxy_test_support.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Gt;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Lt;
using ::testing::Not;
using ::testing::SizeIs;

using Kind = FakeClient::Kind;

TEST(ProxyTest, AClientIsToldOfWhatMayHaveChangedSinceItSubscribedAtAModernServer) {
  FakeServer server("behind", true);
  std::vector<json::object> listens;
  server.on_message = [&](FakeLink& link, const json::object& message) {
    if (text_at(message, "method") == "subscriptions/listen") {
      listens.push_back(message);
    } else if (message.contains("id")) {
      server.answer(link, message, text_result("done"));
    }
  };
  FakeProxy proxy({server.upstream()});
  FakeClient client(*proxy.server, Kind::session);
  client.initialize();
  client.request("tools/call", {{"name", "tool"}});
  proxy.run();
  const auto acknowledge = [&](const json::object& listen) {
    server.post(*server.links.front(),
                {{"jsonrpc", "2.0"},
                 {"method", "notifications/subscriptions/acknowledged"},
                 {"params",
                  {{"_meta", {{"io.modelcontextprotocol/subscriptionId", listen.at("id")}}},
                   {"notifications", listen.at("params").at("notifications")}}}});
    proxy.run();
  };
  acknowledge(listens.back());
  client.heard.clear();
  client.request("resources/subscribe", {{"uri", "x:quiet"}});
  proxy.run();
  acknowledge(listens.back());
  EXPECT_THAT(client.heard_of("notifications/resources/updated"), IsEmpty());
  const json::object before = listens.back();
  client.request("resources/subscribe", {{"uri", "x:changed"}});
  proxy.run();
  client.request("tools/call", {{"name", "tool"}});
  proxy.run();
  acknowledge(before);
  EXPECT_THAT(client.heard_of("notifications/resources/updated"), IsEmpty());
  acknowledge(listens.back());
  const auto told = client.heard_of("notifications/resources/updated");
  ASSERT_THAT(told, SizeIs(1));
  EXPECT_EQ(told.front()->at("params").at("uri"), "x:changed");
  EXPECT_THAT(client.heard_of("notifications/tools/list_changed"), IsEmpty());
  server.on_message = {};
}

TEST(ProxyTest, AClientIsToldOfWhatMayHaveChangedWhileTheServerHadEndedTheStream) {
  FakeServer server("behind", true);
  std::vector<json::object> listens;
  server.on_message = [&](FakeLink& link, const json::object& message) {
    if (text_at(message, "method") != "subscriptions/listen") {
      if (message.contains("id")) server.answer(link, message, text_result("done"));
      return;
    }
    listens.push_back(message);
    server.post(link, {{"jsonrpc", "2.0"},
                       {"method", "notifications/subscriptions/acknowledged"},
                       {"params",
                        {{"_meta", {{"io.modelcontextprotocol/subscriptionId", message.at("id")}}},
                         {"notifications", message.at("params").at("notifications")}}}});
  };
  FakeProxy proxy({server.upstream()});
  FakeClient client(*proxy.server, Kind::session);
  client.initialize();
  client.request("resources/subscribe", {{"uri", "x:y"}});
  proxy.run();
  client.heard.clear();
  const std::size_t before = listens.size();
  server.answer(*server.links.front(), listens.back(), {{"resultType", "complete"}});
  proxy.advance(2s);
  EXPECT_EQ(listens.size(), before + 1);
  EXPECT_THAT(client.heard_of("notifications/resources/updated"), SizeIs(1));
  server.on_message = {};
}

TEST(ProxyTest, AServerThatCannotListenIsNotAskedForItAgain) {
  FakeServer server("behind", true);
  std::size_t listens = 0;
  server.on_message = [&](FakeLink& link, const json::object& message) {
    if (text_at(message, "method") == "subscriptions/listen") {
      ++listens;
      server.refuse(link, message, -32601, "Method not found");
    } else if (message.contains("id")) {
      server.answer(link, message, text_result("done"));
    }
  };
  FakeProxy proxy({server.upstream()});
  FakeClient client(*proxy.server, Kind::session);
  client.initialize();
  proxy.run();
  for (const char* const uri : {"x:1", "x:2", "x:3"}) {
    client.request("resources/subscribe", {{"uri", uri}});
    proxy.advance(2s);
  }
  EXPECT_EQ(listens, 1U);
  server.on_message = {};
}

TEST(ProxyTest, ASubscriptionRenewsASessionThatWasForgottenLongAgo) {
  FakeServer server("behind", false);
  std::vector<std::string> heard;
  bool has_forgotten = false;
  server.on_message = [&](FakeLink& link, const json::object& message) {
    if (!message.contains("id")) return;
    heard.emplace_back(text_at(message, "method"));
    if (std::exchange(has_forgotten, false)) return link.forget_session(to_json(message.at("id")));
    server.answer(link, message, text_result("done"));
  };
  FakeProxy proxy({server.upstream()}, {.has_one_session = true});
  FakeClient one(*proxy.server, Kind::session);
  one.initialize();
  proxy.run();
  heard.clear();
  has_forgotten = true;
  FakeClient two(*proxy.server, Kind::connection);
  two.request("subscriptions/listen", {{"notifications", {{"resourceSubscriptions", {"x:y"}}}}});
  proxy.run();
  EXPECT_THAT(heard, ::testing::Each("resources/subscribe"));
  EXPECT_GT(heard.size(), 1U) << "again in the new session";
  server.on_message = {};
}

TEST(ProxyTest, RequestsForChangesOfAResourceDoNotOvertakeEachOther) {
  FakeServer server("behind", false);
  std::vector<json::object> heard;
  server.on_message = [&](FakeLink& link, const json::object& message) {
    if (text_at(message, "method").starts_with("resources/")) {
      heard.push_back(message);
    } else if (message.contains("id")) {
      server.answer(link, message, json::object());
    }
  };
  const auto methods = [&heard] {
    std::vector<std::string> out;
    for (const auto& each : heard) out.emplace_back(text_at(each, "method"));
    return out;
  };
  FakeProxy proxy({server.upstream()});
  FakeClient client(*proxy.server, Kind::connection);
  const auto listen = [&] {
    const auto id = client.request("subscriptions/listen",
                                   {{"notifications", {{"resourceSubscriptions", {"x:y"}}}}});
    proxy.run();
    return id;
  };
  const auto answer = [&] {
    server.answer(*server.links.front(), heard.back(), json::object());
    proxy.run();
  };
  const auto first = listen();
  answer();
  client.cancel(first);
  proxy.run();
  listen();
  EXPECT_THAT(methods(), ElementsAre("resources/subscribe", "resources/unsubscribe"));
  answer();
  EXPECT_THAT(methods(),
              ElementsAre("resources/subscribe", "resources/unsubscribe", "resources/subscribe"));
  answer();
  EXPECT_THAT(heard, SizeIs(3));
  server.on_message = {};
}

/// Asks through `client` for changes of so many resources.
void listen_to(FakeClient& client, std::size_t count) {
  json::array uris;
  for (std::size_t i = 0; i < count; ++i) uris.emplace_back("x:" + std::to_string(i));
  client.request("subscriptions/listen", {{"notifications", {{"resourceSubscriptions", uris}}}});
}

TEST(ProxyTest, SubscriptionsThatFailInPassingAreTriedAgainOneAtATime) {
  FakeServer server("behind", false);
  std::vector<std::string> asked;
  int code = 503;
  server.on_message = [&](FakeLink& link, const json::object& message) {
    if (text_at(message, "method") == "resources/subscribe") {
      asked.emplace_back(text_at(message.at("params").as_object(), "uri"));
      return code == 0 ? server.answer(link, message, json::object())
                       : server.refuse(link, message, code, "not now");
    }
    if (message.contains("id")) server.answer(link, message, json::object());
  };
  FakeProxy proxy({server.upstream()});
  FakeClient client(*proxy.server, Kind::connection);
  const auto wait = [&proxy](int seconds) {
    for (int i = 0; i < 2 * seconds; ++i) proxy.advance(500ms);
  };
  listen_to(client, 100);
  wait(100);
  const std::set<std::string> again(asked.begin() + 100, asked.end());
  EXPECT_THAT(again, SizeIs(AllOf(Gt(5U), Lt(11U)))) << "after 1, 2, 4 and so on to 30 seconds";
  EXPECT_THAT(asked, SizeIs(100 + again.size())) << "each in its turn";
  code = 0;
  wait(30);
  EXPECT_THAT(asked, SizeIs(200 + again.size()));
  wait(60);
  EXPECT_THAT(asked, SizeIs(200 + again.size()));
  code = -32602;
  listen_to(client, 101);
  wait(60);
  EXPECT_THAT(asked, SizeIs(201 + again.size())) << "a refusal is final";
  server.on_message = {};
}

TEST(ProxyTest, ASubscriptionIsTriedAgainWhateverBecomesOfOthers) {
  FakeServer server("behind", false);
  std::map<std::string, int> asked;
  server.on_message = [&](FakeLink& link, const json::object& message) {
    if (!message.contains("id")) return;
    if (text_at(message, "method") != "resources/subscribe") {
      return server.answer(link, message, json::object());
    }
    const std::string uri(text_at(message.at("params").as_object(), "uri"));
    const bool is_first = ++asked[uri] == 1;
    if (uri == "x:3") return;  // is never answered
    if (is_first && uri == "x:0") return server.refuse(link, message, 503, "not now");
    server.answer(link, message, json::object());
  };
  FakeProxy proxy({server.upstream()});
  FakeClient client(*proxy.server, Kind::connection);
  listen_to(client, 4);
  for (int i = 0; i < 4; ++i) proxy.advance(500ms);
  EXPECT_EQ(asked["x:0"], 2);
  listen_to(client, 5);
  proxy.run();
  EXPECT_EQ(asked["x:4"], 1) << "at once";
  for (int i = 0; i < 60; ++i) proxy.advance(500ms);
  EXPECT_EQ(asked["x:3"], 2) << "after 30 seconds";
  listen_to(client, 6);
  proxy.run();
  EXPECT_EQ(asked["x:5"], 1) << "at once";
  server.on_message = {};
}

TEST(ProxyTest, ASubscriptionIsBegunAgainIfItIsNotKnownWhetherItHasEnded) {
  FakeServer server("behind", false);
  std::vector<std::string> asked;
  server.on_message = [&](FakeLink& link, const json::object& message) {
    const std::string_view method = text_at(message, "method");
    if (method.starts_with("resources/")) asked.emplace_back(method);
    if (method == "resources/unsubscribe") return server.refuse(link, message, 504, "no reply");
    if (message.contains("id")) server.answer(link, message, json::object());
  };
  FakeProxy proxy({server.upstream()});
  FakeClient client(*proxy.server, Kind::connection);
  const auto listen = [&] {
    const auto id = client.request("subscriptions/listen",
                                   {{"notifications", {{"resourceSubscriptions", {"x:y"}}}}});
    proxy.run();
    return id;
  };
  client.cancel(listen());
  proxy.run();
  EXPECT_THAT(asked, ElementsAre("resources/subscribe", "resources/unsubscribe"));
  listen();
  EXPECT_THAT(asked,
              ElementsAre("resources/subscribe", "resources/unsubscribe", "resources/subscribe"));
  proxy.advance(std::chrono::seconds(60));
  EXPECT_THAT(asked, SizeIs(3));
  server.on_message = {};
}

TEST(ProxyTest, TryingASubscriptionAgainBeginsNoSession) {
  FakeServer server("behind", false);
  std::size_t asked = 0;
  server.on_message = [&](FakeLink& link, const json::object& message) {
    if (!message.contains("id")) return;
    const bool subscribes = text_at(message, "method") == "resources/subscribe";
    if (!subscribes) return server.answer(link, message, json::object());
    if (++asked % 2 == 1) return server.refuse(link, message, 503, "not now");
    link.forget_session(to_json(message.at("id")));
  };
  FakeProxy proxy({server.upstream()});
  FakeClient client(*proxy.server, Kind::connection);
  listen_to(client, 1);
  for (int i = 0; i < 600; ++i) proxy.advance(100ms);
  EXPECT_THAT(server.clients, SizeIs(1));
  server.on_message = {};
}

TEST(ProxyTest, ASessionOfWhichOnlyChangesAreWantedIsLookedAfter) {
  FakeServer server("behind", false);
  std::size_t asked = 0;
  bool is_forgotten = false;
  server.on_message = [&](FakeLink& link, const json::object& message) {
    if (!message.contains("id")) return;
    if (std::exchange(is_forgotten, false)) {
      return link.forget_session(to_json(message.at("id")));
    }
    asked += text_at(message, "method") == "resources/subscribe" ? 1 : 0;
    server.answer(link, message, json::object());
  };
  server.absent = true;
  FakeProxy proxy({server.upstream()});
  FakeClient client(*proxy.server, Kind::connection);
  listen_to(client, 1);
  proxy.run();
  server.absent = false;
  for (int i = 0; i < 84; ++i) proxy.advance(500ms);
  EXPECT_EQ(asked, 1U) << "the server was not there when the client began to listen";
  is_forgotten = true;
  for (int i = 0; i < 84; ++i) proxy.advance(500ms);
  EXPECT_EQ(asked, 2U) << "the server has forgotten the session";
  server.links.front()->die();
  for (int i = 0; i < 84; ++i) proxy.advance(500ms);
  EXPECT_EQ(asked, 3U) << "the connection was lost";
  server.on_message = {};
}

TEST(ProxyTest, ASubscriptionOutlivesItsConnection) {
  FakeServer server("behind", false);
  std::size_t asked = 0;
  server.on_message = [&](FakeLink& link, const json::object& message) {
    asked += text_at(message, "method") == "resources/subscribe" ? 1 : 0;
    if (message.contains("id")) server.answer(link, message, json::object());
  };
  FakeProxy proxy({server.upstream()});
  FakeClient client(*proxy.server, Kind::session);
  client.initialize();
  client.request("resources/subscribe", {{"uri", "x:y"}});
  proxy.run();
  EXPECT_EQ(asked, 1U);
  client.heard.clear();
  server.links.front()->die();
  for (int i = 0; i < 84; ++i) proxy.advance(500ms);
  EXPECT_EQ(asked, 2U);
  EXPECT_THAT(client.heard_of("notifications/resources/updated"), Not(IsEmpty()))
      << "it may have changed meanwhile";
  server.on_message = {};
}

/// A legacy server that counts the looks after its sessions, and may forget each of these then.
struct LookedAfterServer : FakeServer {
  LookedAfterServer() : FakeServer("behind", false) {
    on_message = [this](FakeLink& link, const json::object& message) {
      if (!message.contains("id")) return;
      const bool is_look = text_at(message, "method") == "ping";
      looks += is_look ? 1 : 0;
      if (is_look && is_forgetful) return link.forget_session(to_json(message.at("id")));
      answer(link, message, json::object());
    };
  }

  std::size_t looks = 0;
  bool is_forgetful = false;
};

TEST(ProxyTest, ASessionThatIsAlwaysForgottenIsSeldomLookedAfter) {
  LookedAfterServer server;
  server.is_forgetful = true;
  FakeProxy proxy({server.upstream()});
  FakeClient client(*proxy.server, Kind::connection);
  listen_to(client, 1);
  for (int i = 0; i < 7200; ++i) proxy.advance(500ms);
  EXPECT_THAT(server.clients, SizeIs(AllOf(Gt(6U), Lt(18U)))) << "in an hour";
  server.is_forgetful = false;
  for (int i = 0; i < 1300; ++i) proxy.advance(500ms);
  const std::size_t before = server.looks;
  for (int i = 0; i < 600; ++i) proxy.advance(500ms);
  EXPECT_GT(server.looks, before + 5) << "as often as at first";
}

TEST(ProxyTest, ALookThatIsRefusedIsNotTheLast) {
  LookedAfterServer server;
  FakeProxy proxy({server.upstream()});
  FakeClient client(*proxy.server, Kind::connection);
  listen_to(client, 1);
  proxy.run();
  // A gateway is in its place, which has no sessions.
  server.is_forgetful = true;
  server.refusal = "Not found";
  for (int i = 0; i < 84; ++i) proxy.advance(500ms);
  EXPECT_GE(server.looks, 1U);
  server.is_forgetful = false;
  server.refusal.clear();
  const std::size_t before = server.looks;
  for (int i = 0; i < 600; ++i) proxy.advance(500ms);
  EXPECT_GT(server.looks, before + 5);
}

TEST(ProxyTest, ManySubscriptionsLeaveRoomForOtherRequests) {
  FakeServer server("behind", false);
  std::vector<json::object> open;
  std::size_t asked = 0;
  server.on_message = [&](FakeLink& link, const json::object& message) {
    if (text_at(message, "method") == "resources/subscribe") {
      ++asked;
      open.push_back(message);
    } else if (message.contains("id")) {
      server.answer(link, message, json::object());
    }
  };
  FakeProxy proxy({server.upstream()});
  FakeClient client(*proxy.server, Kind::connection);
  listen_to(client, 300);
  proxy.run();
  std::size_t most = 0;
  while (!open.empty()) {
    most = std::max(most, open.size());
    server.answer(*server.links.front(), open.back(), json::object());
    open.pop_back();
    proxy.run();
  }
  EXPECT_EQ(asked, 300U);
  EXPECT_EQ(most, 64U);
  server.on_message = {};
}

TEST(ProxyTest, AServerThatForgetsEachSessionIsNotAskedForChangesForEver) {
  FakeServer server("behind", false);
  std::size_t subscriptions = 0;
  bool is_forgetful = false;
  server.on_message = [&](FakeLink& link, const json::object& message) {
    if (!message.contains("id")) return;
    if (text_at(message, "method") == "resources/subscribe") ++subscriptions;
    if (is_forgetful) return link.forget_session(to_json(message.at("id")));
    server.answer(link, message, text_result("done"));
  };
  FakeProxy proxy({server.upstream()});
  FakeClient client(*proxy.server, Kind::session);
  client.initialize();
  for (const char* const uri : {"x:1", "x:2"}) {
    client.request("resources/subscribe", {{"uri", uri}});
  }
  proxy.run();
  is_forgetful = true;
  const auto id = client.request("tools/call", {{"name", "tool"}});
  for (int i = 0; i < 100; ++i) proxy.advance(10ms);
  EXPECT_THAT(client.result_of(id), HasSubstr("forgotten the session again"));
  EXPECT_LE(subscriptions, 6U);
  is_forgetful = false;
  client.request("tools/call", {{"name", "tool"}});
  proxy.run();
  server.on_message = {};
}

}  // namespace
}  // namespace sluice
