#include "client/session/change_watch.hpp"

#include <chrono>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <utility>

#include "client/session/client_session_test_support.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class ChangeWatchTest : public test::ClientSessionTest {
 protected:
  ClientSession::Number watch(WatchFilter filter) {
    return session->watch(
        std::move(filter),
        {.on_progress =
             [this](const json::object& told) { said.emplace_back(told.at("method").as_string()); },
         .on_answer =
             [this](Result<json::object> answer) {
               said.push_back(answer ? "over"
                                     : std::to_string(answer.error().code) + " " +
                                           answer.error().message);
             }});
  }
  void tell(const std::string& method, const std::string& params = "{}") {
    receive(R"({"jsonrpc":"2.0","method":"notifications/)" + method + R"(","params":)" + params +
            "}");
  }
};

TEST_F(ChangeWatchTest, ListensInTheModernEra) {
  open_modern();
  watch({.tools = true, .uris = {"a://b"}, .level = "debug"});
  EXPECT_THAT(take(), AllOf(HasSubstr(R"("method":"subscriptions/listen")"),
                            HasSubstr(R"("notifications":{"toolsListChanged":true,)"
                                      R"("resourceSubscriptions":["a://b"]})"),
                            HasSubstr(R"("io.modelcontextprotocol/logLevel":"debug")")));
  const std::string own = R"({"_meta":{"io.modelcontextprotocol/subscriptionId":2}})";
  tell("subscriptions/acknowledged", own);
  tell("tools/list_changed", own);
  tell("tools/list_changed", R"({"_meta":{"io.modelcontextprotocol/subscriptionId":9}})");
  tell("message", R"({"level":"info"})");
  loop.advance(24h);
  receive(R"({"jsonrpc":"2.0","id":2,"result":{}})");
  EXPECT_THAT(said,
              ElementsAre("notifications/subscriptions/acknowledged",
                          "notifications/tools/list_changed", "notifications/message", "over"));
  EXPECT_THAT(notified, ElementsAre("notifications/tools/list_changed", "notifications/message"));
  EXPECT_EQ(loop.timers(), 0U);
}

TEST_F(ChangeWatchTest, ListensAgainWhenItsStreamBreaksOff) {
  open_modern();
  const auto number = watch({.tools = true});
  for (int i = 0; i < 20; ++i) {
    take();
    ASSERT_EQ(last.method, "subscriptions/listen") << i;
    wire.owner->on_unanswered(last.id, {502, "broken off", {}});
    EXPECT_EQ(take(), "nothing") << "not at once";
    loop.advance(5s);
  }
  take();
  tell("tools/list_changed",
       R"({"_meta":{"io.modelcontextprotocol/subscriptionId":)" + last.id + "}}");
  EXPECT_THAT(said, ElementsAre("notifications/tools/list_changed"));
  session->cancel(number);
  EXPECT_THAT(take(), HasSubstr("notifications/cancelled"));
  EXPECT_EQ(loop.timers(), 0U);
  watch({.tools = true});
  reply(R"("error":{"code":-32601,"message":"never heard of it"})");
  EXPECT_EQ(said.back(), "-32601 never heard of it");
}

TEST_F(ChangeWatchTest, WhatMayHaveChangedUnheardIsNotTakenFromTheCache) {
  options.caches = true;
  open_modern();
  watch({.tools = true, .uris = {"a://b"}});
  const auto acknowledge = [this] {
    take();
    ASSERT_EQ(last.method, "subscriptions/listen");
    tell("subscriptions/acknowledged",
         R"({"_meta":{"io.modelcontextprotocol/subscriptionId":)" + last.id + "}}");
  };
  acknowledge();
  const RequestId listening = last.id;
  /// Whether the server is asked for it.
  const auto asks = [this](const std::string& method, json::object params) {
    session->begin(method, std::move(params), {}, {});
    loop.run();
    if (wire.sent.empty()) return false;
    reply(R"("result":{"ttlMs":3600000,"cacheScope":"private"})");
    return true;
  };
  const auto asks_for_watched = [&asks] {
    const bool list = asks("tools/list", {});
    return asks("resources/read", {{"uri", "a://b"}}) && list;
  };
  const json::object other = {{"uri", "b://other"}};
  EXPECT_TRUE(asks_for_watched());
  EXPECT_FALSE(asks_for_watched());
  EXPECT_TRUE(asks("resources/read", other));
  wire.owner->on_unanswered(listening, {502, "broken off", {}});
  EXPECT_TRUE(asks_for_watched()) << "the stream is broken";
  loop.advance(5s);
  acknowledge();
  EXPECT_TRUE(asks_for_watched()) << "it is a new stream";
  EXPECT_FALSE(asks("resources/read", other)) << "it is not watched";
}

TEST_F(ChangeWatchTest, SubscribesInTheLegacyEraAndAgainInANewSession) {
  open_legacy();
  watch({.resources = true, .uris = {"a://b"}, .level = "info"});
  const auto expect_subscriptions = [this] {
    EXPECT_THAT(take(), AllOf(HasSubstr("resources/subscribe"), HasSubstr("a://b")));
    receive(R"({"jsonrpc":"2.0","id":)" + last.id + R"(,"result":{}})");
    EXPECT_THAT(take(), AllOf(HasSubstr("logging/setLevel"), HasSubstr("info")));
    receive(R"({"jsonrpc":"2.0","id":)" + last.id + R"(,"result":{}})");
  };
  expect_subscriptions();
  tell("resources/updated", R"({"uri":"a://b"})");
  tell("tools/list_changed");
  tell("message", R"({"level":"info"})");
  tell("resources/list_changed");
  EXPECT_THAT(said, ElementsAre("notifications/resources/updated", "notifications/message",
                                "notifications/resources/list_changed"));
  // Nobody else would find out that the server has been restarted.
  loop.advance(ChangeWatch::kPingInterval);
  EXPECT_THAT(take(), HasSubstr(R"("method":"ping")"));
  wire.owner->on_session_over(last.id);
  reply(R"("result":{"protocolVersion":"2025-11-25","capabilities":{}})");
  take();  // initialized
  EXPECT_THAT(take(), HasSubstr(R"("method":"ping")"));
  receive(R"({"jsonrpc":"2.0","id":)" + last.id + R"(,"result":{}})");
  expect_subscriptions();
}

TEST_F(ChangeWatchTest, WhatWasNotHeardIsSubscribedToWithTheNextPing) {
  open_legacy();
  watch({.uris = {"a://b"}});
  take();
  wire.owner->on_unanswered(last.id, {502, "broken off", {}});
  loop.advance(ChangeWatch::kPingInterval);
  reply(R"("result":{})");
  EXPECT_THAT(take(), HasSubstr("resources/subscribe"));
  receive(R"({"jsonrpc":"2.0","id":)" + last.id + R"(,"error":{"code":-32002,"message":"none"}})");
  EXPECT_THAT(said, ElementsAre("-32002 none"));
  EXPECT_EQ(loop.timers(), 0U);
}

TEST_F(ChangeWatchTest, UnsubscribesFromWhatNobodyElseWatches) {
  open_legacy();
  const auto first = watch({.uris = {"a://b", "a://c"}});
  watch({.uris = {"a://b"}});
  for (int i = 0; i < 3; ++i) reply(R"("result":{})");
  session->cancel(first);
  EXPECT_THAT(take(), AllOf(HasSubstr("resources/unsubscribe"), HasSubstr("a://c")));
  EXPECT_EQ(take(), "nothing");
}

TEST_F(ChangeWatchTest, EndsWithItsLinkAndItsSession) {
  open_legacy();
  watch({.tools = true});
  wire.owner->on_lost({502, "gone", {}});
  loop.run();
  EXPECT_THAT(said, ElementsAre("502 gone"));
  watch({.tools = true});
  loop.run();
  EXPECT_THAT(said.back(), HasSubstr("is over"));
  options.revision = "";
  open_modern();
  watch({.tools = true});
  session.reset();
  EXPECT_EQ(loop.timers(), 0U);
}

}  // namespace
}  // namespace sluice
