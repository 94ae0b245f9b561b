// A server behind the proxy becomes another one, on the same address.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <optional>
#include <string>
#include <vector>

#include "proxy/proxy_test_support.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;
using ::testing::Contains;
using ::testing::Eq;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

using Kind = FakeClient::Kind;

/// A server that refuses what comes over connections from before it was replaced.
struct ReplacedServer : FakeServer {
  explicit ReplacedServer(bool is_modern) : FakeServer("behind", is_modern) { answer_calls(*this); }

  void replace_by(bool is_modern) {
    modern = is_modern;
    on_message = [this, old = opened, answer = on_message](FakeLink& link,
                                                           const json::object& message) {
      if (link.number() > old) return answer(link, message);
      if (!message.contains("id")) return;
      modern ? refuse(link, message, -32022, "Server not initialized") : link.refuse(message, 400);
    };
  }
};

class ProxyOfReplacedServerTest : public ::testing::TestWithParam<bool> {};

TEST_P(ProxyOfReplacedServerTest, AnOpenSessionIsBegunAnewInTheOtherEra) {
  ReplacedServer server(GetParam());
  FakeProxy proxy({server.upstream()});
  FakeClient client(*proxy.server, Kind::connection);
  const auto call = [&] {
    const auto id = client.request("tools/call", {{"name", "tool"}});
    proxy.run();
    return client.result_of(id);
  };
  EXPECT_THAT(call(), HasSubstr("behind tool 1"));
  server.replace_by(!GetParam());
  EXPECT_THAT(call(), HasSubstr("Server not initialized"));
  EXPECT_THAT(call(), HasSubstr("behind tool"));
  EXPECT_THAT(server.links, SizeIs(1)) << "the look is over, and so is the old session";
}

/// A server whose first call is answered by the test.
struct ServerWithASlowCall : ReplacedServer {
  explicit ServerWithASlowCall(bool is_modern) : ReplacedServer(is_modern) {
    on_message = [this, answer = on_message](FakeLink& link, const json::object& message) {
      if (!slow && message.contains("id")) {
        slow = message;
      } else {
        answer(link, message);
      }
    };
  }

  std::optional<json::object> slow;
};

TEST_P(ProxyOfReplacedServerTest, WhatIsUnderWayFromBeforeGoesOnBesideTheNewSession) {
  ServerWithASlowCall server(GetParam());
  FakeProxy proxy({server.upstream()});
  FakeClient client(*proxy.server, Kind::connection);
  const auto call = [&] {
    const auto id = client.request("tools/call", {{"name", "tool"}});
    proxy.run();
    return id;
  };
  const auto slow = call();
  server.replace_by(!GetParam());
  call();
  EXPECT_THAT(client.result_of(call()), HasSubstr("behind tool"));
  EXPECT_EQ(client.result_of(slow), "nothing");
  EXPECT_THAT(server.links, SizeIs(2));
  server.links.front()->say(
      {{"jsonrpc", "2.0"}, {"id", server.slow->at("id")}, {"result", text_result("at last")}});
  proxy.run();
  EXPECT_THAT(client.result_of(slow), HasSubstr("at last"));
  EXPECT_THAT(server.links, SizeIs(1));
}

TEST_P(ProxyOfReplacedServerTest, WhatIsNeverAnsweredByTheOldOneIsGivenUp) {
  ServerWithASlowCall server(GetParam());
  UpstreamOptions options = server.upstream();
  options.idle_timeout = 60s;
  FakeProxy proxy({options});
  FakeClient client(*proxy.server, Kind::connection);
  const auto call = [&] {
    const auto id = client.request("tools/call", {{"name", "tool"}});
    proxy.run();
    return id;
  };
  const auto slow = call();
  server.replace_by(!GetParam());
  for (int i = 0; i < 6; ++i) {
    EXPECT_EQ(client.result_of(slow), "nothing");
    call();
    proxy.advance(10s);
  }
  proxy.advance(10s);
  EXPECT_THAT(client.result_of(slow), HasSubstr("it was replaced"));
  EXPECT_THAT(client.result_of(call()), HasSubstr("behind tool"));
  EXPECT_THAT(server.links, SizeIs(1));
}

