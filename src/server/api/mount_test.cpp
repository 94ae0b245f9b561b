// Server::mount().

#include <future>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "json/json.hpp"
#include "server/host/peer_test_support.hpp"
#include "sluice/server.hpp"
#include "sluice/testing.hpp"

namespace sluice {
namespace {

using ::testing::HasSubstr;

struct Place {
  std::string place;
};

Server weather_server() {
  Server server("weather", "1");
  server.tool("forecast", "", [](Place in) { return "sun in " + in.place; });
  server.tool("later", "", blocking([](Call& call) { return call.principal(); }));
  server.prompt("ask", "", [](Place in) { return "How is " + in.place + "?"; });
  server.completion(PromptRef{"ask"}, "place",
                    [](const std::string&) { return std::vector<std::string>{"Rome"}; });
  server.resource("weather://now", "now", [] { return std::string("rain"); });
  server.resource_template("weather://{place}/today", "today",
                           [](const Place& in) { return "today in " + in.place; });
  return server;
}

std::string refusal(Server& server, const Server& other, const std::string& prefix) {
  try {
    server.mount(other, prefix);
  } catch (const std::invalid_argument& refused) {
    return refused.what();
  }
  return "";
}

TEST(Mount, WhatTheOtherHasIsHereToo) {
  Server server("all", "1");
  server.tool("forecast", "", [] { return std::string("own"); });
  server.mount(weather_server(), "weather");
  testing::Client client(server);
  EXPECT_EQ(client.call("forecast").text(), "own");
  EXPECT_EQ(client.call("weather_forecast", {{"place", "Rome"}}).text(), "sun in Rome");
  EXPECT_EQ(client.call("weather_later").text(), "test");
  const auto text = [&](const std::string& method, const json::object& params,
                        const std::string& pointer) {
    return std::string(
        json::value(client.request(method, params).result).at_pointer(pointer).as_string());
  };
  EXPECT_EQ(text("prompts/get", {{"name", "weather_ask"}, {"arguments", {{"place", "Rome"}}}},
                 "/messages/0/content/text"),
            "How is Rome?");
  EXPECT_EQ(text("completion/complete",
                 {{"ref", {{"type", "ref/prompt"}, {"name", "weather_ask"}}},
                  {"argument", {{"name", "place"}, {"value", ""}}}},
                 "/completion/values/0"),
            "Rome");
  EXPECT_EQ(text("resources/read", {{"uri", "weather://now"}}, "/contents/0/text"), "rain");
  EXPECT_EQ(text("resources/read", {{"uri", "weather://Oslo/today"}}, "/contents/0/text"),
            "today in Oslo");
}

TEST(Mount, AServerThatIsBeingServedAnnouncesIt) {
  Server server("all", "1");
  testing::Client client(server, {.revision = "2025-11-25"});
  server.mount(weather_server());
  client.run();
  EXPECT_FALSE(client.take_notifications("notifications/tools/list_changed").empty());
  EXPECT_EQ(client.call("forecast", {{"place", "Rome"}}).text(), "sun in Rome");
}

TEST(Mount, LaterChangesOfTheOtherDoNotMatter) {
  Server other = weather_server();
  Server server("all", "1");
  server.mount(other, "w");
  other.remove_tool("forecast");
  EXPECT_EQ(testing::Client(server).call("w_forecast", {{"place", "Rome"}}).text(), "sun in Rome");
}

TEST(Mount, WhatIsTakenIsRefusedAndNothingChanges) {
  Server server("all", "1");
  server.resource("weather://now", "now", [] { return std::string("own"); });
  EXPECT_EQ(refusal(server, weather_server(), "w"),
            "the server cannot be mounted: there is a 'weather://now' already");
  EXPECT_THAT(testing::Client(server).call("w_forecast", {{"place", "Rome"}}).text(),
              HasSubstr("Unknown tool"));
}

TEST(Mount, WhatWouldNotWorkHereIsRefused) {
  Server server("all", "1", {.request_headers = {"x-known"}});
  Server guarded = weather_server();
  guarded.use([](Request& request) -> Task<> { co_await request.next(); });
  EXPECT_THAT(refusal(server, guarded, "g"), HasSubstr("it has middleware"));
  EXPECT_THAT(refusal(server, Server("other", "1", {.request_headers = {"X-Unknown"}}), "o"),
              HasSubstr("may read X-Unknown"));
  EXPECT_EQ(refusal(server, Server("other", "1", {.request_headers = {"X-Known"}}), "o"), "");
}

TEST(Mount, WhatTheOtherAnnouncesIsAnnouncedHere) {
  Server other = weather_server();
  Server between("between", "1");
  other.mount(between);  // so the servers have mounted each other
  between.mount(other, "w");
  Server server("all", "1");
  server.mount(between, "b");
  testing::Client client(server, {.revision = "2025-11-25"});
  client.request("resources/subscribe", {{"uri", "weather://now"}});
  other.resource_updated("weather://now");
  other.tools_changed();  // those of the other, not of this server
  client.run();
  EXPECT_EQ(client.take_notifications("notifications/resources/updated").size(), 1U);
  EXPECT_TRUE(client.take_notifications("notifications/tools/list_changed").empty());
}

TEST(Mount, AnAnnouncementNeedsNoServerBetweenAndComesOnce) {
  Server other = weather_server();
  Server server("all", "1");
  {
    Server between("between", "1");
    between.mount(other, "w");
    server.mount(between, "b");
  }
  testing::Client client(server, {.revision = "2025-11-25"});
  client.request("resources/subscribe", {{"uri", "weather://now"}});
  other.resource_updated("weather://now");
  client.run();
  EXPECT_EQ(client.take_notifications("notifications/resources/updated").size(), 1U);
}

TEST(Mount, WhatItReplacesMayUseTheServerWhenItIsDestroyed) {
  struct Announcing {
    explicit Announcing(const Server& of) : server(&of) {}
    Announcing(const Announcing&) = default;
    ~Announcing() { server->tools_changed(); }
    const Server* server;
  };
  Server server("all", "1");
  server.tool("guarded", "", [] { return std::string("ok"); },
              {.visible_to = [last = Announcing(server)](const Principal&) {
                return last.server != nullptr;
              }});
  testing::Client client(server);
  server.mount(weather_server());
  EXPECT_EQ(refusal(server, weather_server(), ""),
            "the server cannot be mounted: there is a 'forecast' already");
  EXPECT_EQ(client.call("guarded").text(), "ok");
}

TEST(Mount, ItsWorkersAreKnownAlsoWhereItIsServedAlready) {
  Server server("all", "1");
  std::optional<Serving> serving;
  std::promise<std::string> refused;
  Server other("other", "1");
  other.tool("stop", "", blocking([&] {
               try {
                 serving->stop();
                 refused.set_value("stopped");
               } catch (const std::logic_error& error) {
                 refused.set_value(error.what());
               }
             }));
  auto started = start(server, http{.port = 0}, ServeOptions{.threads = 1});
  ASSERT_TRUE(started);
  serving.emplace(*std::move(started));
  server.mount(other);
  Peer peer(serving->port());
  const std::string body =
      R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"stop"}})";
  peer.send("POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nContent-Length: " +
            std::to_string(body.size()) + "\r\n\r\n" + body);
  EXPECT_THAT(refused.get_future().get(), HasSubstr("a handler cannot stop its own server"));
  peer.rest();
}

}  // namespace
}  // namespace sluice
