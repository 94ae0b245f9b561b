#include "client/link/http_link.hpp"

#include <chrono>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "client/link/http_link_test_support.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using test::HttpLinkTest;
using test::kEvents;
using test::kJson;

TEST_F(HttpLinkTest, TheServerMayBeSilentAsLongAsTheCallerWaits) {
  // Nothing is written in this time but the answer to a message that nobody waits for.
  idle_timeout = 20ms;
  open_legacy(true);
  call();
  Asked post = next();
  const auto later = loop.clock().now() + 100ms;
  EXPECT_TRUE(until([&] { return loop.clock().now() > later; }));
  EXPECT_THAT(said, IsEmpty());
  EXPECT_THAT(asked, IsEmpty()) << "the standalone stream was given up";
  post.reply->reply(200, kJson, answer(2, R"({"a":1})"));
  ASSERT_TRUE(hears(1));
  EXPECT_THAT(said, ElementsAre(R"({"a":1})"));
}

TEST_F(HttpLinkTest, AServerThatDoesNotTakeThatTheClientIsReadyIsAskedAllTheSame) {
  ready_patience = 10ms;
  open({.revision = "2025-11-25"});
  next().reply->reply(200, kJson, answer(1, R"({"protocolVersion":"2025-11-25"})"));
  ASSERT_TRUE(until([this] { return connected.has_value(); }));
  call();
  const Asked initialized = next();
  EXPECT_THAT(initialized.body, HasSubstr("notifications/initialized"));
  EXPECT_EQ(next().method, "GET");
  next().reply->reply(200, kJson, answer(2, "{}"));
  ASSERT_TRUE(hears(1));
  EXPECT_THAT(said, ElementsAre("{}"));
}

TEST_F(HttpLinkTest, TheTimeOfAProbeBeginsWithItsConnection) {
  // Without a time to connect in, only the connection can begin it.
  open({.probe_timeout = 1ms, .connect_timeout = {}});
  const Asked probe = next();
  EXPECT_EQ(probe.mcp_method, "server/discover");
  EXPECT_THAT(next().body, HasSubstr("initialize"));
}

TEST_F(HttpLinkTest, TheTimeOfAProbeBeginsWithItsConnectionWhereItMayFallBack) {
  falls_back = true;
  open({.probe_timeout = 1ms, .connect_timeout = {}});
  const Asked probe = next();
  EXPECT_EQ(probe.mcp_method, "server/discover");
  EXPECT_THAT(next().body, HasSubstr("initialize"));
}

TEST_F(HttpLinkTest, AModernRequestSaysInItsHeadWhatItIs) {
  open_modern();
  call("W\xc3\xb6rter");
  Asked post = next();
  EXPECT_EQ(post.accept, "application/json, text/event-stream");
  EXPECT_EQ(post.version, "2026-07-28");
  EXPECT_EQ(post.mcp_method, "tools/call");
  EXPECT_EQ(post.name, "=?base64?V8O2cnRlcg==?=");
  EXPECT_EQ(post.session, "");
  post.reply->reply(200, kJson, answer(2, R"({"a":1})"));
  ASSERT_TRUE(hears(1));
  EXPECT_THAT(said, ElementsAre(R"({"a":1})"));
}

TEST_F(HttpLinkTest, AReplyMayBeAStream) {
  open_modern();
  call();
  Asked first = next();
  call();
  Asked second = next();
  for (Asked* const each : {&first, &second}) each->reply->start(200, kEvents);
  second.reply->write(std::string_view(event("", progress(3, 1)) + ": comment\n\n"));
  second.reply->flush();
  ASSERT_TRUE(hears(1));
  first.reply->write(
      std::string_view(event("", progress(2, 7)) + event("", answer(2, R"({"b":2})"))));
  first.reply->finish();
  ASSERT_TRUE(hears(3));
  second.reply->write(std::string_view(event("", answer(3, "{}"))));
  second.reply->finish();
  ASSERT_TRUE(hears(4));
  EXPECT_THAT(said, ElementsAre("progress 1", "progress 7", R"({"b":2})", "{}"));
}