TEST(ProxyTest, WhatAReplacedServerHasAskedOutsideOfCallsIsWithdrawn) {
  ReplacedServer server(false);
  FakeProxy proxy({server.upstream()});
  FakeClient client(*proxy.server, Kind::session);
  client.initialize();
  client.request("tools/call", {{"name", "tool"}});
  proxy.run();
  const auto ask = [&] {
    server.post(*server.links.back(),
                {{"jsonrpc", "2.0"},
                 {"id", 7},
                 {"method", "elicitation/create"},
                 {"params",
                  {{"message", "Who?"},
                   {"requestedSchema",
                    {{"type", "object"}, {"properties", {{"who", {{"type", "string"}}}}}}}}}});
    proxy.run();
    return client.heard_of("elicitation/create");
  };
  const auto change = [&](bool is_modern) {
    server.replace_by(is_modern);
    client.request("tools/call", {{"name", "tool"}});
    proxy.advance(2s);
  };
  ASSERT_THAT(ask(), SizeIs(1));
  change(true);
  EXPECT_THAT(client.heard_of("notifications/cancelled"), SizeIs(1));
  change(false);
  const auto asked = ask();
  ASSERT_THAT(asked, SizeIs(2)) << "the first question of another server";
  server.heard.clear();
  client.send({{"jsonrpc", "2.0"},
               {"id", asked.back()->at("id")},
               {"result", {{"action", "accept"}, {"content", {{"who", "me"}}}}}});
  proxy.run();
  EXPECT_THAT(server.heard, Contains(HasSubstr("accept")));
}

TEST(ProxyTest, AClientThatOnlyWaitsHearsOfAReplacedServerAtOnce) {
  for (const bool is_modern : {true, false}) {
    ReplacedServer server(!is_modern);
    FakeProxy proxy({server.upstream()});
    FakeClient client(*proxy.server, Kind::session);
    client.initialize();
    client.request("tools/call", {{"name", "tool"}});
    proxy.run();
    server.replace_by(is_modern);
    client.request("tools/call", {{"name", "tool"}});
    proxy.run();
    EXPECT_THAT(client.heard_of("notifications/tools/list_changed"), Not(IsEmpty()));
    client.heard.clear();
    server.links.front()->say({{"jsonrpc", "2.0"}, {"method", "notifications/tools/list_changed"}});
    proxy.run();
    EXPECT_THAT(client.heard_of("notifications/tools/list_changed"), SizeIs(1));
  }
}

TEST(ProxyTest, ARetiredSessionBeginsNoOther) {
  ServerWithASlowCall server(false);
  FakeProxy proxy({server.upstream()});
  FakeClient client(*proxy.server, Kind::connection);
  const auto call = [&] {
    const auto id = client.request("tools/call", {{"name", "tool"}});
    proxy.run();
    return id;
  };
  const auto slow = call();
  server.replace_by(true);
  call();
  EXPECT_THAT(client.result_of(call()), HasSubstr("behind tool"));
  server.modern = false;
  const std::size_t begun = server.clients.size();
  server.links.front()->forget_session(to_json(server.slow->at("id")));
  proxy.run();
  EXPECT_THAT(client.result_of(slow), HasSubstr("forgotten the session"));
  EXPECT_EQ(server.clients.size(), begun);
}

TEST(ProxyTest, ACallBesideALevelIsAnsweredAlthoughTheServerBeginsNoSessionAnyMore) {
  FakeServer server("behind", false);
  answer_calls(server);
  UpstreamOptions options = server.upstream();
  options.idle_timeout = 60s;
  FakeProxy proxy({options});
  FakeClient client(*proxy.server, Kind::session);
  client.initialize();
  client.request("tools/call", {{"name", "tool"}});
  proxy.run();
  server.refusal = "Unknown method";
  server.on_message = [](FakeLink& link, const json::object& message) {
    if (message.contains("id")) link.forget_session(to_json(message.at("id")));
  };
  client.request("logging/setLevel", {{"level", "debug"}});
  const auto id = client.request("tools/call", {{"name", "tool"}});
  proxy.run();
  EXPECT_THAT(client.result_of(id), HasSubstr("Unknown method"));
  proxy.advance(61s);
  server.refusal.clear();
  answer_calls(server);
  const auto next = client.request("tools/call", {{"name", "tool"}});
  proxy.run();
  EXPECT_THAT(client.result_of(next), HasSubstr("behind tool"));
}

