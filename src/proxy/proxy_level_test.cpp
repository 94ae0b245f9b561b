// What a server behind a proxy is told of the log level that its client wants, and when.

#include <chrono>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "proxy/proxy.hpp"
#include "proxy/proxy_test_support.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

using Kind = FakeClient::Kind;

TEST(ProxyLevelTest, ANewSessionIsToldTheLevelThatWasUnderWay) {
  FakeServer server("behind", false);
  std::vector<json::object> levels;
  std::string call;
  server.on_message = [&](FakeLink& link, const json::object& message) {
    if (text_at(message, "method") == "logging/setLevel") {
      levels.push_back(message);
    } else if (call.empty()) {
      call = to_json(message.at("id"));
    } else {
      server.answer(link, message, text_result("done"));
    }
  };
  FakeProxy proxy({server.upstream()});
  FakeClient client(*proxy.server, Kind::session);
  client.initialize();
  proxy.run();
  const auto id = client.request("tools/call", {{"name", "tool"}});
  proxy.run();
  client.request("logging/setLevel", {{"level", "debug"}});
  proxy.run();
  ASSERT_THAT(levels, SizeIs(1));
  FakeLink& link = *server.links.front();
  link.forget_session(call);
  proxy.run();
  ASSERT_THAT(levels, SizeIs(2)) << "nobody knows which session has taken the first";
  server.answer(link, levels[0], json::object());
  proxy.run();
  const auto next = client.request("tools/call", {{"name", "tool"}});
  proxy.run();
  EXPECT_EQ(client.answer_to(next), nullptr) << "the new session does not know the level yet";
  server.answer(link, levels[1], json::object());
  proxy.run();
  EXPECT_THAT(client.result_of(id), HasSubstr("done"));
  EXPECT_THAT(client.result_of(next), HasSubstr("done"));
}

TEST(ProxyLevelTest, ACallThatIsSentAgainInANewSessionDoesNotOvertakeTheLevel) {
  FakeServer server("behind", false);
  std::vector<std::string> heard;
  std::optional<json::object> level;
  std::optional<json::object> call;
  server.on_message = [&](FakeLink& link, const json::object& message) {
    heard.emplace_back(text_at(message, "method"));
    if (heard.back() == "logging/setLevel") {
      level = message;
    } else if (heard.back() == "tools/call") {
      call = message;
    } else {
      server.answer(link, message, json::object());
    }
  };
  FakeProxy proxy({server.upstream()});
  FakeClient client(*proxy.server, Kind::session);
  client.initialize();
  proxy.run();
  FakeLink& link = *server.links.front();
  client.request("logging/setLevel", {{"level", "info"}});
  proxy.run();
  server.answer(link, *level, json::object());
  const auto id = client.request("tools/call", {{"name", "tool"}});
  client.request("logging/setLevel", {{"level", "debug"}});  // under way meanwhile
  proxy.run();
  ASSERT_TRUE(call);
  heard.clear();
  link.forget_session(to_json(call->at("id")));
  proxy.run();
  EXPECT_THAT(heard, ElementsAre("logging/setLevel"));
  EXPECT_EQ(text_at(level->at("params").as_object(), "level"), "debug");
  server.answer(link, *level, json::object());
  proxy.run();
  EXPECT_THAT(heard, ElementsAre("logging/setLevel", "tools/call"));
  server.answer(link, *call, text_result("done"));
  proxy.run();
  EXPECT_THAT(client.result_of(id), HasSubstr("done"));
}

TEST(ProxyLevelTest, ALevelThatIsSetWhileASessionIsRenewedTwiceIsNotLost) {
  for (const char* const wanted : {"error", "debug"}) {
    FakeServer server("behind", false);
    std::vector<json::object> levels;
    server.on_message = [&](FakeLink& link, const json::object& message) {
      if (text_at(message, "method") == "logging/setLevel") {
        levels.push_back(message);
      } else {
        server.answer(link, message, json::object());
      }
    };
    FakeProxy proxy({server.upstream()});
    FakeClient client(*proxy.server, Kind::session);
    client.initialize();
    proxy.run();
    client.request("logging/setLevel", {{"level", "debug"}});
    proxy.run();
    FakeLink& link = *server.links.front();
    const auto forget_session = [&] {
      link.forget_session(to_json(levels.back().at("id")));
      proxy.run();
    };
    const auto answer = [&] {
      server.answer(link, levels.back(), json::object());
      proxy.run();
    };
    forget_session();
    ASSERT_THAT(levels, SizeIs(2)) << "the new session is told";
    forget_session();
    ASSERT_THAT(levels, SizeIs(2)) << "a server that forgets each session is not told for ever";
    client.request("logging/setLevel", {{"level", wanted}});
    proxy.run();
    ASSERT_THAT(levels, SizeIs(3)) << wanted << ", which the last session has not heard";
    answer();
    client.request("logging/setLevel", {{"level", wanted}});
    proxy.run();
    ASSERT_THAT(levels, SizeIs(3)) << wanted << " is known";
    EXPECT_EQ(text_at(levels.back().at("params").as_object(), "level"), wanted);
  }
}

