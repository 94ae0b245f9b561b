#include <chrono>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "proxy/calls/parked_calls.hpp"
#include "proxy/clients/client_pool.hpp"
#include "proxy/proxy.hpp"
#include "proxy/proxy_test_support.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

using Kind = FakeClient::Kind;

/// A legacy server whose messages do not say which call they belong to.
class ProxyQuestionsTest : public ::testing::Test {
 protected:
  ProxyQuestionsTest() {
    server.on_message = [this](FakeLink& link, const json::object& message) {
      const std::string_view method = text_at(message, "method");
      if (method == "tools/call") {
        const auto& params = message.at("params").as_object();
        calls.insert_or_assign(std::string(text_at(params, "name")), message);
      } else if (message.contains("id") && !method.empty()) {
        server.answer(link, message, json::object());
      }
    };
  }
  ~ProxyQuestionsTest() override {
    server.on_message = {};
    server.kept.clear();  // it is of the proxy's clients
  }

  std::int64_t call(FakeClient& client, const std::string& tool, json::object more_meta = {}) {
    const auto id = client.request("tools/call", {{"name", tool}}, std::move(more_meta));
    proxy.run();
    return id;
  }
  void say(json::object message) {
    message["jsonrpc"] = "2.0";
    server.post(*server.links.at(0), std::move(message));
    proxy.run();
  }
  void ask(const char* id, json::object more = {}) {
    json::object params{
        {"message", "Who?"},
        {"requestedSchema", {{"type", "object"}, {"properties", {{"who", {{"type", "string"}}}}}}}};
    for (const auto& [key, value] : more) params[key] = value;
    say({{"id", id}, {"method", "elicitation/create"}, {"params", std::move(params)}});
  }
  void answer(const std::string& tool) {
    server.answer(*server.links.at(0), calls.at(tool), text_result(tool));
    proxy.run();
  }
  /// What a session's client says to what it was asked last.
  void reply(FakeClient& client, json::value result) {
    const auto asked = client.heard_of("elicitation/create");
    ASSERT_THAT(asked, Not(IsEmpty()));
    client.send(
        {{"jsonrpc", "2.0"}, {"id", asked.back()->at("id")}, {"result", std::move(result)}});
    proxy.run();
  }
  /// Goes on with a call of the modern era. `id`: of the round before, which asks.
  std::int64_t next_round(FakeClient& client, std::int64_t id, const std::string& tool,
                          json::object params = {}) {
    const json::object* const asks = client.answer_to(id);
    if (asks == nullptr || !client.result_of(id).contains("input_required")) {
      ADD_FAILURE() << "it does not ask: " << client.result_of(id);
      return id;
    }
    const json::object& result = asks->at("result").as_object();
    json::object answers;
    for (const auto& [key, value] : result.at("inputRequests").as_object()) answers[key] = kSaid;
    params["name"] = tool;
    params["requestState"] = result.at("requestState");
    params["inputResponses"] = std::move(answers);
    const auto next = client.request("tools/call", std::move(params));
    proxy.run();
    return next;
  }

  const json::object kSaid{{"action", "accept"}, {"content", {{"who", "me"}}}};
  FakeServer server{"behind", false};
  FakeProxy proxy{{server.upstream()}};
  std::map<std::string, json::object> calls;  // by their tools
};

/// With the client of a session, which is asked in messages of their own.
class ProxySessionQuestionsTest : public ProxyQuestionsTest {
 protected:
  ProxySessionQuestionsTest() {
    client.capabilities = {{"elicitation", {{"form", json::object()}, {"url", json::object()}}}};
    client.initialize();
    proxy.run();
  }
  FakeClient client{*proxy.server, Kind::session};
};

