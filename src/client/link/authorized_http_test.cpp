#include "client/link/authorized_http.hpp"

#include <chrono>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "client/link/http_link.hpp"
#include "client/link/sse_link.hpp"
#include "client/link/websocket_link.hpp"
#include "net/server/server_test_support.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// Gives each request the newest token, and a newer one after each refusal.
class FakeAuthorizer final : public RequestAuthorizer {
 public:
  void on_address(const Endpoint& /*endpoint*/) override {}
  void authorize(std::string_view /*method*/, const Url& /*url*/, Authorized done) override {
    if (refusal) return done(std::unexpected(*refusal));
    if (waits) {
      waiting = std::make_unique<Authorized>(std::move(done));
      return;
    }
    if (newest == 0) return done(RequestAuthorization());
    done(RequestAuthorization{.headers = {{"Authorization", "Bearer t" + std::to_string(newest)}},
                              .credential = newest});
  }
  bool on_refused(const HttpReplyHead& reply, std::uint64_t credential, Handled done) override {
    refused.emplace_back(credential);
    challenges.emplace_back(reply.header("WWW-Authenticate"));
    if (reply.status == 403) return false;
    ++newest;
    if (after_refusal) {
      done(std::unexpected(*after_refusal));
    } else {
      done({});
    }
    return true;
  }
  void on_reply(const HttpReplyHead& reply) override { statuses.push_back(reply.status); }
  /// Authorizes the request that waits.
  void go_on() { (*std::exchange(waiting, nullptr))(RequestAuthorization()); }

  bool waits = false;                   // it authorizes later
  std::unique_ptr<Authorized> waiting;  // a request
  std::uint64_t newest = 1;             // 0: there is none
  std::optional<Error> refusal;         // of authorize()
  std::optional<Error> after_refusal;   // of on_refused()
  std::vector<std::uint64_t> refused;
  std::vector<std::string> challenges;
  std::vector<int> statuses;
};

class AuthorizedHttpTest : public ServerTest, protected ServerLink::Owner {
 protected:
  AuthorizedHttpTest() {
    handle = [this](const HttpRequest& request, HttpExchangePtr exchange) {
      tokens.emplace_back(request.header(KnownHeader::authorization));
      methods.emplace_back(request.method_name);
      answer(request, std::move(exchange));
    };
    answer = [](const HttpRequest&, HttpExchangePtr exchange) { exchange->reply(200, {}, "ok"); };
  }
  void TearDown() override {
    call.drop();
    ServerTest::TearDown();
    loop.discard_tasks();
  }
  /// Answers the first `count` requests with `status`, and those after them with 200.
  void refuse(int count, int with = 401) {
    answer = [this, count, with](const HttpRequest&, HttpExchangePtr exchange) {
      const bool is_refused = static_cast<int>(tokens.size()) <= count;
      const HeaderField challenge{"WWW-Authenticate", "Bearer"};
      exchange->reply(is_refused ? with : 200, {}, is_refused ? "no" : "ok",
                      std::span(&challenge, 1));
    };
  }
  [[nodiscard]] Url url() const {
    return {.scheme = "http", .host = "127.0.0.1", .port = port, .target = "/mcp"};
  }
  void send() {
    start();
    http.emplace(loop, HttpClientOptions(), authorizer);
    call = http->send({.method = "POST", .url = url(), .headers = headers, .body = "question"},
                      {.on_head = [this](const HttpReplyHead& head) { status = head.status; },
                       .on_sent = [this] { ++times_sent; },
                       .on_body = [this](std::string_view bytes) { body.append(bytes); },
                       .on_complete = [this] { is_complete = true; },
                       .on_failure = [this](const Error& why) { failure = why; }});
    EXPECT_FALSE(failure);
    ASSERT_TRUE(until([this] { return is_complete || failure; }));
  }

  void on_message(std::string_view text) override { messages.emplace_back(text); }
  bool on_reply(const RequestId& /*id*/, std::string_view text) override {
    messages.emplace_back(text);
    return true;
  }
  void on_unreadable(std::string_view /*text*/, const Error& why) override { failure = why; }
  void on_unanswered(const RequestId& /*id*/, const Error& why) override { failure = why; }
  void on_session_over(const RequestId& /*id*/) override {}
  [[nodiscard]] bool awaits(const RequestId& /*id*/) const override { return true; }
  void on_lost(const Error& why) override { failure = why; }

