#include "net/client/http_client.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <optional>
#include <string>
#include <vector>

#include "net/client/client_test_support.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

struct Outcome {
  int status = 0;
  std::string content_type;
  std::vector<std::string> pieces;
  bool complete = false;
  std::optional<Error> error;

  [[nodiscard]] std::string body() const {
    std::string all;
    for (const std::string& piece : pieces) all += piece;
    return all;
  }
  [[nodiscard]] bool ended() const { return complete || error.has_value(); }

  HttpReplyCallbacks callbacks() {
    return {.on_head =
                [this](const HttpReplyHead& head) {
                  status = head.status;
                  content_type = head.header("content-type");
                },
            .on_body = [this](std::string_view bytes) { pieces.emplace_back(bytes); },
            .on_complete = [this] { complete = true; },
            .on_failure = [this](const Error& why) { error = why; }};
  }
};

class HttpClientTest : public ::testing::Test {
 protected:
  HttpClient::Call get(HttpClient& client, Outcome& into, const std::string& target = "/") {
    return client.send({.method = "GET", .url = server.url(target)}, into.callbacks());
  }
  void finish(const Outcome& awaited) {
    EXPECT_TRUE(run_until(loop, [&] { return awaited.ended(); }));
  }

  EventLoop loop;
  ScriptedServer server{loop};
  Outcome outcome;
};

constexpr std::string_view kOk = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

TEST_F(HttpClientTest, SendsTheRequestAndHandsOverTheReply) {
  HttpClient client(loop);
  const auto call = client.send({.method = "POST",
                                 .url = server.url("/mcp?a=b"),
                                 .headers = {{"Content-Type", "application/json"}},
                                 .body = "{}"},
                                outcome.callbacks());
  auto& peer = server.peer(0, "{}");
  EXPECT_THAT(
      peer.received,
      AllOf(StartsWith("POST /mcp?a=b HTTP/1.1\r\nHost: 127.0.0.1:"),
            HasSubstr("\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}")));
  peer.send("HTTP/1.1 201 Created\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\r\nhello");
  finish(outcome);
  EXPECT_TRUE(outcome.complete);
  EXPECT_EQ(outcome.status, 201);
  EXPECT_EQ(outcome.content_type, "text/plain");
  EXPECT_EQ(outcome.body(), "hello");
}

TEST_F(HttpClientTest, AHostOfItsOwnIsTheOnlyOne) {
  HttpClient client(loop);
  const auto call =
      client.send({.url = server.url("/"), .headers = {{"host", "a.example"}, {"X-Other", "1"}}},
                  outcome.callbacks());
  EXPECT_THAT(server.peer(0).received,
              AllOf(StartsWith("GET / HTTP/1.1\r\nHost: a.example\r\nUser-Agent: "),
                    HasSubstr("\r\nX-Other: 1\r\n"), Not(HasSubstr("127.0.0.1")),
                    Not(HasSubstr("host: "))));
}

TEST_F(HttpClientTest, APostWithoutABodySaysSo) {
  HttpClient client(loop);
  const auto call = client.send({.method = "POST", .url = server.url()}, outcome.callbacks());
  EXPECT_THAT(server.peer(0).received, HasSubstr("\r\nContent-Length: 0\r\n"));
}

TEST_F(HttpClientTest, StreamsAChunkedBodyAsItComes) {
  HttpClient client(loop);
  const auto call = get(client, outcome);
  auto& peer = server.peer(0);
  peer.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n");
  ASSERT_TRUE(run_until(loop, [&] { return outcome.body() == "abc"; }));
  EXPECT_FALSE(outcome.complete);
  peer.send("2;x=y\r\nde\r\n0\r\nTrailer: t\r\n\r\n");
  finish(outcome);
  EXPECT_TRUE(outcome.complete);
  EXPECT_EQ(outcome.body(), "abcde");
}

TEST_F(HttpClientTest, TakesRepliesInSingleBytes) {
  HttpClient client(loop);
  const auto call = get(client, outcome);
  auto& peer = server.peer(0);
  for (const char c : std::string_view("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n"
                                       "Content-Type: a/b\r\nTransfer-Encoding: chunked\r\n\r\n"
                                       "4\r\nwxyz\r\n1\r\n!\r\n0\r\n\r\n")) {
    peer.send({&c, 1});
    loop.poll();
  }
  finish(outcome);
  EXPECT_TRUE(outcome.complete);
  EXPECT_EQ(outcome.status, 200);
  EXPECT_EQ(outcome.content_type, "a/b");
  EXPECT_EQ(outcome.body(), "wxyz!");
}