TEST_F(ProxySessionQuestionsTest, AQuestionOutlivesTheNewerCallThatItWasAskedIn) {
  const auto asks = call(client, "asks");
  call(client, "newer");
  ask("q");
  ASSERT_THAT(client.heard_of("elicitation/create"), SizeIs(1));
  answer("newer");
  EXPECT_THAT(client.heard_of("notifications/cancelled"), SizeIs(1));
  ASSERT_THAT(client.heard_of("elicitation/create"), SizeIs(2));
  reply(client, kSaid);
  EXPECT_THAT(server.heard.back(), AllOf(HasSubstr(R"("id":"q")"), HasSubstr(R"("who":"me")")));
  answer("asks");
  EXPECT_THAT(client.result_of(asks), HasSubstr("asks"));
}

TEST_F(ProxySessionQuestionsTest, AQuestionOutlivesTheNewerCallThatIsCancelled) {
  call(client, "asks");
  const auto newer = call(client, "newer");
  ask("q");
  client.cancel(newer);
  proxy.run();
  ASSERT_THAT(client.heard_of("elicitation/create"), SizeIs(2));
  reply(client, kSaid);
  EXPECT_THAT(server.heard.back(), AllOf(HasSubstr(R"("id":"q")"), HasSubstr(R"("who":"me")")));
}

TEST_F(ProxySessionQuestionsTest, AQuestionThatItsCallDoesNotWaitForIsAskedOutsideOfCalls) {
  call(client, "asks");
  ask("q");
  answer("asks");
  ASSERT_THAT(client.heard_of("elicitation/create"), SizeIs(2));
  reply(client, kSaid);
  EXPECT_THAT(server.heard.back(), AllOf(HasSubstr(R"("id":"q")"), HasSubstr(R"("who":"me")")));
}

TEST_F(ProxySessionQuestionsTest, AnAnswerOutsideOfCallsMustFitItsQuestion) {
  call(client, "opens");
  answer("opens");
  for (const json::value& wrong :
       {json::value("garbage"), json::value{{"action", "accept"}, {"content", {{"who", 5}}}}}) {
    ask("q");
    reply(client, wrong);
    EXPECT_THAT(server.heard.back(), AllOf(HasSubstr(R"("id":"q")"), HasSubstr("-32602")));
  }
}

TEST_F(ProxySessionQuestionsTest, AQuestionOutsideOfCallsWaitsOnlyForAWhile) {
  call(client, "opens");
  answer("opens");
  ask("q");
  proxy.advance(10min);
  EXPECT_THAT(server.heard.back(), AllOf(HasSubstr(R"("id":"q")"), HasSubstr("in time")));
  EXPECT_THAT(client.heard_of("notifications/cancelled"), SizeIs(1));
}

TEST_F(ProxySessionQuestionsTest, AQuestionOutsideOfCallsCanBeWithdrawn) {
  call(client, "opens");
  answer("opens");
  ask("q");
  say({{"method", "notifications/cancelled"}, {"params", {{"requestId", "q"}}}});
  EXPECT_THAT(client.heard_of("notifications/cancelled"), SizeIs(1));
  server.heard.clear();
  reply(client, kSaid);
  EXPECT_THAT(server.heard, IsEmpty());
}

TEST_F(ProxySessionQuestionsTest, TheEndOfAPageOpenedOutsideOfCallsIsTold) {
  call(client, "opens");
  answer("opens");
  ask("q", {{"mode", "url"}, {"url", "https://e.test/x"}, {"elicitationId", "page"}});
  reply(client, {{"action", "accept"}});
  EXPECT_THAT(server.heard.back(), HasSubstr("accept"));
  say({{"method", "notifications/elicitation/complete"}, {"params", {{"elicitationId", "page"}}}});
  EXPECT_THAT(client.heard_of("notifications/elicitation/complete"), SizeIs(1));
}

TEST_F(ProxySessionQuestionsTest, ARefusedSubscriptionIsTakenBack) {
  server.on_message = [this](FakeLink& link, const json::object& message) {
    if (text_at(message, "method") != "resources/subscribe") return;
    server.refuse(link, message, -32002, "Resource not found");
  };
  const auto id = client.request("resources/subscribe", {{"uri", "x:y"}});
  proxy.run();
  EXPECT_THAT(client.result_of(id), HasSubstr("Resource not found"));
  say({{"method", "notifications/resources/updated"}, {"params", {{"uri", "x:y"}}}});
  EXPECT_THAT(client.heard_of("notifications/resources/updated"), IsEmpty());
  EXPECT_THAT(server.heard, Not(Contains(HasSubstr("resources/unsubscribe"))));
}