TEST_F(HttpLinkTest, WhatEndsWithoutAnAnswerIsAnError) {
  open_modern();
  const auto ends = [this](const auto& how) {
    said.clear();
    call();
    how(*next().reply);
    EXPECT_TRUE(hears(1));
    return said.empty() ? std::string() : said[0];
  };
  EXPECT_EQ(ends([](HttpExchange& reply) {
              reply.start(200, kEvents);
              reply.finish();
            }),
            "502 The stream ended before the answer came; the call was not sent again, because "
            "its tool is not known to be idempotent or read-only");
  EXPECT_THAT(ends([](HttpExchange& reply) {
                reply.start(200, kEvents);
                reply.write(std::string_view(": open\n\n"));
                reply.flush();
                reply.abort();
              }),
              HasSubstr("502 "));
  EXPECT_EQ(ends([](HttpExchange& reply) { reply.reply(202, {}, {}); }),
            "502 The server accepted the request without an answer");
  EXPECT_EQ(ends([](HttpExchange& reply) { reply.reply(500, "text/html", "<b>Oops</b>"); }),
            "500 The server answers with HTTP 500 Internal Server Error: <b>Oops</b>");
  EXPECT_EQ(ends([](HttpExchange& reply) {
              reply.reply(400, kJson,
                          R"({"jsonrpc":"2.0","error":{"code":-32020,"message":"mismatch"}})");
            }),
            "-32020 mismatch");
  EXPECT_EQ(ends([](HttpExchange& reply) { reply.reply(200, kJson, answer(99, "{}")); }),
            "502 The server's reply answers another request");
  EXPECT_THAT(ends([](HttpExchange& reply) { reply.reply(200, kJson, "[1"); }),
              HasSubstr("502 The server's answer cannot be read: "));
  EXPECT_EQ(ends([](HttpExchange& reply) {
              reply.reply(400, kJson,
                          R"({"jsonrpc":"2.0","id":null,"error":{"code":-7,"message":"no"}})");
            }),
            "-7 no");
  EXPECT_THAT(ends([](HttpExchange& reply) { reply.reply(200, "text/html", "<p>Log in"); }),
              HasSubstr("502 The server's reply is no answer, but text/html"));
  EXPECT_EQ(
      ends([](HttpExchange& reply) {
        const HeaderField place{"Location", "https://me:pw@elsewhere/mcp?token=abc"};
        reply.reply(307, {}, {}, std::span(&place, 1));
      }),
      "307 The server redirects to https://***@elsewhere/mcp?token=*** (HTTP 307), which is not "
      "followed; use the URL of the endpoint itself");
  EXPECT_EQ(ends([](HttpExchange& reply) {
              const HeaderField coding{"Content-Encoding", "br"};
              reply.reply(200, kJson, answer(2, "{}"), std::span(&coding, 1));
            }),
            "502 The server's reply has a content coding that was not asked for: br");
}

TEST_F(HttpLinkTest, AnAnswerOnTheStreamOfTheSessionIsNone) {
  open_legacy(true);
  standalone.reply->start(200, kEvents);
  call();
  Asked post = next();
  standalone.reply->write(std::string_view(
      event("", answer(2, R"({"a":1})")) +
      event("", R"({"jsonrpc":"2.0","method":"notifications/tools/list_changed"})")));
  standalone.reply->flush();
  ASSERT_TRUE(hears(1));
  post.reply->reply(200, kJson, answer(2, R"({"b":2})"));
  ASSERT_TRUE(hears(2));
  EXPECT_THAT(said, ElementsAre("notifications/tools/list_changed", R"({"b":2})"));
}

TEST_F(HttpLinkTest, ACancelledModernRequestIsNotReadAnyMore) {
  open_modern();
  const auto number = call();
  Asked post = next();
  bool has_gone = false;
  post.reply->on_close([&] { has_gone = true; });
  post.reply->start(200, kEvents);
  post.reply->flush();
  settle();
  session->cancel(number);
  EXPECT_TRUE(until([&] { return has_gone; }));
  settle();
  EXPECT_THAT(asked, IsEmpty());
  EXPECT_THAT(said, IsEmpty());
}

