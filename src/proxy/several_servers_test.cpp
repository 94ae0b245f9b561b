#include <chrono>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <utility>
#include <vector>

#include "core/text/base64.hpp"
#include "proxy/calls/gathering.hpp"
#include "proxy/proxy_test_support.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

using Kind = FakeClient::Kind;

TEST(SeveralServersTest, ServersHavePrefixesThatStayWhenOneIsAdded) {
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

TEST(SeveralServersTest, APrefixThatTheOnlyServerHasStaysWhenASecondIsAdded) {
  FakeServer red("red", false);
  FakeServer blue("blue", true);
  for (FakeServer* const each : {&red, &blue}) answer_calls(*each);
  for (const bool has_second : {false, true}) {
    std::vector<UpstreamOptions> upstreams{red.upstream(true)};
    if (has_second) upstreams.push_back(blue.upstream(true));
    FakeProxy proxy(std::move(upstreams));
    FakeClient client(*proxy.server, Kind::session);
    client.initialize();
    proxy.run();
    const auto list = client.request("tools/list");
    const auto call = client.request("tools/call", {{"name", "red_tool"}});
    const auto lost = client.request("tools/call", {{"name", "green_tool"}});
    const auto bare = client.request("resources/subscribe", {{"uri", "file:///b"}});
    proxy.run();
    EXPECT_THAT(client.result_of(bare), HasSubstr("-32002")) << "nobody would hear of it";
    EXPECT_THAT(client.result_of(list), HasSubstr(R"("name":"red_tool")"));
    EXPECT_THAT(client.result_of(call), HasSubstr("red tool"));
    EXPECT_THAT(client.result_of(lost), HasSubstr("Unknown tool: green_tool"));
  }
}

TEST(SeveralServersTest, AUriIsFoundInAnyCaseOfItsSchemeAndANameOnlyInItsOwn) {
  FakeServer red("Red", false);
  FakeServer blue("blue", false);
  answer_calls(blue);
  red.on_message = [&](FakeLink& link, const json::object& message) {
    if (!message.contains("id")) return;
    const bool is_read = text_at(message, "method") == "resources/read";
    red.answer(link, message,
               is_read ? json::object{{"contents", {{{"uri", "file:///A"}, {"text", "red"}}}}}
                       : json::object());
  };
  FakeProxy proxy({red.upstream(true), blue.upstream(true)});
  FakeClient client(*proxy.server, Kind::session);
  client.initialize();
  proxy.run();
  for (const char* const uri : {"red+file:///A", "Red+file:///A"}) {
    const auto read = client.request("resources/read", {{"uri", uri}});
    proxy.run();
    EXPECT_THAT(client.result_of(read), HasSubstr(R"("uri":"red+file:///A")"));
  }
  const auto tool = client.request("tools/call", {{"name", "red_tool"}});
  client.request("resources/subscribe", {{"uri", "RED+file:///A"}});
  proxy.run();
  EXPECT_THAT(client.result_of(tool), HasSubstr("Unknown tool: red_tool"));
  red.post(*red.links.at(0), {{"jsonrpc", "2.0"},
                              {"method", "notifications/resources/updated"},
                              {"params", {{"uri", "file:///A"}}}});
  proxy.run();
  ASSERT_THAT(client.heard_of("notifications/resources/updated"), ::testing::SizeIs(1));
  client.request("resources/unsubscribe", {{"uri", "red+file:///A"}});
  proxy.run();
  red.post(*red.links.at(0), {{"jsonrpc", "2.0"},
                              {"method", "notifications/resources/updated"},
                              {"params", {{"uri", "file:///A"}}}});
  proxy.run();
  EXPECT_THAT(client.heard_of("notifications/resources/updated"), ::testing::SizeIs(1));
  red.on_message = {};
}

TEST(SeveralServersTest, ASubscriptionStaysIfTheServerRefusesToBeAskedTwice) {
  FakeServer red("red", false);
  std::size_t subscriptions = 0;
  red.on_message = [&](FakeLink& link, const json::object& message) {
    if (!message.contains("id")) return;
    const bool is_again =
        text_at(message, "method") == "resources/subscribe" && ++subscriptions > 1;
    is_again ? red.refuse(link, message, -32602, "subscribed already")
             : red.answer(link, message, json::object());
  };
  FakeProxy proxy({red.upstream(true)});
  FakeClient client(*proxy.server, Kind::session);
  client.initialize();
  client.request("resources/subscribe", {{"uri", "red+file:///A"}});
  proxy.run();
  const auto again = client.request("resources/subscribe", {{"uri", "RED+file:///A"}});
  proxy.run();
  EXPECT_THAT(client.result_of(again), HasSubstr("subscribed already"));
  red.post(*red.links.at(0), {{"jsonrpc", "2.0"},
                              {"method", "notifications/resources/updated"},
                              {"params", {{"uri", "file:///A"}}}});
  proxy.run();
  EXPECT_THAT(client.heard_of("notifications/resources/updated"), ::testing::SizeIs(1));
  red.on_message = {};
}

TEST(SeveralServersTest, AListenerHearsOfTheUrisThatAServerHasInAnyCase) {
  FakeServer red("Red", false);
  FakeServer blue("blue", false);
  red.on_message = [&](FakeLink& link, const json::object& message) {
    if (message.contains("id")) red.answer(link, message, json::object());
  };
  blue.on_message = [&](FakeLink& link, const json::object& message) {
    if (message.contains("id")) blue.answer(link, message, json::object());
  };
  FakeProxy proxy({red.upstream(true), blue.upstream(true)});
  FakeClient client(*proxy.server, Kind::connection);
  client.request("subscriptions/listen",
                 {{"notifications",
                   {{"resourceSubscriptions", {"RED+file:///A", "file:///A", "x+file:///A"}}}}});
  proxy.run();
  const auto told = client.heard_of("notifications/subscriptions/acknowledged");
  ASSERT_THAT(told, ::testing::SizeIs(1));
  EXPECT_THAT(to_json(*told[0]), HasSubstr(R"("resourceSubscriptions":["red+file:///A"])"))
      << "of others nobody would tell";
  const std::size_t before = client.heard_of("notifications/resources/updated").size();
  red.post(*red.links.at(0), {{"jsonrpc", "2.0"},
                              {"method", "notifications/resources/updated"},
                              {"params", {{"uri", "file:///A"}}}});
  proxy.run();
  EXPECT_THAT(client.heard_of("notifications/resources/updated"), ::testing::SizeIs(before + 1));
}

TEST(SeveralServersTest, PagesOfServersArePutTogether) {
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
  const auto of_nobody = to_base64url(R"({"green":"1"})");
  for (const std::string& bad : {std::string("7"), of_nobody}) {
    const auto id = client.request("tools/list", {{"cursor", bad}});
    proxy.run();
    EXPECT_THAT(client.result_of(id), HasSubstr("-32602")) << bad;
  }
}

/// What is not in the list, the client would take for removed.
TEST(SeveralServersTest, AListWhoseServerDoesNotGoOnHasToBeginAgain) {
  FakeServer red("red", true);
  FakeServer blue("blue", true);
  for (FakeServer* const each : {&red, &blue}) {
    each->on_message = [each](FakeLink& link, const json::object& message) {
      each->answer(link, message, {{"tools", {{{"name", "tool"}}}}, {"nextCursor", "more"}});
    };
  }
  FakeProxy proxy({red.upstream(true), blue.upstream(true)});
  FakeClient client(*proxy.server, Kind::connection);
  const auto first = client.request("tools/list");
  proxy.run();
  const std::string cursor(
      text_at(client.answer_to(first)->at("result").as_object(), "nextCursor"));
  red.on_message = [&red](FakeLink& link, const json::object& message) {
    red.refuse(link, message, -32602, "no such cursor");
  };
  const auto refused = client.request("tools/list", {{"cursor", cursor}});
  proxy.run();
  EXPECT_THAT(client.result_of(refused),
              AllOf(HasSubstr("-32602"), HasSubstr("red"), HasSubstr("no such cursor"),
                    HasSubstr("begin again")));
  red.on_message = nullptr;
  const auto late = client.request("tools/list", {{"cursor", cursor}});
  proxy.run();
  proxy.advance(Gathering::kPatience);
  EXPECT_THAT(client.result_of(late), AllOf(HasSubstr("-32602"), HasSubstr("too long")));
}

TEST(SeveralServersTest, AListWithoutOneOfTheServersIsNotKept) {
  FakeServer red("red", true);
  FakeServer blue("blue", true);
  for (FakeServer* const each : {&red, &blue}) {
    each->on_message = [each](FakeLink& link, const json::object& message) {
      each->answer(link, message,
                   {{"tools", json::array()}, {"ttlMs", 300'000}, {"cacheScope", "public"}});
    };
  }
  FakeProxy proxy({red.upstream(true), blue.upstream(true)});
  FakeClient client(*proxy.server, Kind::connection);
  const auto whole = client.request("tools/list");
  proxy.run();
  EXPECT_THAT(client.result_of(whole),
              AllOf(HasSubstr(R"("ttlMs":300000)"), HasSubstr(R"("cacheScope":"public")")));
  red.on_message = [&red](FakeLink& link, const json::object& message) {
    red.refuse(link, message, -32603, "broken");
  };
  const auto part = client.request("tools/list");
  proxy.run();
  EXPECT_THAT(client.result_of(part),
              AllOf(HasSubstr(R"("ttlMs":0)"), HasSubstr(R"("cacheScope":"private")")));
}

TEST(SeveralServersTest, ErrorsHaveTheNamesOfTheClient) {
  FakeServer red("red", true);
  FakeServer blue("blue", true);
  red.on_message = [&red](FakeLink& link, const json::object& message) {
    red.post(link, {{"jsonrpc", "2.0"},
                    {"id", message.at("id")},
                    {"error",
                     {{"code", -32602}, {"message", "no"}, {"data", {{"uri", "file:///none"}}}}}});
  };
  FakeProxy proxy({red.upstream(true), blue.upstream(true)});
  FakeClient client(*proxy.server, Kind::connection);
  const auto tool = client.request("tools/call", {{"name", "green_tool"}});
  const auto resource = client.request("resources/read", {{"uri", "green+file:///1"}});
  const auto absent = client.request("resources/read", {{"uri", "red+file:///none"}});
  proxy.run();
  EXPECT_THAT(client.result_of(tool), HasSubstr("Unknown tool: green_tool"));
  EXPECT_THAT(client.result_of(resource), AllOf(HasSubstr("Resource not found: green+file:///1"),
                                                HasSubstr(R"({"uri":"green+file:///1"})")));
  EXPECT_THAT(client.result_of(absent), HasSubstr(R"({"uri":"red+file:///none"})"));
}

TEST(SeveralServersTest, ADeadServerDoesNotTakeTheOthersDown) {
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

TEST(SeveralServersTest, ASessionThatIsRefusedKeepsNobodyElseFromTheServer) {
  FakeServer red("red", false);
  FakeServer blue("blue", false);
  answer_calls(red);
  answer_calls(blue);
  FakeProxy proxy({red.upstream(true), blue.upstream(true)});
  const auto call = [&] {
    FakeClient client(*proxy.server, Kind::connection);
    const auto id = client.request("tools/call", {{"name", "red_tool"}});
    proxy.run();
    return client.result_of(id);
  };
  red.refusal = "go away";
  EXPECT_THAT(call(), AllOf(HasSubstr("-32603"), HasSubstr("The server red: go away"),
                            Not(HasSubstr("tried again"))));
  red.refusal.clear();
  EXPECT_THAT(call(), HasSubstr("red tool"));
  red.failure = Error{500, "Cannot make a pipe: Too many open files", {}};
  EXPECT_THAT(call(), AllOf(HasSubstr("The server red: Cannot make a pipe"),
                            HasSubstr(R"("upstreamStatus":500)")));
  red.failure.reset();
  EXPECT_THAT(call(), HasSubstr("red tool"));
}

TEST(SeveralServersTest, AServerThatIsSilentRestsForAll) {
  FakeServer red("red", false);
  red.is_silent = true;
  FakeServer blue("blue", false);
  answer_calls(blue);
  FakeProxy proxy({red.upstream(true), blue.upstream(true)});
  FakeClient client(*proxy.server, Kind::connection);
  const auto id = client.request("tools/call", {{"name", "red_tool"}});
  proxy.run();
  proxy.advance(5s);  // the probe
  proxy.advance(30s);
  EXPECT_THAT(client.result_of(id), AllOf(HasSubstr("-32603"), HasSubstr("The server red: "),
                                          HasSubstr(R"("upstreamStatus":504)")));
  FakeClient next(*proxy.server, Kind::connection);
  const auto rested = next.request("tools/call", {{"name", "red_tool"}});
  proxy.run();
  EXPECT_THAT(next.result_of(rested), HasSubstr("tried again in"));
}

TEST(SeveralServersTest, AServerThatNeverAnswersDelaysTheOthersOnlyForAWhile) {
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

}  // namespace
}  // namespace sluice