/// With clients of the modern era, which are asked in rounds.
class ProxyRoundsTest : public ProxyQuestionsTest {
 protected:
  /// `count` calls, each of which waits for its client's answer.
  std::vector<std::int64_t> park(FakeClient& client, std::size_t count) {
    server.on_message = [this](FakeLink& link, const json::object& message) {
      if (text_at(message, "method") == "tools/list") {
        return server.answer(link, message, {{"tools", json::array()}});
      }
      if (text_at(message, "method") != "tools/call") return;
      const json::object schema{{"type", "object"}, {"properties", json::object()}};
      const json::object question{{"message", "Who?"}, {"requestedSchema", schema}};
      server.post(link, {{"jsonrpc", "2.0"},
                         {"id", "q"},
                         {"method", "elicitation/create"},
                         {"params", question}});
    };
    std::vector<std::int64_t> ids;
    for (std::size_t i = 0; i < count; ++i) ids.push_back(call(client, "asks"));
    server.on_message = {};
    return ids;
  }
};

TEST_F(ProxyRoundsTest, AQuestionOutlivesTheNewerCallThatItWasAskedIn) {
  FakeClient client(*proxy.server, Kind::connection);
  const auto asks = call(client, "asks");
  const auto newer = call(client, "newer");
  ask("q");
  answer("newer");
  EXPECT_THAT(client.result_of(next_round(client, newer, "newer")), HasSubstr("newer"));
  next_round(client, asks, "asks");
  EXPECT_THAT(server.heard.back(), AllOf(HasSubstr(R"("id":"q")"), HasSubstr(R"("who":"me")")));
}

TEST_F(ProxyRoundsTest, AKeyOfTheServerThatLooksLikeOneOfTheProxyIsNoOther) {
  FakeClient client(*proxy.server, Kind::connection);
  const auto asks = call(client, "asks");
  const json::object named{{"_meta", {{"dev.sluice/questionKey", "q2"}}}};
  for (const auto& [id, more] : {std::pair("named", named), std::pair("other", json::object())}) {
    json::object params{
        {"message", id},
        {"requestedSchema", {{"type", "object"}, {"properties", {{"who", {{"type", "string"}}}}}}}};
    for (const auto& [key, value] : more) params[key] = value;
    server.post(*server.links.at(0), {{"jsonrpc", "2.0"},
                                      {"id", id},
                                      {"method", "elicitation/create"},
                                      {"params", std::move(params)}});
  }
  proxy.run();
  next_round(client, asks, "asks");
  for (const char* const id : {"named", "other"}) {
    EXPECT_THAT(server.heard, Contains(AllOf(HasSubstr(R"("id":")" + std::string(id)),
                                             HasSubstr(R"("who":"me")"))));
  }
}

TEST_F(ProxyRoundsTest, ALogMessageGoesToTheNewestCallThatWantsIt) {
  FakeClient client(*proxy.server, Kind::connection);
  call(client, "talks", {{"io.modelcontextprotocol/logLevel", "debug"}});
  call(client, "newer");
  say({{"method", "notifications/message"}, {"params", {{"level", "info"}, {"data", "it"}}}});
  EXPECT_THAT(client.heard_of("notifications/message"), SizeIs(1));
}