  std::shared_ptr<FakeAuthorizer> authorizer = std::make_shared<FakeAuthorizer>();
  std::function<void(const HttpRequest&, HttpExchangePtr)> answer;
  std::vector<std::string> tokens, methods, messages;
  HttpHeaderList headers;  // of the request
  std::optional<AuthorizedHttp> http;
  AuthorizedHttp::Call call;
  int status = 0;
  int times_sent = 0;  // as far as it is told
  std::string body;
  bool is_complete = false;
  std::optional<Error> failure;
};

TEST_F(AuthorizedHttpTest, SendsTheToken) {
  send();
  EXPECT_THAT(tokens, ElementsAre("Bearer t1"));
  EXPECT_EQ(body, "ok");
  EXPECT_THAT(authorizer->statuses, ElementsAre(200));
}

TEST_F(AuthorizedHttpTest, A401MayBeAboutTheSession) {
  answer = [](const HttpRequest&, HttpExchangePtr exchange) {
    const HeaderField challenge{"WWW-Authenticate", "Bearer"};
    exchange->reply(401, {}, "Unauthorized: Session not found", std::span(&challenge, 1));
  };
  headers = {{"Mcp-Session-Id", "s-1"}};
  send();
  EXPECT_EQ(status, 401);
  EXPECT_EQ(body, "Unauthorized: Session not found");
  EXPECT_THAT(authorizer->refused, IsEmpty());
}

TEST_F(AuthorizedHttpTest, A401MayAskForAuthorizationInTheMiddleOfASession) {
  answer = [this](const HttpRequest&, HttpExchangePtr exchange) {
    const HeaderField challenge{"WWW-Authenticate", "Bearer resource_metadata=\"/x\""};
    const bool is_first = tokens.size() == 1;
    exchange->reply(is_first ? 401 : 200, {}, is_first ? "Unauthorized" : "ok",
                    std::span(&challenge, 1));
  };
  headers = {{"Mcp-Session-Id", "s-1"}};
  authorizer->newest = 0;
  send();
  EXPECT_THAT(authorizer->refused, ElementsAre(0));
  EXPECT_THAT(authorizer->challenges, ElementsAre("Bearer resource_metadata=\"/x\""));
  EXPECT_THAT(tokens, ElementsAre("", "Bearer t1"));
  EXPECT_EQ(body, "ok");
}

TEST_F(AuthorizedHttpTest, ARefusalOfASessionMayBeLong) {
  std::vector<HttpExchangePtr> unended;
  answer = [&](const HttpRequest&, HttpExchangePtr exchange) {
    if (tokens.size() > 1) return exchange->reply(200, {}, "ok");
    exchange->start(401, {});
    exchange->write(std::string(std::size_t{20} << 10U, 'x'));
    exchange->flush();
    unended.push_back(std::move(exchange));
  };
  headers = {{"Mcp-Session-Id", "s-1"}};
  send();
  EXPECT_THAT(authorizer->refused, ElementsAre(1));
  EXPECT_EQ(body, "ok");
  unended.clear();
}

TEST_F(AuthorizedHttpTest, ARefusalOfASessionMayBreakOff) {
  answer = [](const HttpRequest&, HttpExchangePtr exchange) {
    exchange->start(401, {});
    exchange->write(std::string_view("Unauthor"));
    exchange->flush();
    exchange->abort();
  };
  headers = {{"Mcp-Session-Id", "s-1"}};
  authorizer->after_refusal = Error{401, "log in", {}};
  send();
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->message, "log in");
}

TEST_F(AuthorizedHttpTest, ARefusalOfASessionNeedNotEnd) {
  headers = {{"Mcp-Session-Id", "s"}};
  HttpExchangePtr open;
  answer = [&](const HttpRequest&, HttpExchangePtr exchange) {
    open = std::move(exchange);
    open->start(401, "text/plain");
    open->write("Unauthorized: Session not found" + std::string(std::size_t{20} << 10U, ' '));
    open->flush();
  };
  send();
  EXPECT_TRUE(is_complete);
  EXPECT_EQ(status, 401);
  EXPECT_EQ(times_sent, 1);
  EXPECT_TRUE(body.starts_with("Unauthorized: Session not found"));
  EXPECT_THAT(authorizer->refused, IsEmpty());
  open = nullptr;
}

TEST_F(AuthorizedHttpTest, ARequestThatIsPausedBeforeItIsAuthorizedStaysPaused) {
  authorizer->waits = true;
  start();
  http.emplace(loop, HttpClientOptions(), authorizer);
  call = http->send({.method = "POST", .url = url(), .headers = {}, .body = "question"},
                    {.on_body = [this](std::string_view bytes) { body.append(bytes); },
                     .on_complete = [this] { is_complete = true; },
                     .on_failure = {}});
  call.pause(true);
  ASSERT_TRUE(authorizer->waiting != nullptr);
  authorizer->go_on();
  ASSERT_TRUE(until([this] { return tokens.size() == 1; }));
  settle();
  EXPECT_FALSE(is_complete);
  call.pause(false);
  EXPECT_TRUE(until([this] { return is_complete; }));
}

