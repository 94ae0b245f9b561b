// Server::mount().

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdexcept>
#include <string>
#include <vector>

#include "json/json.hpp"
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

}  // namespace
}  // namespace sluice