TEST_F(HttpLinkTest, FindsALegacyServerByItsRefusal) {
  open();
  next().reply->reply(400, "text/plain", "Bad Request: Server not initialized");
  Asked initialize = next();
  EXPECT_THAT(initialize.body, HasSubstr(R"("method":"initialize")"));
  EXPECT_EQ(initialize.version, "");
  EXPECT_EQ(initialize.mcp_method, "");
  initialize.reply->reply(200, kJson,
                          answer(2, R"({"protocolVersion":"2025-06-18","capabilities":{}})"));
  ASSERT_TRUE(until([this] { return connected.has_value(); }));
  EXPECT_TRUE(*connected);
}

TEST_F(HttpLinkTest, AServerThatDoesNotKnowTheProbeMaySayAnything) {
  struct Said {
    int status;
    std::string_view type;
    std::string_view body;
  };
  // The official Java SDK without sessions; servers that take everything.
  for (const Said& each :
       {Said{500, kJson, R"({"cause":null,"jsonRpcError":{"code":-32603,"message":"Missing"}})"},
        Said{501, {}, {}}, Said{200, {}, {}}, Said{202, {}, {}}, Said{200, "text/html", "<html>"},
        Said{200, kJson, R"({"error":{"code":-32600},"id":null})"},
        Said{200, kJson,
             R"({"jsonrpc":"2.0","error":{"code":-32600,"message":"what?"},"id":null})"}}) {
    connected.reset();
    open();
    next().reply->reply(each.status, each.type, each.body);
    Asked initialize = next();
    EXPECT_THAT(initialize.body, HasSubstr(R"("method":"initialize")")) << each.body;
    initialize.reply->reply(200, kJson,
                            answer(2, R"({"protocolVersion":"2025-11-25","capabilities":{}})"));
    ASSERT_TRUE(until([this] { return connected.has_value(); }));
    EXPECT_TRUE(*connected);
    session = nullptr;
    asked.clear();
    server.reset();
  }
}

TEST_F(HttpLinkTest, AnErrorThatNamesNoRequestIsTheAnswerToTheOneItRepliesTo) {
  open_modern();
  for (const int status : {200, 400}) {
    call();
    next().reply->reply(
        status, kJson,
        R"({"jsonrpc":"2.0","error":{"code":-32602,"message":"Missing n"},"id":null})");
  }
  ASSERT_TRUE(hears(2));
  EXPECT_THAT(said, ElementsAre("-32602 Missing n", "-32602 Missing n"));
}

TEST_F(HttpLinkTest, WhatSaysNothingOfTheServerIsNoLegacyServer) {
  for (const int status : {401, 403, 429, 502, 503, 504}) {
    connected.reset();
    open();
    const HeaderField challenge{"WWW-Authenticate", "Bearer resource_metadata=\"x\""};
    next().reply->reply(status, {}, {}, std::span(&challenge, 1));
    ASSERT_TRUE(until([this] { return connected.has_value(); }));
    ASSERT_FALSE(*connected);
    EXPECT_EQ(connected->error().code, status);
    EXPECT_EQ(connected->error().data, R"({"wwwAuthenticate":"Bearer resource_metadata=\"x\""})");
    settle();
    EXPECT_THAT(asked, IsEmpty());
    session = nullptr;
    server.reset();
  }
}

TEST_F(HttpLinkTest, ARefusalByHttpIsOneAlsoIfItsErrorHasTheId) {
  for (const int status : {401, 403}) {
    connected.reset();
    open();
    next().reply->reply(status, kJson,
                        R"({"jsonrpc":"2.0","id":1,"error":{"code":-32001,"message":"Log in"}})");
    ASSERT_TRUE(until([this] { return connected.has_value(); }));
    ASSERT_FALSE(*connected);
    EXPECT_EQ(connected->error().code, status);
    EXPECT_THAT(connected->error().message, HasSubstr("Log in"));
    session = nullptr;
    server.reset();
  }
}

