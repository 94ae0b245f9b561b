// sluice/authenticator.hpp, for every kind of request over HTTP.

#include <functional>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "auth/api_keys.hpp"
#include "net/http/compression.hpp"
#include "net/http/http_parser.hpp"
#include "server/dispatch/server_test_support.hpp"
#include "server/transport/http/endpoint_test_support.hpp"
#include "sluice/authenticator.hpp"

namespace sluice {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr std::string_view kRun =
    R"({"jsonrpc":"2.0","id":1,"method":"run","params":{"stream":true}})";
constexpr std::string_view kStreams = R"({"jsonrpc":"2.0","id":1,"method":"streams"})";
constexpr std::string_view kUpgrade =
    "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";

/// Takes the caller's name from "X-User: NAME". "shared" stands for several callers, "mallory" is
/// refused, and "broken" makes it throw.
class Users final : public Authenticator {
 public:
  std::expected<Principal, Refusal> authenticate(const RequestHead& head) override {
    asked.push_back(std::string(head.method()) + " " + std::string(head.target()));
    from = head.address();
    const auto user = head.field("X-User");
    if (!user) {
      return std::unexpected(Refusal::unauthorized("Say who you are", "Bearer realm=\"users\""));
    }
    if (*user == "mallory") return std::unexpected(Refusal::forbidden("Not you"));
    if (*user == "broken") throw std::runtime_error("secret");
    return Principal{.id = std::string(*user), .isolated = *user != "shared"};
  }

  std::vector<std::string> asked;
  std::string from;  // the address of the last request
};

class AuthenticationTest : public EndpointTest {
 protected:
  AuthenticationTest() { access.authenticator = users; }

  static std::string as(std::string_view user) { return "X-User: " + std::string(user) + "\r\n"; }