TEST_P(ProxyOfReplacedServerTest, WhatIsInTheWayForAMomentCostsNoSession) {
  ServerWithASlowCall server(GetParam());
  FakeProxy proxy({server.upstream()});
  FakeClient client(*proxy.server, Kind::connection);
  const auto call = [&] {
    const auto id = client.request("tools/call", {{"name", "tool"}});
    proxy.run();
    return id;
  };
  const auto slow = call();
  const auto answers = server.on_message;
  server.on_message = [](FakeLink& link, const json::object& message) {
    if (message.contains("id")) link.refuse(message, 400);
  };
  EXPECT_THAT(client.result_of(call()), HasSubstr("not initialized"));
  server.on_message = answers;
  EXPECT_THAT(client.result_of(call()), HasSubstr("behind tool 1"));
  EXPECT_EQ(client.result_of(slow), "nothing");
  EXPECT_THAT(server.links, SizeIs(1));
}

TEST_P(ProxyOfReplacedServerTest, AServerThatIsTheSameKeepsItsSession) {
  ReplacedServer server(GetParam());
  FakeProxy proxy({server.upstream()});
  FakeClient client(*proxy.server, Kind::connection);
  const auto call = [&] {
    const auto id = client.request("tools/call", {{"name", "tool"}});
    proxy.advance(2s);
    return client.result_of(id);
  };
  EXPECT_THAT(call(), HasSubstr("behind tool 1"));
  const auto answers = server.on_message;
  // It refuses requests, and answers whoever asks what it is.
  server.on_message = [&](FakeLink& link, const json::object& message) {
    if (text_at(message, "method") == "ping") return server.answer(link, message, json::object());
    if (message.contains("id")) link.refuse(message, 400);
  };
  for (int i = 0; i < 10; ++i) EXPECT_THAT(call(), HasSubstr("not initialized"));
  server.on_message = answers;
  EXPECT_THAT(call(), HasSubstr("behind tool 1"));
  EXPECT_EQ(server.opened, 1U);
}

TEST_P(ProxyOfReplacedServerTest, AnotherClientDoesNotNotice) {
  ReplacedServer server(GetParam());
  FakeProxy proxy({server.upstream()});
  FakeClient first(*proxy.server, Kind::connection);
  first.request("tools/call", {{"name", "tool"}});
  proxy.run();
  server.replace_by(!GetParam());
  if (server.modern) server.refusal = "Unknown method";
  FakeClient second(*proxy.server, Kind::connection, {.id = "bob"});
  const auto id = second.request("tools/call", {{"name", "tool"}});
  proxy.run();
  EXPECT_THAT(second.result_of(id), HasSubstr("behind tool"));
}

INSTANTIATE_TEST_SUITE_P(Eras, ProxyOfReplacedServerTest, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "Modern" : "Legacy"; });

TEST(ProxyTest, AServerMaySpeakAnotherLegacyRevisionThanBefore) {
  ReplacedServer server(false);
  server.legacy_revision = "2025-03-26";
  FakeProxy proxy({server.upstream()});
  FakeClient first(*proxy.server, Kind::connection);
  first.request("tools/call", {{"name", "tool"}});
  proxy.run();
  server.legacy_revision = "2025-06-18";
  FakeClient second(*proxy.server, Kind::connection, {.id = "bob"});
  const auto call = [&] {
    const auto id = second.request("tools/call", {{"name", "tool"}});
    proxy.run();
    return second.result_of(id);
  };
  EXPECT_THAT(call(), HasSubstr("behind tool"));
  // The session that was opened with what was known of the server can be renewed, too.
  server.legacy_revision = "2025-11-25";
  server.on_message = [&, old = server.opened, is_new = false, answer = server.on_message](
                          FakeLink& link, const json::object& message) mutable {
    const bool is_of_old = !is_new && link.number() == old && message.contains("id");
    if (!is_of_old) return answer(link, message);
    is_new = true;
    link.forget_session(to_json(message.at("id")));
  };
  EXPECT_THAT(call(), HasSubstr("behind tool"));
}