TEST(ProxyLevelTest, ALevelThatWasLostWithItsSessionIsToldBeforeTheNextRequest) {
  FakeServer server("behind", false);
  std::vector<std::string> heard;
  std::vector<RequestId> ids;
  server.on_message = [&](FakeLink& link, const json::object& message) {
    if (!message.contains("id")) return;
    heard.emplace_back(text_at(message, "method"));
    ids.push_back(to_json(message.at("id")));
    // So often the session is forgotten.
    if (heard.size() > 2) server.answer(link, message, text_result("done"));
  };
  FakeProxy proxy({server.upstream()});
  FakeClient client(*proxy.server, Kind::session);
  client.initialize();
  proxy.run();
  client.request("logging/setLevel", {{"level", "debug"}});
  proxy.run();
  for (int i = 0; i < 2; ++i) {
    server.links.front()->forget_session(ids.back());
    proxy.run();
  }
  EXPECT_THAT(heard, ElementsAre("logging/setLevel", "logging/setLevel"));
  const auto id = client.request("tools/call", {{"name", "tool"}});
  proxy.run();
  EXPECT_THAT(client.result_of(id), HasSubstr("done"));
  EXPECT_THAT(
      heard, ElementsAre("logging/setLevel", "logging/setLevel", "logging/setLevel", "tools/call"));
}

TEST(ProxyLevelTest, AServerThatForgetsEachSessionIsNotToldTheLevelForEver) {
  FakeServer server("behind", false);
  std::size_t levels = 0;
  server.on_message = [&](FakeLink& link, const json::object& message) {
    if (text_at(message, "method") != "logging/setLevel") {
      return server.answer(link, message, text_result("done"));
    }
    ++levels;
    link.forget_session(to_json(message.at("id")));
  };
  FakeProxy proxy({server.upstream()});
  FakeClient client(*proxy.server, Kind::session);
  client.initialize();
  proxy.run();
  client.request("logging/setLevel", {{"level", "debug"}});
  const auto id = client.request("tools/call", {{"name", "tool"}});
  for (int i = 0; i < 100; ++i) proxy.advance(10ms);
  EXPECT_THAT(client.result_of(id), HasSubstr("done"));
  EXPECT_LT(levels, 6U);
}

TEST(ProxyLevelTest, ARequestDoesNotOvertakeTheLevelOfItsLogMessages) {
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

TEST(ProxyLevelTest, ARequestWaitsForNoLevelThatIsSetAfterIt) {
  FakeServer server("behind", false);
  std::vector<json::object> levels;
  server.on_message = [&](FakeLink& link, const json::object& message) {
    if (text_at(message, "method") == "logging/setLevel") {
      levels.push_back(message);
    } else {
      server.answer(link, message, json::object());
    }
  };
  FakeProxy proxy({server.upstream()});
  FakeClient client(*proxy.server, Kind::session);
  client.initialize();
  proxy.run();
  const auto set = [&](const char* level) {
    client.request("logging/setLevel", {{"level", level}});
    proxy.run();
  };
  set("info");
  const auto first = client.request("tools/call", {{"name", "first"}});
  set("debug");
  const auto second = client.request("tools/call", {{"name", "second"}});
  proxy.run();
  ASSERT_THAT(levels, SizeIs(1));
  EXPECT_EQ(client.answer_to(first), nullptr);
  server.answer(*server.links.front(), levels[0], json::object());
  proxy.run();
  EXPECT_NE(client.answer_to(first), nullptr);
  ASSERT_THAT(levels, SizeIs(2));
  EXPECT_EQ(client.answer_to(second), nullptr);
  server.answer(*server.links.front(), levels[1], json::object());
  proxy.run();
  EXPECT_NE(client.answer_to(second), nullptr);
}

TEST(ProxyLevelTest, TheLevelThatIsWantedLastIsToldLast) {
  FakeServer server("behind", false);
  std::vector<json::object> asked;
  server.on_message = [&](FakeLink& link, const json::object& message) {
    if (text_at(message, "method") == "logging/setLevel") {
      asked.push_back(message);
    } else {
      server.answer(link, message, json::object());
    }
  };
  const auto last_level = [&] {
    return std::string(text_at(asked.back().at("params").as_object(), "level"));
  };
  FakeProxy proxy({server.upstream()});
  FakeClient client(*proxy.server, Kind::session);
  client.initialize();
  proxy.run();
  for (const char* const level : {"info", "debug", "error", "debug", "error", "warning"}) {
    client.request("logging/setLevel", {{"level", level}});
    proxy.run();
  }
  const auto call = client.request("tools/call", {{"name", "tool"}});
  proxy.run();
  ASSERT_THAT(asked, SizeIs(1));
  server.answer(*server.links.front(), asked[0], json::object());
  proxy.run();
  ASSERT_THAT(asked, SizeIs(2)) << "what nobody wants any more is left out";
  EXPECT_EQ(last_level(), "warning");
  EXPECT_EQ(client.answer_to(call), nullptr);
  server.post(*server.links.front(), {{"jsonrpc", "2.0"},
                                      {"id", asked[1].at("id")},
                                      {"error", {{"code", -32000}, {"message", "not now"}}}});
  proxy.run();
  EXPECT_NE(client.answer_to(call), nullptr);
  client.request("logging/setLevel", {{"level", "warning"}});
  proxy.run();
  ASSERT_THAT(asked, SizeIs(3)) << "it was refused";
  EXPECT_EQ(last_level(), "warning");
  client.request("logging/setLevel", {{"level", "debug"}});
  client.request("logging/setLevel", {{"level", "warning"}});
  server.answer(*server.links.front(), asked[2], json::object());
  proxy.run();
  const auto next = client.request("tools/call", {{"name", "tool"}});
  proxy.run();
  EXPECT_NE(client.answer_to(next), nullptr);
  EXPECT_EQ(last_level(), "warning");
}

TEST(ProxyLevelTest, AServerThatSaysNothingOfTheLevelHoldsRequestsOnlyForAWhile) {
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

}  // namespace
}  // namespace sluice
