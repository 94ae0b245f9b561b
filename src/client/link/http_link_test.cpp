#include "client/link/http_link.hpp"

#include <chrono>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "client/link/http_fallback_link.hpp"
#include "client/session/client_session.hpp"
#include "net/http/sse.hpp"
#include "net/server/server_test_support.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::string_view kEvents = "text/event-stream";
constexpr std::string_view kJson = "application/json";

/// A session whose server is the test, on real sockets and the same loop.
class HttpLinkTest : public ServerTest {
 protected:
  struct Asked {
    std::string method;
    std::string body;
    std::string accept, version, mcp_method, name, session, last_event;
    HttpExchangePtr reply;
  };

  HttpLinkTest() {
    handle = [this](const HttpRequest& request, HttpExchangePtr exchange) {
      Asked& each = asked.emplace_back();
      each.method = request.method == Method::post  ? "POST"
                    : request.method == Method::get ? "GET"
                                                    : "DELETE";
      each.body = request.body;
      each.accept = request.header("accept");
      each.version = request.header("mcp-protocol-version");
      each.mcp_method = request.header("mcp-method");
      each.name = request.header("mcp-name");
      each.session = request.header("mcp-session-id");
      each.last_event = request.header("last-event-id");
      each.reply = std::move(exchange);
    };
  }
  void TearDown() override {
    session = nullptr;
    asked.clear();
    ServerTest::TearDown();
    loop.discard_tasks();
  }
  void open(ClientSessionOptions options = {}) {
    start();
    HttpLinkOptions with{
        .url = Url{.scheme = "http", .host = "127.0.0.1", .port = port, .target = "/mcp"}};
    with.resumption = {.first = 1ms, .longest = 1ms, .attempts = 3};
    with.http.idle_timeout = idle_timeout;
    with.ready_patience = ready_patience;
    with.lasting = lasting;
    options.on_listening = [this] { ++told_of_listening; };
    options.on_notification = [this](std::string_view method, const json::object&) {
      said.push_back(std::string(method));
    };
    std::unique_ptr<ServerLink> made;
    if (falls_back) {
      made = std::make_unique<HttpFallbackLink>(loop, std::move(with));
    } else {
      auto plain = std::make_unique<HttpLink>(loop, std::move(with));
      link = plain.get();
      made = std::move(plain);
    }
    session = std::make_shared<ClientSession>(loop, std::move(made), std::move(options));
    session->connect([this](Result<ServerDescription> outcome) { connected = std::move(outcome); });
  }
  void open_modern() {
    open();
    next().reply->reply(200, kJson, answer(1, R"({"supportedVersions":["2026-07-28"]})"));
    ASSERT_TRUE(until([this] { return connected.has_value(); }));
    ASSERT_TRUE(*connected);
  }
  void open_legacy(bool has_stream = false) {
    open({.revision = "2025-11-25"});
    const HeaderField id{"Mcp-Session-Id", "s-1"};
    next().reply->reply(200, kJson,
                        answer(1, R"({"protocolVersion":"2025-11-25","capabilities":{}})"),
                        std::span(&id, 1));
    ASSERT_TRUE(until([this] { return connected.has_value(); }));
    ASSERT_TRUE(*connected) << connected->error().message;
    Asked initialized = next();
    EXPECT_THAT(initialized.body, HasSubstr("notifications/initialized"));
    EXPECT_EQ(initialized.session, "s-1");
    EXPECT_EQ(initialized.version, "2025-11-25");
    initialized.reply->reply(202, {}, {});
    standalone = next();
    EXPECT_EQ(standalone.method, "GET");
    if (!has_stream) standalone.reply->reply(405, {}, {});
  }
  /// The next request that arrives.
  Asked next() {
    EXPECT_TRUE(until([this] { return !asked.empty(); }));
    if (asked.empty()) throw std::runtime_error("no request has come");
    Asked first = std::move(asked.front());
    asked.erase(asked.begin());
    return first;
  }
  static std::string answer(int id, std::string_view result) {
    return R"({"jsonrpc":"2.0","id":)" + std::to_string(id) + R"(,"result":)" +
           std::string(result) + "}";
  }
  static std::string event(std::string_view id, std::string_view data) {
    std::string out;
    append_sse_event(out, id, data);
    return out;
  }
  static std::string progress(int token, int value) {
    return R"({"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":)" +
           std::to_string(token) + R"(,"progress":)" + std::to_string(value) + "}}";
  }
  ClientSession::Number call(std::string_view tool = "tool") {
    return session->begin("tools/call", {{"name", tool}}, {},
                          {.on_progress =
                               [this](const json::object& params) {
                                 said.push_back("progress " + to_json(params.at("progress")));
                               },
                           .on_answer =
                               [this](Result<json::object> outcome) {
                                 said.push_back(outcome ? to_json(*outcome)
                                                        : std::to_string(outcome.error().code) +
                                                              " " + outcome.error().message);
                               }});
  }
  bool hears(std::size_t count) {
    return until([&] { return said.size() >= count; });
  }