TEST_F(HttpLinkTest, SaysWhyNeitherTransportCouldBeSpoken) {
  falls_back = true;
  open({.revision = "2025-11-25"});
  next().reply->reply(405, {}, {});
  Asked stream = next();
  EXPECT_EQ(stream.method, "GET");
  stream.reply->start(200, kEvents);
  stream.reply->write(std::string_view("event: endpoint\ndata: http://evil.example/post\n\n"));
  stream.reply->flush();
  ASSERT_TRUE(until([this] { return connected.has_value(); }));
  ASSERT_FALSE(*connected);
  EXPECT_EQ(connected->error().code, 405);
  EXPECT_THAT(connected->error().message,
              AllOf(HasSubstr("HTTP 405"), HasSubstr("another origin, http://evil.example")));
}

TEST_F(HttpLinkTest, AServerThatHasSpokenIsNotTakenForOneOfAnotherTransport) {
  falls_back = true;
  open_legacy();
  call("first");
  Asked first = next();
  call("second");
  next().reply->reply(404, {}, {});
  // A server that is about to end may refuse the new session like this.
  next().reply->reply(405, {}, {});
  ASSERT_TRUE(hears(1));
  EXPECT_THAT(said, ElementsAre(HasSubstr("405 ")));
  first.reply->reply(200, kJson, answer(2, "{}"));
  ASSERT_TRUE(hears(2));
  EXPECT_EQ(said[1], "{}");
}

TEST_F(HttpLinkTest, AServerThatTakesNoAnswersGetsFewAtOnce) {
  open_legacy(true);
  standalone.reply->start(200, kEvents);
  constexpr std::size_t kPings = HttpLink::kMaxAnswers + 10;
  for (std::size_t i = 0; i < kPings; ++i) {
    standalone.reply->write(std::string_view(
        event("", R"({"jsonrpc":"2.0","method":"ping","id":)" + std::to_string(i) + "}")));
  }
  standalone.reply->flush();
  ASSERT_TRUE(until([this] { return asked.size() >= HttpLink::kMaxAnswers; }));
  settle();
  ASSERT_EQ(asked.size(), HttpLink::kMaxAnswers);
  // Requests do not wait for that.
  call();
  ASSERT_TRUE(until([this] { return asked.size() > HttpLink::kMaxAnswers; }));
  EXPECT_THAT(asked.back().body, HasSubstr("tools/call"));
  asked.pop_back();
  std::set<std::string> taken;
  while (taken.size() < kPings) {
    Asked each = next();
    ASSERT_TRUE(taken.insert(each.body).second) << each.body;
    // A stream in place of the 202 has nothing to say, and is not read.
    if (taken.size() % 2 == 0) {
      each.reply->reply(202, {}, {});
    } else {
      each.reply->start(200, kEvents);
      each.reply->flush();
    }
  }
}

TEST_F(HttpLinkTest, AnswersThatWaitTakeBoundedMemory) {
  HttpLink own(loop, {.url = *parse_url("http://127.0.0.1:1/mcp")});
  for (std::size_t i = 0; i < HttpLink::kMaxAnswers; ++i) {
    ASSERT_TRUE(own.send({.text = "under way"}));
  }
  const std::string text(HttpLink::kMaxWaiting / 2, 'x');
  ASSERT_TRUE(own.send({.text = text}));
  ASSERT_TRUE(own.send({.text = text}));
  const Result<void> refused = own.send({.text = "more"});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, kBusy);
}

TEST_F(HttpLinkTest, NotificationsArriveInOrderAlsoWhenTheLinkIsClosed) {
  open_legacy();
  for (const std::string name : {"one", "two", "three"}) {
    ASSERT_TRUE(session->notify("notifications/" + name, {}));
  }
  Asked one = next();
  EXPECT_THAT(one.body, HasSubstr("notifications/one"));
  settle();
  EXPECT_THAT(asked, IsEmpty()) << "the next one could overtake it";
  one.reply->reply(202, {}, {});
  Asked two = next();
  EXPECT_THAT(two.body, HasSubstr("notifications/two"));
  bool is_closed = false;
  session->close([&is_closed] { is_closed = true; });
  two.reply->reply(202, {}, {});
  Asked three = next();
  EXPECT_THAT(three.body, HasSubstr("notifications/three"));
  three.reply->reply(202, {}, {});
  Asked farewell = next();
  EXPECT_EQ(farewell.method, "DELETE");
  EXPECT_FALSE(is_closed);
  farewell.reply->reply(200, {}, {});
  EXPECT_TRUE(until([&is_closed] { return is_closed; }));
}