TEST_F(AuthorizedHttpTest, TheLastRequestIsSentAgainWithTheNonceThatIsAskedFor) {
  answer = [this](const HttpRequest&, HttpExchangePtr exchange) {
    const HeaderField nonce{"DPoP-Nonce", "n"};
    exchange->reply(tokens.size() == 1 ? 401 : 200, {}, {}, std::span(&nonce, 1));
  };
  start();
  http.emplace(loop, HttpClientOptions(), authorizer);
  bool is_done = false;
  http->send_last({.method = "DELETE", .url = url(), .headers = {}, .body = {}}, 2s,
                  [&is_done] { is_done = true; });
  EXPECT_TRUE(until([&is_done] { return is_done; }));
  EXPECT_THAT(methods, ElementsAre("DELETE", "DELETE"));
  EXPECT_THAT(authorizer->statuses, ElementsAre(401, 200));
}

TEST_F(AuthorizedHttpTest, SendsTheRequestAgainAfterARefusal) {
  refuse(2);
  send();
  EXPECT_THAT(tokens, ElementsAre("Bearer t1", "Bearer t2", "Bearer t3"));
  EXPECT_THAT(authorizer->refused, ElementsAre(1, 2));
  EXPECT_EQ(status, 200);
  EXPECT_EQ(times_sent, 1);
  EXPECT_EQ(body, "ok");
}

TEST_F(AuthorizedHttpTest, GivesUpAServerThatRefusesEverything) {
  refuse(1000);
  send();
  EXPECT_EQ(tokens.size(), static_cast<std::size_t>(AuthorizedHttp::kMaxAttempts));
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->code, 401);
  EXPECT_THAT(failure->message, HasSubstr("each of 4 requests"));
  EXPECT_EQ(status, 0);
}

TEST_F(AuthorizedHttpTest, TellsWhyThereIsNoAuthorization) {
  authorizer->refusal = Error(401, "run `sluice login`");
  send();
  EXPECT_THAT(tokens, IsEmpty());
  EXPECT_EQ(failure->message, "run `sluice login`");
}

TEST_F(AuthorizedHttpTest, TellsWhyARefusalIsFinal) {
  refuse(1);
  authorizer->after_refusal = Error(401, "the user refuses");
  send();
  EXPECT_EQ(tokens.size(), 1U);
  EXPECT_EQ(failure->message, "the user refuses");
}

TEST_F(AuthorizedHttpTest, PassesOnARefusalOfAnotherKind) {
  refuse(1, 403);
  send();
  EXPECT_EQ(status, 403);
  EXPECT_EQ(body, "no");
  EXPECT_FALSE(failure);
}

TEST_F(AuthorizedHttpTest, FollowsNoRedirectWithAToken) {
  answer = [this](const HttpRequest&, HttpExchangePtr exchange) {
    const std::string place = "http://127.0.0.1:" + std::to_string(port) + "/elsewhere";
    const HeaderField location{"Location", place};
    exchange->reply(307, {}, {}, std::span(&location, 1));
  };
  send();
  EXPECT_EQ(status, 307);
  EXPECT_EQ(tokens.size(), 1U);
}

TEST_F(AuthorizedHttpTest, AuthorizesEveryRequestOfAnHttpLink) {
  answer = [this](const HttpRequest& request, HttpExchangePtr exchange) {
    const HeaderField id{"Mcp-Session-Id", "s"};
    const bool is_first = tokens.size() == 1;
    exchange->reply(is_first                        ? 401
                    : request.method == Method::get ? 405
                                                    : 200,
                    "application/json", is_first ? "" : "{}", std::span(&id, 1));
  };
  start();
  auto link = std::make_unique<HttpLink>(
      loop, HttpLinkOptions{.url = url(),
                            .headers = {{"authorization", "Bearer static"}, {"X-Own", "1"}},
                            .authorizer = authorizer});
  link->open(*this);
  const Revision* const revision = find_revision("2025-11-25");
  ASSERT_TRUE(link->send(
      {.text = "{}", .id = RequestId("1"), .method = "initialize", .revision = revision}));
  ASSERT_TRUE(until([this] { return tokens.size() == 2; }));
  ASSERT_TRUE(
      link->send({.text = "{}", .method = "notifications/initialized", .revision = revision}));
  ASSERT_TRUE(until([this] { return tokens.size() == 4; }));
  link = nullptr;
  ASSERT_TRUE(until([this] { return tokens.size() == 5; }));
  EXPECT_THAT(methods, ElementsAre("POST", "POST", "POST", "GET", "DELETE"));
  EXPECT_THAT(tokens, ElementsAre("Bearer t1", "Bearer t2", "Bearer t2", "Bearer t2", "Bearer t2"));
}