TEST_F(HttpClientTest, TakesALastChunkAloneInSingleBytes) {
  HttpClient client(loop);
  const auto call = get(client, outcome);
  auto& peer = server.peer(0);
  for (const char c :
       std::string_view("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n")) {
    peer.send({&c, 1});
    loop.poll();
  }
  finish(outcome);
  EXPECT_TRUE(outcome.complete);
  EXPECT_EQ(outcome.body(), "");
}

TEST_F(HttpClientTest, KeepsTheConnectionForTheNextRequest) {
  HttpClient client(loop);
  const auto first = get(client, outcome);
  server.peer(0).send(kOk);
  finish(outcome);
  server.peers[0]->received.clear();
  Outcome second;
  const auto call = get(client, second, "/second");
  EXPECT_THAT(server.peer(0).received, StartsWith("GET /second"));
  server.peers[0]->send(kOk);
  finish(second);
  EXPECT_EQ(second.body(), "ok");
  EXPECT_EQ(server.peers.size(), 1U);
}

TEST_F(HttpClientTest, TheNextRequestMayStartFromOnComplete) {
  HttpClient client(loop);
  Outcome second;
  HttpClient::Call next;
  HttpReplyCallbacks callbacks = outcome.callbacks();
  callbacks.on_complete = [&] { next = get(client, second, "/second"); };
  const auto call = client.send({.method = "GET", .url = server.url()}, std::move(callbacks));
  server.peer(0).send(kOk);
  ASSERT_TRUE(run_until(
      loop, [&] { return server.peers[0]->received.find("/second") != std::string::npos; }));
  server.peers[0]->send(kOk);
  finish(second);
  EXPECT_EQ(second.body(), "ok");
}