TEST_F(HttpLinkTest, AReplyThatDoesNotEndHoldsNoNotificationUp) {
  open_legacy();
  for (const std::string name : {"one", "two"}) {
    ASSERT_TRUE(session->notify("notifications/" + name, {}));
  }
  const Asked one = next();
  one.reply->start(202, "text/plain");
  one.reply->flush();
  EXPECT_THAT(next().body, HasSubstr("notifications/two"));
}

TEST_F(HttpLinkTest, OfRepliesThatDoNotEndOnlyTheLastAreKept) {
  open_legacy();
  constexpr std::size_t kMany = 3 * HttpLink::kMaxTaken;
  std::vector<Asked> posts;
  for (std::size_t i = 0; i < kMany; ++i) ASSERT_TRUE(session->notify("notifications/x", {}));
  for (std::size_t i = 0; i < kMany; ++i) {
    posts.push_back(next());
    posts.back().reply->start(202, "text/plain");
    posts.back().reply->flush();
  }
  EXPECT_TRUE(until([&posts] {
    return std::ranges::count_if(posts, [](const Asked& each) { return each.reply->is_open(); }) ==
           static_cast<long>(HttpLink::kMaxTaken);
  }));
}

TEST_F(HttpLinkTest, OfStreamsThatDoNotEndWithTheirAnswersOnlyTheLastAreKept) {
  open_modern();
  constexpr std::size_t kMany = 2 * HttpLink::kMaxAnswered;
  std::vector<Asked> posts;
  for (std::size_t i = 0; i < kMany; ++i) {
    call();
    posts.push_back(next());
    posts.back().reply->start(200, kEvents);
    posts.back().reply->write(
        std::string_view(event("", answer(static_cast<int>(i) + 2, R"({"a":1})"))));
    posts.back().reply->flush();
    ASSERT_TRUE(hears(i + 1));
  }
  EXPECT_THAT(said, ::testing::Each(R"({"a":1})"));
  settle();
  EXPECT_LE(std::ranges::count_if(posts, [](const Asked& each) { return each.reply->is_open(); }),
            static_cast<long>(HttpLink::kMaxAnswered));
}

TEST_F(HttpLinkTest, TheMemoryOfANotificationIsKeptUntilItIsTaken) {
  const auto under_way = std::make_shared<int>(0);
  const auto waiting = std::make_shared<int>(0);
  open_legacy();
  ASSERT_TRUE(session->notify("notifications/x", {}, under_way));
  ASSERT_TRUE(session->notify("notifications/x", {}, waiting));
  Asked first = next();
  EXPECT_EQ(under_way.use_count(), 2);
  EXPECT_EQ(waiting.use_count(), 2);
  first.reply->reply(202, {}, {});
  Asked second = next();
  EXPECT_EQ(under_way.use_count(), 1);
  second.reply->reply(202, {}, {});
  EXPECT_TRUE(until([&waiting] { return waiting.use_count() == 1; }));
}

TEST_F(HttpLinkTest, AServerThatTakesNoNotificationHoldsUpNoEnd) {
  open_legacy();
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(session->notify("notifications/x", {}));
  Asked kept = next();
  session->close([] {});
  EXPECT_EQ(next().method, "DELETE");
}

TEST_F(HttpLinkTest, MayBeDestroyedWhereItIsHeardOf) {
  open_modern();
  session->begin("tools/call", {{"name", "t"}}, {},
                 {.on_answer = [this](const Result<json::object>&) {
                   session = nullptr;
                   said.emplace_back("over");
                 }});
  Asked post = next();
  post.reply->start(200, kEvents);
  post.reply->write(std::string_view(event("", answer(2, "{}")) + event("", progress(2, 1))));
  post.reply->finish();
  ASSERT_TRUE(hears(1));
  settle();
}

}  // namespace
}  // namespace sluice