  std::shared_ptr<Users> users = std::make_shared<Users>();
};

TEST_F(AuthenticationTest, LongMessagesTakeTurnsByWhoAsks) {
  connect_to_endpoint();
  std::vector<std::string> turns;
  std::vector<std::unique_ptr<PreparedBody>> held;
  for (const std::string user : {"alice", "alice", "alice", "bob", "bob"}) {
    const std::string text = post("/mcp", "{}", as(user));
    HttpHeadParser parser({});
    HttpRequestHead head;
    bool found = false;
    ASSERT_TRUE(parser.parse(text, found, head));
    const std::unique_ptr<HeadVerdict> verdict = endpoint->judge(head.request);
    head.request.verdict = verdict.get();
    held.push_back(endpoint->prepare(head.request, "{}", [&, user, number = held.size()] {
      turns.push_back(user);
      held[number] = nullptr;
    }));
  }
  settle();
  EXPECT_THAT(turns, ElementsAre("alice", "bob", "alice", "bob", "alice"));
}

TEST_F(AuthenticationTest, NobodyComesInUnasked) {
  const std::vector<std::pair<std::string, std::string>> ways = {
      {"POST /mcp", ""},
      {"POST /mcp", "Content-Type: application/x-ndjson\r\n"},
      {"GET /mcp", "Accept: text/event-stream\r\n"},
      {"DELETE /mcp", ""},
      {"GET /sse", ""},
      {"POST /messages?sessionId=x", ""},
      {"GET /ws", std::string(kUpgrade)},
      {"GET /streams/0123456789abcdef", ""},
      {"GET /metrics", ""},
      {"HEAD /metrics", ""},
  };
  for (const auto& [line, fields] : ways) {
    const auto ask_as = [&](const std::string& user) {
      users->asked.clear();
      Peer peer = connect_to_endpoint();
      peer.send(line + " HTTP/1.1\r\nHost: test\r\nConnection: close\r\nContent-Length: 0\r\n" +
                fields + user + "\r\n");
      EXPECT_TRUE(peer.expect("\r\n\r\n")) << line;
      EXPECT_THAT(users->asked, ElementsAre(line)) << user;
      return peer.taken;
    };
    EXPECT_THAT(ask_as(""), AllOf(StartsWith("HTTP/1.1 401 "),
                                  HasSubstr("\r\nWWW-Authenticate: Bearer realm=\"users\"\r\n")));
    EXPECT_THAT(ask_as(as("mallory")),
                AllOf(StartsWith("HTTP/1.1 403 "), Not(HasSubstr("WWW-Authenticate"))));
    EXPECT_THAT(ask_as(as("broken")), AllOf(StartsWith("HTTP/1.1 500 "), Not(HasSubstr("secret"))));
    EXPECT_THAT(ask_as(as("ann")), Not(::testing::ContainsRegex("^HTTP/1.1 (401|403|500) ")));
  }
}

TEST_F(AuthenticationTest, ItIsAskedAgainIfItIsReplacedBeforeTheBodyCame) {
  Peer peer = connect_to_endpoint();
  peer.send("POST /mcp HTTP/1.1\r\nHost: test\r\n" + as("ann") +
            "Content-Length: " + std::to_string(kRun.size()) + "\r\n\r\n");
  settle();
  EXPECT_THAT(users->asked, ElementsAre("POST /mcp"));
  policy->replace_authenticator(
      std::make_shared<ApiKeys>(std::vector<std::pair<std::string, std::string>>{}));
  peer.send(std::string(kRun));
  EXPECT_TRUE(peer.expect("}}"));
  EXPECT_THAT(peer.taken, StartsWith("HTTP/1.1 401 "));
}

TEST_F(AuthenticationTest, HowTheServerIsIsToldToAll) {
  ask(get("/healthz"), "ok\n");
  ask(get("/readyz"), "ready\n");
  ask("OPTIONS /mcp HTTP/1.1\r\nHost: test\r\n\r\n", "\r\n\r\n");
  EXPECT_TRUE(users->asked.empty());
}

TEST_F(AuthenticationTest, ItIsAskedBeforeTheBodyComes) {
  for (const std::string body :
       {"Content-Length: 4000000\r\nExpect: 100-continue\r\n", "Transfer-Encoding: chunked\r\n"}) {
    for (const auto& [user, status] : {std::pair(std::string(), 401), std::pair(as("mallory"), 403),
                                       std::pair(as("broken"), 500)}) {
      Peer peer = connect_to_endpoint();
      peer.send("POST /mcp HTTP/1.1\r\nHost: test\r\n" + body + user + "\r\n");
      ASSERT_TRUE(peer.expect_end());
      EXPECT_THAT(peer.received,
                  AllOf(StartsWith("HTTP/1.1 " + std::to_string(status) + " "),
                        HasSubstr(status == 500 ? R"("code":-32603)" : R"("code":-32600)")));
    }
  }
}

TEST_F(AuthenticationTest, ItIsAskedOncePerRequestHoweverItComes) {
  const std::string head = "POST /mcp HTTP/1.1\r\nHost: test\r\n" + as("ann");
  const std::string length = "Content-Length: " + std::to_string(kPing.size()) + "\r\n\r\n";
  std::string zipped;
  gzip(kPing, zipped);
  const std::vector<std::vector<std::string>> requests = {
      {head + length + std::string(kPing)},
      {head + length, std::string(kPing.substr(0, 5)), std::string(kPing.substr(5))},
      {head + "Transfer-Encoding: chunked\r\n\r\n",
       "5\r\n" + std::string(kPing.substr(0, 5)) + "\r\n",
       "23\r\n" + std::string(kPing.substr(5)) + "\r\n0\r\n\r\n"},
      {head + "Content-Encoding: gzip\r\nContent-Length: " + std::to_string(zipped.size()) +
           "\r\n\r\n",
       zipped},
  };
  ASSERT_EQ(kPing.size(), 5U + 0x23U);
  Peer peer = connect_to_endpoint();
  for (const auto& pieces : requests) {
    users->asked.clear();
    users->from.clear();
    for (const std::string& piece : pieces) {
      peer.send(piece);
      settle();
    }
    ASSERT_TRUE(peer.expect(kPong)) << pieces.front();
    EXPECT_THAT(users->asked, ElementsAre("POST /mcp"));
    EXPECT_EQ(users->from, "127.0.0.1") << pieces.front();
  }
}

TEST_F(AuthenticationTest, OneThatIsRefusedDoesNotHoldUpTheNext) {
  Peer peer = connect_to_endpoint();
  peer.send(post("/mcp", kPing, as("broken")) + post("/mcp", kPing) +
            post("/mcp", kPing, as("ann")));
  ASSERT_TRUE(peer.expect(kPong));
  EXPECT_THAT(peer.taken, AllOf(HasSubstr("HTTP/1.1 500 "), HasSubstr("HTTP/1.1 401 ")));
}

TEST_F(AuthenticationTest, WhatOneBeginsIsThereForThatOneOnly) {
  ask(post("/mcp", kRun, as("ann")));
  ASSERT_EQ(runs.size(), 1U);
  const std::string target = "/streams/" + std::string(runs[0]->id());
  EXPECT_THAT(ask(get(target, as("bob"))), StartsWith("HTTP/1.1 404 "));
  runs[0]->finish();
  EXPECT_THAT(ask(get(target, as("ann")), "0\r\n\r\n"), StartsWith("HTTP/1.1 200 "));
  EXPECT_THAT(ask(post("/mcp", kStreams, as("ann"))), HasSubstr(std::string(runs[0]->id())));
  EXPECT_THAT(ask(post("/mcp", kStreams, as("bob"))), HasSubstr(R"("streams":[])"));
}

TEST_F(AuthenticationTest, WhoIsSeveralIsNotToldOfStreams) {
  ask(post("/mcp", kRun, as("shared")));
  ASSERT_EQ(runs.size(), 1U);
  EXPECT_THAT(ask(post("/mcp", kStreams, as("shared"))), HasSubstr(R"("streams":[])"));
}

TEST_F(AuthenticationTest, MiddlewareHearsWhoAsksOnEachTransport) {
  std::vector<std::string> heard;
  definition.middleware.push_back([&](Request& request) -> Task<> {
    heard.push_back(request.principal() + (request.is_isolated() ? " alone" : ""));
    co_await request.next();
  });
  ask(post("/mcp", kPing, as("ann")), kPong);
  ask(post("/mcp", kPing, as("shared")), kPong);
  ask(post("/mcp", "[" + std::string(kPing) + "]", as("bob")), "}]");
  ask(post("/mcp", std::string(kPing) + "\n",
           as("eve") + "Content-Type: application/x-ndjson\r\nAccept: application/x-ndjson\r\n"),
      kPong);
  Peer socket = connect_to_endpoint();
  socket.audit = nullptr;
  socket.send(get("/ws", as("joe") + std::string(kUpgrade)));
  ASSERT_TRUE(socket.expect("\r\n\r\n"));
  // A text frame, masked with zeros.
  socket.send(std::string("\x81") + static_cast<char>(0x80U | kPing.size()) + std::string(4, '\0') +
              std::string(kPing));
  ASSERT_TRUE(socket.expect(kPong));
  EXPECT_THAT(heard, ElementsAre("ann alone", "shared", "bob alone", "eve alone", "joe alone"));
}

}  // namespace
}  // namespace sluice