TEST_F(HttpClientTest, DoesNotKeepWhatTheServerWillClose) {
  HttpClient client(loop);
  const auto first = get(client, outcome);
  server.peer(0).send("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
  finish(outcome);
  Outcome second;
  const auto call = get(client, second);
  server.peer(1).send(kOk);
  finish(second);
  EXPECT_EQ(second.body(), "ok");
}

TEST_F(HttpClientTest, DoesNotKeepAConnectionThatSaysMoreThanItWasAsked) {
  HttpClient client(loop);
  const auto first = get(client, outcome);
  server.peer(0).send(std::string(kOk) + std::string(kOk));
  finish(outcome);
  EXPECT_EQ(outcome.body(), "ok");
  EXPECT_TRUE(run_until(loop, [&] { return server.peers[0]->gone; }));
}

TEST_F(HttpClientTest, GivesUpAKeptConnectionAfterAWhile) {
  HttpClient client(loop, {.keep_idle = 20ms});
  const auto call = get(client, outcome);
  server.peer(0).send(kOk);
  finish(outcome);
  EXPECT_TRUE(run_until(loop, [&] { return server.peers[0]->gone; }));
}

TEST_F(HttpClientTest, KeepsNoConnectionWhoseRequestWasAnsweredBeforeItWasRead) {
  HttpClient client(loop, {.keep_idle = 1h});
  const auto call = client.send(
      {.method = "POST", .url = server.url(), .body = std::string(std::size_t{64} << 20U, 'x')},
      outcome.callbacks());
  ASSERT_TRUE(run_until(loop, [this] { return !server.peers.empty(); }));
  server.peers[0]->send(kOk);
  finish(outcome);
  EXPECT_TRUE(outcome.complete);
  EXPECT_TRUE(run_until(loop, [this] { return server.peers[0]->gone; }));
}

TEST_F(HttpClientTest, TellsOnceTheHeadHasComeAndTheRequestHasLeft) {
  HttpClient client(loop);
  for (const std::size_t bytes : {std::size_t{2}, std::size_t{32} << 20U}) {
    const std::size_t connection = server.peers.size();
    bool has_head = false;
    int times_sent = 0;
    const auto call =
        client.send({.method = "POST", .url = server.url(), .body = std::string(bytes, 'x') + "!"},
                    {.on_head = [&](const HttpReplyHead&) { has_head = true; },
                     .on_sent = [&] { ++times_sent; }});
    ASSERT_TRUE(run_until(loop, [&] { return server.peers.size() > connection; }));
    auto& peer = *server.peers[connection];
    const bool is_short = bytes == 2;
    if (is_short) server.peer(connection, "!");
    EXPECT_EQ(times_sent, 0) << "there is no head";
    peer.send("HTTP/1.1 202 Accepted\r\nTransfer-Encoding: chunked\r\n\r\n");
    ASSERT_TRUE(run_until(loop, [&] { return has_head; }));
    EXPECT_EQ(times_sent, is_short ? 1 : 0);
    EXPECT_TRUE(run_until(loop, [&] { return times_sent == 1; }));
    server.peer(connection, "!");
  }
}

TEST_F(HttpClientTest, ClosesKeptConnectionsWithTheClient) {
  std::optional<HttpClient> client(std::in_place, loop);
  const auto call = get(*client, outcome);
  server.peer(0).send(kOk);
  finish(outcome);
  EXPECT_FALSE(server.peers[0]->gone);
  client.reset();
  EXPECT_TRUE(run_until(loop, [&] { return server.peers[0]->gone; }));
}

TEST_F(HttpClientTest, AsksAgainWhenAKeptConnectionWasClosedMeanwhile) {
  HttpClient client(loop);
  const auto first = get(client, outcome);
  server.peer(0).send(kOk);
  finish(outcome);
  Outcome second;
  server.peers[0]->received.clear();
  const auto call = get(client, second);
  server.peer(0).close();
  server.peer(1).send(kOk);
  finish(second);
  EXPECT_EQ(second.body(), "ok");
}

TEST_F(HttpClientTest, DoesNotSendAPostTwice) {
  HttpClient client(loop);
  const auto first = get(client, outcome);
  server.peer(0).send(kOk);
  finish(outcome);
  Outcome second;
  const auto call =
      client.send({.method = "POST", .url = server.url(), .body = "x"}, second.callbacks());
  server.peer(0, "x").close();
  finish(second);
  ASSERT_TRUE(second.error);
  EXPECT_EQ(second.error->code, 502);
  EXPECT_EQ(server.peers.size(), 1U);
}

TEST_F(HttpClientTest, ABodyMayEndWithTheConnection) {
  HttpClient client(loop);
  const auto call = get(client, outcome);
  auto& peer = server.peer(0);
  peer.send("HTTP/1.0 200 OK\r\n\r\nall of it");
  peer.close();
  finish(outcome);
  EXPECT_TRUE(outcome.complete);
  EXPECT_EQ(outcome.body(), "all of it");
}

TEST_F(HttpClientTest, RepliesThatBreakOffAreFailures) {
  for (const std::string_view reply :
       {"", "HTTP/1.1 200 OK\r\nContent-", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n"}) {
    HttpClient client(loop);
    Outcome broken;
    const std::size_t n = server.peers.size();
    const auto call = get(client, broken);
    auto& peer = server.peer(n);
    if (!reply.empty()) peer.send(reply);
    peer.close();
    finish(broken);
    ASSERT_TRUE(broken.error) << reply;
    EXPECT_EQ(broken.error->code, 502);
    EXPECT_FALSE(broken.complete);
  }
}

TEST_F(HttpClientTest, RepliesThatAreNotHttpAreFailures) {
  for (const std::string_view reply :
       {"SSH-2.0-OpenSSH\r\n\r\n", "HTTP/1.1 2000 OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
        "HTTP/1.1 101 Switching Protocols\r\n\r\n"}) {
    HttpClient client(loop);
    Outcome broken;
    const std::size_t n = server.peers.size();
    const auto call = get(client, broken);
    server.peer(n).send(reply);
    finish(broken);
    ASSERT_TRUE(broken.error) << reply;
    EXPECT_EQ(broken.error->code, 502);
    EXPECT_TRUE(run_until(loop, [&] { return server.peers[n]->gone; }));
  }
}

TEST_F(HttpClientTest, AnotherProtocolIsNoticedAtOnce) {
  HttpClient client(loop);
  const auto call = get(client, outcome);
  ScriptedServer::Peer& peer = server.peer(0);
  for (const std::string_view piece : {"H", "TTP/", "2"}) {
    EXPECT_FALSE(outcome.ended());
    peer.send(piece);
    for (int i = 0; i < 10; ++i) loop.poll();
  }
  finish(outcome);
  ASSERT_TRUE(outcome.error);
  EXPECT_THAT(outcome.error->message, HasSubstr("does not begin with HTTP/1"));
}

TEST_F(HttpClientTest, AHeadHasALimit) {
  HttpClient client(loop, {.max_head = 1024});
  const auto call = get(client, outcome);
  server.peer(0).send("HTTP/1.1 200 OK\r\nX: " + std::string(2000, 'x'));
  finish(outcome);
  ASSERT_TRUE(outcome.error);
}

TEST_F(HttpClientTest, ManyShortFieldsAreALongHeadToo) {
  HttpClient client(loop, {.max_head = 1000});
  const auto call = get(client, outcome);
  ScriptedServer::Peer& peer = server.peer(0);
  peer.send("HTTP/1.1 200 OK\r\n");
  for (int i = 0; i < 200 && !outcome.ended(); ++i) {
    peer.send("A: b\r\n");
    loop.poll();
  }
  finish(outcome);
  ASSERT_TRUE(outcome.error);
  EXPECT_THAT(outcome.error->message, HasSubstr("header limit"));
}

TEST_F(HttpClientTest, TheReplyToHeadHasNoBody) {
  HttpClient client(loop);
  const auto call = client.send({.method = "HEAD", .url = server.url()}, outcome.callbacks());
  server.peer(0).send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n");
  finish(outcome);
  EXPECT_TRUE(outcome.complete);
}

TEST_F(HttpClientTest, DroppingACallClosesItsConnection) {
  HttpClient client(loop);
  {
    const auto call = get(client, outcome);
    server.peer(0).send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab");
    ASSERT_TRUE(run_until(loop, [&] { return outcome.body() == "ab"; }));
  }
  EXPECT_TRUE(run_until(loop, [&] { return server.peers[0]->gone; }));
  EXPECT_FALSE(outcome.ended());
}

TEST_F(HttpClientTest, ACallMayBeDroppedFromItsCallbacks) {
  for (const int where : {0, 1, 2}) {
    HttpClient client(loop);
    HttpClient::Call call;
    int after = 0;
    const auto drop = [&](int here) {
      if (where == here) call.drop();
      if (here > where) ++after;
    };
    bool dropped = false;
    const std::size_t n = server.peers.size();
    call = client.send({.method = "GET", .url = server.url()},
                       {.on_head =
                            [&](const HttpReplyHead&) {
                              drop(0);
                              dropped = true;
                            },
                        .on_body = [&](std::string_view) { drop(1); },
                        .on_complete = [&] { drop(2); },
                        .on_failure = [&](const Error&) { ++after; }});
    server.peer(n).send(kOk);
    ASSERT_TRUE(run_until(loop, [&] { return dropped; }));
    if (where < 2) {
      ASSERT_TRUE(run_until(loop, [&] { return server.peers[n]->gone; }));
    }
    EXPECT_EQ(after, 0);
  }
}

TEST_F(HttpClientTest, ACallDroppedBeforeItIsConnectedIsNotHeardOf) {
  HttpClient client(loop);
  {
    const auto call = get(client, outcome);
  }
  loop.poll();
  EXPECT_FALSE(outcome.ended());
}

TEST_F(HttpClientTest, SaysThatNobodyListens) {
  const Url url = server.url();
  server.acceptor = nullptr;
  HttpClient client(loop);
  const auto call = client.send({.method = "GET", .url = url}, outcome.callbacks());
  EXPECT_FALSE(outcome.ended()) << "a failure must not come from within send()";
  finish(outcome);
  ASSERT_TRUE(outcome.error);
  EXPECT_EQ(outcome.error->code, 502);
  EXPECT_THAT(outcome.error->message,
              AllOf(HasSubstr(url.authority()), HasSubstr("Connection refused")));
}

TEST_F(HttpClientTest, FindsAServerByName) {
  HttpClient client(loop);
  Url url = server.url();
  url.host = "localhost";
  const auto call = client.send({.method = "GET", .url = url}, outcome.callbacks());
  server.peer(0).send(kOk);
  finish(outcome);
  EXPECT_TRUE(outcome.complete);
}

TEST_F(HttpClientTest, MayBeLedToAServerInAnotherWay) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends.data()), 0);
  ScriptedServer::Peer peer(loop, Descriptor(ends[0]));
  std::string asked;
  Descriptor way(ends[1]);
  HttpClient client(loop, {.dial = [&](const Url& url) -> Result<Descriptor> {
                      asked = url.authority();
                      if (!way) return fail(502, "no way");
                      return std::move(way);
                    }});
  const auto call = get(client, outcome);
  ASSERT_TRUE(run_until(loop, [&] { return peer.received.ends_with("\r\n\r\n"); }));
  peer.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok");
  finish(outcome);
  EXPECT_EQ(outcome.body(), "ok");
  EXPECT_EQ(asked, server.url().authority());
  Outcome second;
  const auto another = get(client, second);
  finish(second);
  ASSERT_TRUE(second.error);
  EXPECT_THAT(second.error->message, AllOf(StartsWith("Cannot connect"), HasSubstr("no way")));
}