TEST_F(ProxyRoundsTest, CallsThatWaitForTheirClientsKeepNobodyOut) {
  FakeClient alice(*proxy.server, Kind::request, {.id = "alice"});
  FakeClient bob(*proxy.server, Kind::request, {.id = "bob"});
  const auto parked = park(alice, ClientPool::kMaxOfOne + 1);
  EXPECT_THAT(alice.result_of(parked.back()), HasSubstr("input_required"));
  std::vector<std::int64_t> busy;
  for (std::size_t i = 0; i < ClientPool::kMaxOfOne; ++i) busy.push_back(call(alice, "busy"));
  const auto refused = next_round(alice, parked.back(), "asks");
  EXPECT_THAT(alice.result_of(refused), HasSubstr("128 requests"));
  alice.cancel(busy.back());
  proxy.run();
  server.heard.clear();
  next_round(alice, parked.back(), "asks");
  EXPECT_THAT(server.heard, Contains(AllOf(HasSubstr(R"("id":"q")"), HasSubstr("accept"))));
  EXPECT_THAT(alice.result_of(call(alice, "more")), HasSubstr("128 requests"));
}

/// About how much memory clients may still be charged for.
std::size_t free_memory(FakeProxy& proxy) {
  StreamManager& streams = proxy.server->service().streams.streams();
  std::size_t free = 0;
  for (std::size_t step = std::size_t{256} << 20U; step >= 1024; step /= 2) {
    if (MemoryHold(streams.memory_of("nobody")).add(free + step)) free += step;
  }
  return free;
}

TEST_F(ProxyRoundsTest, WhatACallKeepsForItsClientIsCharged) {
  constexpr std::size_t kMegabyte = 1'000'000;
  const std::string text(2 * kMegabyte, 'x');
  FakeClient client(*proxy.server, Kind::request);
  call(client, "warms up");
  client.cancel(1);
  const std::size_t before = free_memory(proxy);
  const auto charged = [&] { return before - free_memory(proxy); };
  const auto id = client.request("tools/call", {{"name", "asks"}, {"arguments", {{"t", text}}}});
  proxy.run();
  EXPECT_GT(charged(), 2 * kMegabyte);
  ask("q", {{"message", text + text}});
  EXPECT_THAT(client.result_of(id), HasSubstr("input_required"));
  EXPECT_GT(charged(), 6 * kMegabyte) << "arguments and question";
  server.answer(*server.links.at(0), calls.at("asks"), text_result(text + text + text));
  proxy.run();
  EXPECT_GT(charged(), 8 * kMegabyte) << "arguments and answer";
  const auto last = next_round(client, id, "asks", {{"arguments", {{"t", text}}}});
  EXPECT_TRUE(client.result_of(last).contains(text)) << client.result_of(last).substr(0, 200);
  proxy.run();
  EXPECT_LT(charged(), kMegabyte);
}

TEST_F(ProxyRoundsTest, WhatIsAskedBetweenRoundsIsCharged) {
  FakeClient client(*proxy.server, Kind::connection, {.id = "alice"});
  call(client, "asks");
  ask("first");
  MemoryHold rest(proxy.server->service().streams.streams().memory_of("alice"));
  for (std::size_t step = std::size_t{256} << 20U; step >= 1024; step /= 2)
    static_cast<void>(rest.add(step));
  ask("second", {{"message", std::string(2'000'000, 'x')}});
  EXPECT_THAT(server.heard, Contains(AllOf(HasSubstr(R"("id":"second")"), HasSubstr("-31010"))));
}

TEST_F(ProxyRoundsTest, WhatIsTakenBackBetweenRoundsIsChargedNoMore) {
  constexpr std::size_t kMegabyte = 1'000'000;
  FakeClient client(*proxy.server, Kind::connection, {.id = "alice"});
  call(client, "asks");
  const std::size_t before = free_memory(proxy);
  ask("first", {{"message", std::string(2 * kMegabyte, 'x')}});
  ask("second", {{"message", std::string(4 * kMegabyte, 'x')}});
  EXPECT_GT(before - free_memory(proxy), 6 * kMegabyte);
  for (const char* const id : {"first", "second"}) {
    say({{"method", "notifications/cancelled"}, {"params", {{"requestId", id}}}});
  }
  EXPECT_LT(before - free_memory(proxy), kMegabyte);
}