TEST(ProxyTest, AClientIsToldOfWhatMayHaveChangedBeforeALegacyServerTookItsSubscription) {
  FakeServer server("behind", false);
  std::vector<json::object> subscribes;
  server.on_message = [&](FakeLink& link, const json::object& message) {
    if (text_at(message, "method") == "resources/subscribe") {
      subscribes.push_back(message);
    } else if (message.contains("id")) {
      server.answer(link, message, json::object());
    }
  };
  FakeProxy proxy({server.upstream()});
  FakeClient client(*proxy.server, Kind::connection);
  const auto listen = [&](std::string_view uri) {
    const auto id = client.request(
        "subscriptions/listen", {{"notifications", {{"resourceSubscriptions", json::array{uri}}}}});
    proxy.run();
    return id;
  };
  const auto take = [&] {
    server.answer(*server.links.front(), subscribes.back(), json::object());
    proxy.run();
  };
  const auto updates = [&] { return client.heard_of("notifications/resources/updated").size(); };
  client.request("resources/read", {{"uri", "x:y"}});
  proxy.run();
  listen("x:y");
  client.request("resources/read", {{"uri", "x:y"}});
  proxy.run();
  EXPECT_THAT(updates(), Eq(0U));
  take();
  EXPECT_THAT(updates(), Eq(1U));
  // It is wanted again while the server is still asked.
  const auto again = listen("x:z");
  client.cancel(again);
  proxy.run();
  listen("x:z");
  take();
  EXPECT_THAT(updates(), Eq(2U));
  server.on_message = {};
}

TEST(ProxyTest, AClientIsToldOfAServerThatWasLeftOut) {
  FakeServer one("one", true);
  FakeServer other("other", true);
  answer_calls(one);
  answer_calls(other);
  other.absent = true;
  FakeProxy proxy({one.upstream(true), other.upstream(true)});
  FakeClient client(*proxy.server, Kind::session);
  client.initialize();
  client.request("tools/list");
  proxy.run();
  other.absent = false;
  proxy.advance(60s);
  EXPECT_THAT(client.heard_of("notifications/tools/list_changed"), IsEmpty());
  const auto id = client.request("tools/call", {{"name", "other_tool"}});
  proxy.run();
  EXPECT_THAT(client.result_of(id), HasSubstr("other tool"));
  EXPECT_THAT(client.heard_of("notifications/tools/list_changed"), SizeIs(1));
}

TEST(ProxyTest, ACallThatIsNotReadHoldsUpASharedConnectionForHalfAMinute) {
  FakeServer server("behind", false);
  server.shares_connection = true;
  server.on_message = [&](FakeLink& link, const json::object& message) {
    // The answer to another request would wait, too.
    if (text_at(message, "method") != "tools/call") return;
    const std::string much(4096, 'a');
    for (int i = 0; i < 300; ++i) {
      server.post(link, {{"jsonrpc", "2.0"},
                         {"method", "notifications/progress"},
                         {"params",
                          {{"progressToken", message.at("params").at("_meta").at("progressToken")},
                           {"progress", i},
                           {"message", much}}}});
    }
  };
  FakeProxy proxy({server.upstream()});
  FakeClient client(*proxy.server, Kind::connection);
  client.reads = false;
  const auto id = client.request("tools/call", {{"name", "tool"}});
  proxy.run();
  EXPECT_THAT(server.links.front()->paused, SizeIs(1));
  client.request("tools/list");
  proxy.advance(29s);
  EXPECT_THAT(server.links.front()->paused, SizeIs(1));
  proxy.advance(1s);
  EXPECT_THAT(server.links.front()->paused, IsEmpty());
  client.drain();
  proxy.run();
  EXPECT_THAT(client.result_of(id), HasSubstr("was not read for 30 s"));
  EXPECT_THAT(server.heard.back(), HasSubstr("notifications/cancelled"));
  server.on_message = {};
}

}  // namespace
}  // namespace sluice