TEST_F(HttpClientTest, GivesUpAServerThatSaysNothing) {
  HttpClient client(loop, {.idle_timeout = 30ms});
  const auto call = get(client, outcome);
  finish(outcome);
  ASSERT_TRUE(outcome.error);
  EXPECT_EQ(outcome.error->code, 504);
}

TEST_F(HttpClientTest, APatientRequestOutlivesTheIdleTimeout) {
  HttpClient client(loop, {.idle_timeout = 1ms});
  const auto call = client.send({.url = server.url(), .is_patient = true}, outcome.callbacks());
  auto& peer = server.peer(0);
  const auto later = loop.clock().now() + 10ms;
  EXPECT_TRUE(run_until(loop, [&] { return loop.clock().now() > later; }));
  EXPECT_FALSE(outcome.error);
  peer.send(kOk);
  finish(outcome);
  EXPECT_FALSE(outcome.error);
}

TEST_F(HttpClientTest, RefusesWhatWouldSmuggleARequest) {
  HttpClient client(loop);
  Url bad_target = server.url("/a\r\nX: y");
  for (const HttpClientRequest& request :
       {HttpClientRequest{.method = "GET /", .url = server.url()},
        HttpClientRequest{.method = "GET", .url = bad_target},
        HttpClientRequest{.method = "GET", .url = server.url(), .headers = {{"A", "b\r\nC: d"}}},
        HttpClientRequest{.method = "GET", .url = server.url(), .headers = {{"A b", "c"}}}}) {
    Outcome refused;
    const auto call = client.send(request, refused.callbacks());
    finish(refused);
    ASSERT_TRUE(refused.error);
    EXPECT_EQ(refused.error->code, 400);
  }
  EXPECT_TRUE(server.peers.empty());
}