TEST_F(ProxySessionQuestionsTest, WhatIsAskedOutsideOfCallsIsCharged) {
  call(client, "opens");
  answer("opens");
  const std::size_t before = free_memory(proxy);
  ask("q", {{"message", std::string(2'000'000, 'x')}});
  EXPECT_GT(before - free_memory(proxy), 2'000'000U);
  reply(client, kSaid);
  EXPECT_LT(before - free_memory(proxy), 100'000U);
  MemoryHold rest(proxy.server->service().streams.streams().memory_of("alice"));
  for (std::size_t step = std::size_t{256} << 20U; step >= 1024; step /= 2)
    static_cast<void>(rest.add(step));
  ask("more", {{"message", std::string(2'000'000, 'x')}});
  EXPECT_THAT(server.heard, Contains(AllOf(HasSubstr(R"("id":"more")"), HasSubstr("-31010"))));
}

TEST_F(ProxySessionQuestionsTest, ManyShortQuestionsOfACallAreCharged) {
  call(client, "asks");
  const std::size_t before = free_memory(proxy);
  for (int i = 0; i < 50; ++i) {
    const std::string id = "q" + std::to_string(i);
    ask(id.c_str(), {{"message", std::string(10'000, 'x')}});
  }
  EXPECT_GT(before - free_memory(proxy), 500'000U);
}

TEST_F(ProxyRoundsTest, AServerHasOnlySoManyKeysOfItsOwnInACall) {
  FakeClient client(*proxy.server, Kind::connection);
  const auto asks = call(client, "asks");
  for (int i = 0; i < 70; ++i) {
    const std::string id = i == 0 ? "query" : "k" + std::to_string(i);
    const json::object schema{{"type", "object"}, {"properties", json::object()}};
    server.post(*server.links.at(0), {{"jsonrpc", "2.0"},
                                      {"id", id},
                                      {"method", "elicitation/create"},
                                      {"params",
                                       {{"message", id},
                                        {"requestedSchema", schema},
                                        {"_meta", {{"dev.sluice/questionKey", id}}}}}});
  }
  proxy.run();
  ASSERT_NE(client.answer_to(asks), nullptr);
  const json::object& result = client.answer_to(asks)->at("result").as_object();
  const json::object& requests = result.at("inputRequests").as_object();
  EXPECT_EQ(requests.size(), 70U);
  EXPECT_TRUE(requests.contains("query")) << "the proxy's own keys have numbers";
  EXPECT_TRUE(requests.contains("k63"));
  EXPECT_FALSE(requests.contains("k64"));
  next_round(client, asks, "asks");
  for (const char* const id : {"query", "k63", "k64", "k69"}) {
    EXPECT_THAT(server.heard, Contains(AllOf(HasSubstr(R"("id":")" + std::string(id) + '"'),
                                             HasSubstr("accept"))));
  }
}

TEST_F(ProxyRoundsTest, AServerThatSpeaksBeforeItHasSaidWhoItIsDoesNoHarm) {
  FakeClient client(*proxy.server, Kind::connection);
  server.is_silent = true;
  const auto id = client.request("tools/list");
  proxy.run();
  for (const char* const method :
       {"subscriptions/acknowledged", "message", "tools/list_changed", "progress", "cancelled"}) {
    say({{"method", "notifications/" + std::string(method)},
         {"params", {{"level", "info"}, {"data", "it"}}}});
  }
  EXPECT_EQ(client.result_of(id), "nothing");
}

TEST_F(ProxySessionQuestionsTest, NotificationsThatTheServerHasNotTakenAreCharged) {
  const std::size_t before = free_memory(proxy);
  server.keeps_notifications = true;
  const json::object big{{"text", std::string(2'000'000, 'x')}};
  client.send({{"jsonrpc", "2.0"}, {"method", "notifications/own"}, {"params", big}});
  proxy.run();
  EXPECT_GT(before - free_memory(proxy), 2'000'000U);
  server.kept.clear();
  EXPECT_LT(before - free_memory(proxy), 1'000'000U);
  MemoryHold rest(proxy.server->service().streams.streams().memory_of("alice"));
  for (std::size_t step = std::size_t{256} << 20U; step >= 1024; step /= 2)
    static_cast<void>(rest.add(step));
  server.heard.clear();
  client.send({{"jsonrpc", "2.0"}, {"method", "notifications/own"}, {"params", big}});
  proxy.run();
  EXPECT_THAT(server.heard, IsEmpty());
}

TEST_F(ProxySessionQuestionsTest, ShortNotificationsThatTheServerHasNotTakenAreCharged) {
  const std::size_t before = free_memory(proxy);
  server.keeps_notifications = true;
  const json::object small{{"text", std::string(1000, 'x')}};
  for (int i = 0; i < 1000; ++i) {
    client.send({{"jsonrpc", "2.0"}, {"method", "notifications/own"}, {"params", small}});
  }
  proxy.run();
  EXPECT_GT(before - free_memory(proxy), 1'000'000U);
}

TEST_F(ProxySessionQuestionsTest, CancelledCallsThatTheServerHasNotTakenAreCharged) {
  const std::size_t before = free_memory(proxy);
  server.keeps_notifications = true;
  server.shares_connection = true;
  const json::object params{{"name", "tool"}, {"arguments", {{"text", std::string(10'000, 'x')}}}};
  for (int i = 0; i < 100; ++i) {
    const auto id = client.request("tools/call", params);
    proxy.run();
    client.cancel(id);
    proxy.run();
  }
  EXPECT_GT(before - free_memory(proxy), 1'000'000U);
  for (int i = 0; i < 100; ++i) client.request("tools/call", params);
  proxy.run();
  server.kept.clear();
  EXPECT_LT(before - free_memory(proxy), 100'000U) << "what has left counts no more";
}

TEST_F(ProxyRoundsTest, WhatThereIsNoMemoryForEndsTheCall) {
  MemoryHold rest(proxy.server->service().streams.streams().memory_of("alice"));
  const std::string text(2'000'000, 'x');
  FakeClient client(*proxy.server, Kind::connection, {.id = "alice"});
  const auto short_question = call(client, "short");
  ask("s");
  const auto long_question = call(client, "long");
  for (std::size_t step = std::size_t{256} << 20U; step >= 1024; step /= 2)
    static_cast<void>(rest.add(step));
  ask("l", {{"message", text}});
  EXPECT_THAT(client.result_of(long_question),
              AllOf(HasSubstr("-31010"), HasSubstr("none for what this call asks")));
  EXPECT_THAT(server.heard, Contains(HasSubstr("notifications/cancelled")));
  server.answer(*server.links.at(0), calls.at("short"), text_result(text));
  proxy.run();
  rest.release();
  const auto last = next_round(client, short_question, "short");
  EXPECT_THAT(client.result_of(last), AllOf(HasSubstr("-31010"), HasSubstr("Make the call again")));
}

TEST_F(ProxyRoundsTest, WhoeverHasMostCallsThatWaitMakesRoom) {
  FakeClient alice(*proxy.server, Kind::request, {.id = "alice"});
  FakeClient bob(*proxy.server, Kind::request, {.id = "bob"});
  const auto bobs = park(bob, 1);
  const auto alices = park(alice, ClientPool::kMaxOfOne);
  const auto more = park(alice, ParkedCalls::kMaxCalls - ClientPool::kMaxOfOne);
  EXPECT_THAT(server.heard, Contains(HasSubstr("notifications/cancelled")));
  EXPECT_THAT(alice.result_of(next_round(alice, alices[0], "asks")),
              HasSubstr("not open any more"));
  for (const auto& [client, id] :
       {std::pair(&bob, bobs[0]), std::pair(&alice, alices[1]), std::pair(&alice, more.back())}) {
    server.heard.clear();
    next_round(*client, id, "asks");
    EXPECT_THAT(server.heard, Contains(AllOf(HasSubstr(R"("id":"q")"), HasSubstr("accept"))));
  }
}

}  // namespace
}  // namespace sluice