  Duration idle_timeout = HttpClientOptions().idle_timeout;
  Duration ready_patience = 1h;
  Duration lasting = 1h;
  std::vector<Asked> asked;
  Asked standalone;
  std::shared_ptr<ClientSession> session;
  bool falls_back = false;         // to HTTP with SSE
  const HttpLink* link = nullptr;  // valid with the session; null if that falls back
  std::optional<Result<ServerDescription>> connected;
  std::vector<std::string> said;
  int told_of_listening = 0;
};

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
  call();
  Asked first = next();
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
  EXPECT_EQ(ends([](HttpExchange& reply) {
              const HeaderField place{"Location", "https://elsewhere/mcp"};
              reply.reply(307, {}, {}, std::span(&place, 1));
            }),
            "307 The server redirects to https://elsewhere/mcp (HTTP 307), which is not followed; "
            "use the URL of the endpoint itself");
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

TEST_F(HttpLinkTest, WhatSaysNothingOfTheServerIsNoLegacyServer) {
  for (const int status : {401, 403, 429, 500, 503}) {
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

TEST_F(HttpLinkTest, ALegacyStreamThatBreaksOffIsResumed) {
  open_legacy();
  call();
  Asked post = next();
  EXPECT_EQ(post.session, "s-1");
  EXPECT_EQ(post.mcp_method, "");
  post.reply->start(200, kEvents);
  post.reply->write(std::string_view(event("e1", "") + event("e2", progress(2, 1))));
  post.reply->flush();
  ASSERT_TRUE(hears(1));
  post.reply->abort();
  // A resumed stream that breaks off before its first event is resumed from the same place.
  for (int i = 0; i < 2; ++i) {
    Asked get = next();
    EXPECT_EQ(get.method, "GET");
    EXPECT_EQ(get.accept, "text/event-stream");
    EXPECT_EQ(get.last_event, "e2");
    EXPECT_EQ(get.session, "s-1");
    get.reply->start(200, kEvents);
    get.reply->flush();
    settle();
    get.reply->abort();
  }
  Asked get = next();
  EXPECT_EQ(get.last_event, "e2");
  get.reply->start(200, kEvents);
  get.reply->write(std::string_view(event("e3", answer(2, "{}"))));
  get.reply->finish();
  ASSERT_TRUE(hears(2));
  EXPECT_THAT(said, ElementsAre("progress 1", "{}"));
  settle();
  EXPECT_THAT(asked, IsEmpty());
}

TEST_F(HttpLinkTest, AServerThatIsAwayForAMomentIsAskedForTheStreamAgain) {
  open_legacy();
  for (const bool comes_back : {true, false}) {
    said.clear();
    call();
    Asked post = next();
    post.reply->start(200, kEvents);
    post.reply->write(std::string_view(event("e1", "")));
    post.reply->flush();
    settle();
    post.reply->abort();
    next().reply->reply(503, {}, {});
    next().reply->reply(502, {}, {});
    if (comes_back) {
      Asked get = next();
      EXPECT_EQ(get.last_event, "e1");
      get.reply->start(200, kEvents);
      get.reply->write(std::string_view(event("e2", answer(2, "{}"))));
      get.reply->finish();
    } else {
      next().reply->reply(504, {}, {});
    }
    ASSERT_TRUE(hears(1));
    EXPECT_THAT(said, ElementsAre(comes_back ? "{}"
                                             : "504 The stream broke off and cannot be resumed: "
                                               "HTTP 504"));
  }
}

TEST_F(HttpLinkTest, EmptyStreamsAreNoSuccess) {
  open_legacy();
  call();
  Asked post = next();
  post.reply->start(200, kEvents);
  post.reply->write(std::string_view(event("e1", "")));
  post.reply->finish();
  for (int i = 0; i < 3; ++i) {
    Asked get = next();
    EXPECT_EQ(get.last_event, "e1");
    get.reply->start(200, kEvents);
    get.reply->finish();
  }
  ASSERT_TRUE(hears(1));
  EXPECT_THAT(said, ElementsAre("502 The stream ended before the answer came"));
  call();
  post = next();
  post.reply->start(200, kEvents);
  post.reply->write(std::string_view(event("e1", "")));
  post.reply->finish();
  next().reply->reply(404, {}, {});
  ASSERT_TRUE(hears(2));
  EXPECT_EQ(said.back(), "404 The stream broke off and cannot be resumed: HTTP 404");
}

TEST_F(HttpLinkTest, TheStreamOfALegacySessionIsReadAndItsLossHarmsNothing) {
  open_legacy(true);
  standalone.reply->start(200, kEvents);
  standalone.reply->write(std::string_view(
      event("g1", R"({"jsonrpc":"2.0","method":"notifications/tools/list_changed"})")));
  standalone.reply->flush();
  ASSERT_TRUE(hears(1));
  EXPECT_THAT(said, ElementsAre("notifications/tools/list_changed"));
  EXPECT_TRUE(link->is_listening());
  EXPECT_EQ(told_of_listening, 1);
  standalone.reply->abort();
  // It is more often opened again than the stream of a request.
  for (int i = 0; i < 10; ++i) {
    Asked get = next();
    EXPECT_EQ(get.last_event, "g1");
    get.reply->abort();
  }
  next().reply->reply(405, {}, {});
  call();
  Asked post = next();
  EXPECT_EQ(post.method, "POST");
  post.reply->reply(200, kJson, answer(2, "{}"));
  ASSERT_TRUE(hears(2));
}

TEST_F(HttpLinkTest, AStreamThatWasOpenIsOpenedAgainWhateverGoesWrong) {
  open_legacy(true);
  standalone.reply->start(200, kEvents);
  standalone.reply->flush();
  ASSERT_TRUE(until([this] { return link->is_listening(); }));
  standalone.reply->abort();
  for (const int status : {500, 408, 400, 403}) next().reply->reply(status, {}, {});
  next().reply->reply(200, "text/html", "at work");
  Asked get = next();
  EXPECT_EQ(get.method, "GET");
  get.reply->start(200, kEvents);
  get.reply->flush();
  ASSERT_TRUE(until([this] { return link->is_listening(); }));
  get.reply->abort();
  next().reply->reply(404, {}, {});
  call();
  EXPECT_EQ(next().method, "POST") << "the server has no such stream any more";
}

TEST_F(HttpLinkTest, NothingOvertakesTheNotificationThatTheClientIsReady) {
  open({.revision = "2025-11-25"});
  next().reply->reply(200, kJson,
                      answer(1, R"({"protocolVersion":"2025-11-25","capabilities":{}})"));
  ASSERT_TRUE(until([this] { return connected.has_value(); }));
  call();
  const ClientSession::Number dropped = call("dropped");
  Asked initialized = next();
  EXPECT_THAT(initialized.body, HasSubstr("notifications/initialized"));
  settle();
  EXPECT_THAT(asked, IsEmpty());
  session->cancel(dropped);
  initialized.reply->reply(202, {}, {});
  Asked first = next();
  Asked second = next();
  EXPECT_EQ(first.method, "GET");
  EXPECT_THAT(second.body, HasSubstr(R"("name":"tool")"));
  settle();
  EXPECT_THAT(asked, IsEmpty());
}

TEST_F(HttpLinkTest, AForgottenSessionIsBegunAnew) {
  open_legacy();
  call();
  next().reply->reply(404, kJson, R"({"jsonrpc":"2.0","error":{"code":-32600,"message":"gone"}})");
  Asked initialize = next();
  EXPECT_THAT(initialize.body, HasSubstr(R"("method":"initialize")"));
  EXPECT_EQ(initialize.session, "");
  const HeaderField id{"Mcp-Session-Id", "s-2"};
  initialize.reply->reply(200, kJson,
                          answer(3, R"({"protocolVersion":"2025-11-25","capabilities":{}})"),
                          std::span(&id, 1));
  Asked initialized = next();
  EXPECT_THAT(initialized.body, HasSubstr("notifications/initialized"));
  initialized.reply->reply(202, {}, {});
  Asked stream = next();
  EXPECT_EQ(stream.method, "GET");
  Asked again = next();
  EXPECT_THAT(again.body, HasSubstr("tools/call"));
  for (const Asked* each : {&initialized, &stream, &again}) EXPECT_EQ(each->session, "s-2");
  again.reply->reply(200, kJson, answer(4, "{}"));
  ASSERT_TRUE(hears(1));
  EXPECT_THAT(said, ElementsAre("{}"));
}

TEST_F(HttpLinkTest, ALateRefusalByAForgottenSessionDoesNotEndTheNewOne) {
  open_legacy();
  call();
  call();
  Asked first = next();
  Asked second = next();
  first.reply->reply(404, {}, {});
  const HeaderField id{"Mcp-Session-Id", "s-2"};
  next().reply->reply(200, kJson, answer(4, R"({"protocolVersion":"2025-11-25"})"),
                      std::span(&id, 1));
  next().reply->reply(202, {}, {});
  next().reply->reply(405, {}, {});
  next().reply->reply(200, kJson, answer(5, "{}"));
  ASSERT_TRUE(hears(1));
  second.reply->reply(404, {}, {});
  Asked again = next();
  EXPECT_THAT(again.body, HasSubstr("tools/call"));
  EXPECT_EQ(again.session, "s-2");
  again.reply->reply(200, kJson, answer(6, "{}"));
  ASSERT_TRUE(hears(2));
  EXPECT_THAT(said, ElementsAre("{}", "{}"));
}

TEST_F(HttpLinkTest, AnErrorWithTheIdOfTheRequestIsItsAnswerAlsoWith404) {
  open_legacy();
  call();
  next().reply->reply(
      404, kJson, R"({"jsonrpc":"2.0","id":2,"error":{"code":-32002,"message":"no such note"}})");
  ASSERT_TRUE(hears(1));
  EXPECT_THAT(said, ElementsAre("-32002 no such note"));
  EXPECT_THAT(asked, IsEmpty());
}

TEST_F(HttpLinkTest, AQuietStreamThatAProxyEndsIsOpenedAgainEachTime) {
  lasting = 1ms;
  open_legacy(true);
  // More often than streams that fail at once.
  for (int i = 0; i < 6; ++i) {
    standalone.reply->start(200, kEvents);
    standalone.reply->flush();
    ASSERT_TRUE(until([this] { return link->is_listening(); }));
    const auto later = loop.clock().now() + 5ms;
    ASSERT_TRUE(until([&] { return loop.clock().now() > later; }));
    standalone.reply->finish();
    standalone = next();
    EXPECT_EQ(standalone.method, "GET");
  }
}

TEST_F(HttpLinkTest, TheStreamOfAForgottenSessionIsNotRead) {
  open_legacy(true);
  bool has_gone = false;
  standalone.reply->on_close([&] { has_gone = true; });
  standalone.reply->start(200, kEvents);
  standalone.reply->flush();
  call();
  next().reply->reply(404, {}, {});
  next();
  EXPECT_TRUE(until([&] { return has_gone; }));
}

TEST_F(HttpLinkTest, AStreamOfAForgottenSessionIsNotResumedInTheNewOne) {
  open_legacy();
  call("first");
  Asked first = next();
  first.reply->start(200, kEvents);
  first.reply->write(std::string_view(event("e1", "")));
  first.reply->flush();
  call("second");
  next().reply->reply(404, {}, {});
  Asked initialize = next();
  const HeaderField id{"Mcp-Session-Id", "s-2"};
  initialize.reply->reply(200, kJson, answer(4, R"({"protocolVersion":"2025-11-25"})"),
                          std::span(&id, 1));
  next().reply->reply(202, {}, {});
  next().reply->reply(405, {}, {});
  next().reply->reply(200, kJson, answer(5, "{}"));
  ASSERT_TRUE(hears(1));
  first.reply->abort();
  ASSERT_TRUE(hears(2));
  EXPECT_THAT(said, ElementsAre("{}", HasSubstr("502 ")));
  settle();
  EXPECT_THAT(asked, IsEmpty());
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

TEST_F(HttpLinkTest, ALegacySessionIsEndedWithItsLink) {
  open_legacy();
  session = nullptr;
  Asked farewell = next();
  EXPECT_EQ(farewell.method, "DELETE");
  EXPECT_EQ(farewell.session, "s-1");
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