TEST_F(HttpClientTest, SendsAndTakesMoreThanTheSocketsHold) {
  HttpClient client(loop);
  const std::string body(8U << 20U, 'b');
  const auto call =
      client.send({.method = "POST", .url = server.url(), .body = body + "!"}, outcome.callbacks());
  auto& peer = server.peer(0, "!");
  EXPECT_THAT(peer.received.size(), ::testing::Gt(body.size()));
  peer.send("HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n");
  for (int i = 0; i < 100; ++i) {
    peer.send(std::string(10000, 'c'));
    loop.poll();
  }
  finish(outcome);
  EXPECT_EQ(outcome.body(), std::string(1000000, 'c'));
}

TEST_F(HttpClientTest, SendsAsideWithoutAHandle) {
  HttpClient client(loop);
  client.send_aside({.method = "GET", .url = server.url("/aside")});
  auto& peer = server.peer(0);
  EXPECT_THAT(peer.received, StartsWith("GET /aside"));
  peer.send(kOk);
  // Its connection serves the next request.
  peer.received.clear();
  loop.poll();
  const auto call = get(client, outcome, "/next");
  server.peer(0).send(kOk);
  finish(outcome);
  EXPECT_TRUE(outcome.complete);
}

TEST_F(HttpClientTest, DropsTheOldestOfTooManySentAside) {
  HttpClient client(loop);
  client.send_aside({.method = "GET", .url = server.url("/oldest")});
  server.peer(0);
  for (std::size_t i = 0; i < HttpClient::kMaxAside; ++i) {
    client.send_aside({.method = "GET", .url = server.url()});
  }
  EXPECT_TRUE(run_until(loop, [&] { return server.peers[0]->gone; }));
}

TEST_F(HttpClientTest, APausedReplyWaitsAndItsConnectionIsKeptAfterwards) {
  HttpClient client(loop, {.idle_timeout = 5ms});
  auto call = get(client, outcome);
  auto& peer = server.peer(0);
  peer.send("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nabc");
  ASSERT_TRUE(run_until(loop, [&] { return outcome.body() == "abc"; }));
  call.pause(true);
  peer.send("def");
  const auto later = std::chrono::steady_clock::now() + 20ms;
  run_until(loop, [&] { return std::chrono::steady_clock::now() > later; });
  EXPECT_EQ(outcome.body(), "abc");
  EXPECT_FALSE(outcome.error) << "it is silent because it is not read";
  call.pause(false);
  finish(outcome);
  EXPECT_EQ(outcome.body(), "abcdef");
  peer.received.clear();
  Outcome next;
  const auto again = get(client, next);
  server.peer(0).send(kOk);
  finish(next);
  EXPECT_EQ(next.body(), "ok");
}

}  // namespace
}  // namespace sluice