TEST_F(AuthorizedHttpTest, AStreamThatWasRefusedIsOpenedAgainOnceARequestIsNot) {
  bool has_expired = false;
  std::vector<HttpExchangePtr> streams;
  std::vector<std::string> places;
  answer = [&](const HttpRequest& request, HttpExchangePtr exchange) {
    if (has_expired) return exchange->reply(401, {}, {});
    const HeaderField id{"Mcp-Session-Id", "s"};
    if (request.method != Method::get) {
      return exchange->reply(200, "application/json", "{}", std::span(&id, 1));
    }
    places.emplace_back(request.header("last-event-id"));
    exchange->start(200, "text/event-stream");
    exchange->write(std::string_view("id: e1\ndata:\n\n"));
    exchange->flush();
    streams.push_back(std::move(exchange));
  };
  start();
  auto link = std::make_unique<HttpLink>(
      loop, HttpLinkOptions{.url = url(),
                            .authorizer = authorizer,
                            .resumption = {.first = 1ms, .longest = 1ms, .attempts = 3}});
  link->open(*this);
  const Revision* const revision = find_revision("2025-11-25");
  ASSERT_TRUE(link->send(
      {.text = "{}", .id = RequestId("1"), .method = "initialize", .revision = revision}));
  ASSERT_TRUE(until([&] { return tokens.size() == 1; }));
  ASSERT_TRUE(
      link->send({.text = "{}", .method = "notifications/initialized", .revision = revision}));
  ASSERT_TRUE(until([&] { return streams.size() == 1 && link->is_listening(); }));
  settle();
  has_expired = true;
  authorizer->after_refusal = Error{401, "log in", {}};
  streams.front()->abort();
  ASSERT_TRUE(until([&] { return !authorizer->refused.empty() && !link->is_listening(); }));
  has_expired = false;
  ASSERT_TRUE(link->send(
      {.text = "{}", .id = RequestId("2"), .method = "tools/list", .revision = revision}));
  ASSERT_TRUE(until([&] { return streams.size() == 2; }));
  EXPECT_THAT(places, ElementsAre("", "e1"));
  link = nullptr;
  streams.clear();
}

TEST_F(AuthorizedHttpTest, AuthorizesTheStreamAndThePostsOfAnSseLink) {
  HttpExchangePtr stream;
  answer = [&, this](const HttpRequest& request, HttpExchangePtr exchange) {
    if (tokens.size() == 1) return exchange->reply(401, {}, {});
    if (request.method == Method::post) return exchange->reply(202, {}, {});
    stream = std::move(exchange);
    stream->start(200, "text/event-stream");
    stream->write(std::string_view("event: endpoint\ndata: /post\n\n"));
  };
  start();
  auto link =
      std::make_unique<SseLink>(loop, SseLinkOptions{.url = url(), .authorizer = authorizer});
  link->open(*this);
  ASSERT_TRUE(link->send({.text = "{}", .id = RequestId("1")}));
  ASSERT_TRUE(until([this] { return tokens.size() == 3; }));
  EXPECT_THAT(methods, ElementsAre("GET", "GET", "POST"));
  EXPECT_THAT(tokens, ElementsAre("Bearer t1", "Bearer t2", "Bearer t2"));
  EXPECT_FALSE(failure);
}

TEST_F(AuthorizedHttpTest, AuthorizesTheHandshakeOfAWebSocketLink) {
  refuse(2);
  start();
  auto link = std::make_unique<WebSocketLink>(
      loop, WebSocketLinkOptions{.url = url(), .authorizer = authorizer});
  link->open(*this);
  ASSERT_TRUE(until([this] { return failure.has_value(); }));
  EXPECT_THAT(tokens, ElementsAre("Bearer t1", "Bearer t2", "Bearer t3"));
  EXPECT_THAT(failure->message, HasSubstr("200"));
  authorizer->refusal = Error(401, "run `sluice login`");
  failure.reset();
  EXPECT_TRUE(link->reopen());
  EXPECT_FALSE(failure);
  ASSERT_TRUE(until([this] { return failure.has_value(); }));
  EXPECT_EQ(failure->message, "run `sluice login`");
}

}  // namespace
}  // namespace sluice
