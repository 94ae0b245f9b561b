#include "net/server/http_server.hpp"

#include <algorithm>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <thread>
#include <vector>

#include "net/http/compression.hpp"
#include "net/server/http_server_test_support.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

TEST_F(HttpServerTest, AnswersARequestWithOneReply) {
  Peer peer = connect();
  peer.send(post("/a?b=c", "hello"));
  ASSERT_TRUE(peer.expect("hello."));
  EXPECT_EQ(peer.taken,
            "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 16\r\n"
            "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\n\r\n"
            "you said: hello.");
  EXPECT_THAT(seen, ElementsAre("POST /a?b=c hello"));
  EXPECT_EQ(server->stats().requests_total, 1U);
  EXPECT_EQ(server->stats().responses[1], 1U);
}

TEST_F(HttpServerTest, TakesARequestInPiecesCutAnywhere) {
  for (const std::string& request :
       {post("/x", "some body"),
        std::string("POST /x HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n"
                    "4;note=1\r\nsome\r\n5\r\n body\r\n0\r\nTrailer: t\r\n\r\n")}) {
    Peer peer = connect();
    for (std::size_t cut = 1; cut < request.size(); ++cut) {
      peer.send(std::string_view(request).substr(0, cut));
      settle();
      peer.send(std::string_view(request).substr(cut));
      ASSERT_TRUE(peer.expect("some body.")) << "cut at " << cut;
      ASSERT_EQ(seen.back(), "POST /x some body");
    }
    EXPECT_EQ(seen.size(), request.size() - 1);
    seen.clear();
  }
}

TEST_F(HttpServerTest, TakesARequestByteByByte) {
  Peer peer = connect();
  const std::string request = post("/x", "some body") + get("/y");
  for (const char byte : request) {
    peer.send({&byte, 1});
    settle();
  }
  ASSERT_TRUE(peer.expect("some body."));
  ASSERT_TRUE(peer.expect("you said: ."));
  EXPECT_THAT(seen, ElementsAre("POST /x some body", "GET /y "));
}

TEST_F(HttpServerTest, AnswersPipelinedRequestsInOrder) {
  Peer peer = connect();
  peer.send(post("/1", "one") + "\r\n" + get("/2") + post("/3", "three"));
  ASSERT_TRUE(peer.expect("one."));
  ASSERT_TRUE(peer.expect("said: ."));
  ASSERT_TRUE(peer.expect("three."));
  EXPECT_THAT(seen, ElementsAre("POST /1 one", "GET /2 ", "POST /3 three"));
}

TEST_F(HttpServerTest, HandlesPipelinedRequestsOnceEachAlsoWhenRepliesComeLater) {
  hold();
  Peer peer = connect();
  // Busy enough that the connection reads into a buffer of its own.
  for (int i = 0; i < 8; ++i) {
    peer.send(get("/warm"));
    ASSERT_TRUE(until([&] { return !held.empty(); }));
    held.back()->reply(200, "text/plain", "warm");
    held.clear();
    ASSERT_TRUE(peer.expect("warm"));
  }
  seen.clear();
  peer.send(get("/1") + get("/2") + get("/3") + "GET /4 HT");
  for (std::size_t n = 1; n <= 3; ++n) {
    ASSERT_TRUE(until([&] { return seen.size() == n; }));
    settle();
    ASSERT_EQ(seen.size(), n) << "a request was handled before the one in front was answered";
    held.back()->reply(200, "text/plain", "reply " + std::to_string(n));
    ASSERT_TRUE(peer.expect("reply " + std::to_string(n)));
  }
  peer.send("TP/1.1\r\nHost: test\r\n\r\n");
  ASSERT_TRUE(until([&] { return seen.size() == 4; }));
  held.back()->reply(200, "text/plain", "reply 4");
  ASSERT_TRUE(peer.expect("reply 4"));
  EXPECT_THAT(seen, ElementsAre("/1", "/2", "/3", "/4"));
}

TEST_F(HttpServerTest, StopsReadingWhenTooMuchIsPipelined) {
  hold();
  Peer peer = connect();
  peer.send(get("/first"));
  ASSERT_TRUE(until([&] { return held.size() == 1; }));
  // The kernel's buffers and the server's fill up; then the peer can send no more.
  const std::string request = post("/next", std::string(1000, 'x'));
  std::size_t pushed = 0;
  for (int quiet = 0; quiet < 50;) {
    const ssize_t sent = peer.try_send(request);
    pushed += sent > 0 ? static_cast<std::size_t>(sent) : 0;
    quiet = sent > 0 ? 0 : quiet + 1;
    loop.poll();
    ASSERT_LT(pushed, 64U << 20U) << "the server takes everything";
  }
  EXPECT_LT(server->stats().bytes_in, 256U << 10U);
  EXPECT_EQ(seen.size(), 1U);
}

TEST_F(HttpServerTest, TakesBodiesLargerThanItsBuffers) {
  const std::string body(1'000'000, 'b');
  Peer peer = connect();
  for (int i = 0; i < 2; ++i) {
    peer.send(post("/big", body));
    ASSERT_TRUE(peer.expect(body + "."));
  }
  std::string chunked = "POST /big HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n";
  for (std::size_t at = 0; at < body.size(); at += 10'000) {
    chunked.append("2710\r\n").append(body, at, 10'000).append("\r\n");
  }
  peer.send(chunked + "0\r\n\r\n" + get("/after"));
  ASSERT_TRUE(peer.expect(body + "."));
  ASSERT_TRUE(peer.expect("said: ."));
}

TEST_F(HttpServerTest, ClosesWhenTheClientWantsIt) {
  struct {
    std::string request;
    bool is_kept;
    const char* says;
  } const cases[] = {
      {get("/"), true, nullptr},
      {get("/", "Connection: close\r\n"), false, "Connection: close\r\n"},
      {get("/", "Connection: keep-alive, Close\r\n"), false, "Connection: close\r\n"},
      {"GET / HTTP/1.0\r\n\r\n", false, "Connection: close\r\n"},
      {"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", true, "Connection: keep-alive\r\n"},
  };
  for (const auto& c : cases) {
    Peer peer = connect();
    peer.send(c.request);
    ASSERT_TRUE(peer.expect("said: .")) << c.request;
    if (c.says != nullptr) {
      EXPECT_THAT(peer.taken, HasSubstr(c.says)) << c.request;
    } else {
      EXPECT_THAT(peer.taken, Not(HasSubstr("Connection"))) << c.request;
    }
    if (!c.is_kept) {
      EXPECT_TRUE(peer.expect_end()) << c.request;
    }
    peer.send(get("/"));
    if (c.is_kept) {
      EXPECT_TRUE(peer.expect("said: .")) << c.request;
    }
  }
}

TEST_F(HttpServerTest, AnswersHeadWithoutABody) {
  Peer peer = connect();
  peer.send("HEAD / HTTP/1.1\r\nHost: test\r\n\r\n" + get("/"));
  ASSERT_TRUE(peer.expect("\r\n\r\n"));
  EXPECT_THAT(peer.taken, HasSubstr("Content-Length: 11"));
  ASSERT_TRUE(peer.expect("said: ."));
  EXPECT_THAT(peer.taken, StartsWith("HTTP/1.1 200"));
}

TEST_F(HttpServerTest, AnswersAPeerThatHasClosedItsSide) {
  Peer peer = connect();
  peer.send(post("/", "last words"));
  peer.end();
  ASSERT_TRUE(peer.expect("last words."));
  EXPECT_TRUE(peer.expect_end());
  EXPECT_TRUE(until([&] { return server->stats().connections == 0; }));
}

TEST_F(HttpServerTest, SendsTheWholeOfALongReplyToAPeerThatHasClosedItsSide) {
  const std::string body(3'000'000, 'r');
  handle = [&](const HttpRequest&, const HttpExchangePtr& exchange) {
    exchange->reply(200, "text/plain", body);
  };
  Peer peer = connect(65536);
  peer.send(get("/"));
  peer.end();
  settle();
  ASSERT_TRUE(peer.expect_end());
  EXPECT_GT(peer.received.size(), body.size());
}

TEST_F(HttpServerTest, RefusesWhatIsNotHttp) {
  struct {
    std::string request;
    const char* status;
  } const cases[] = {
      {"nonsense\r\n\r\n", "400"},
      {"GET /\r\n\r\n", "400"},
      {"GET / HTTP/2.0\r\nHost: a\r\n\r\n", "505"},
      {"GET / HTTP/1.1\r\n\r\n", "400"},  // no Host
      {"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", "400"},
      {"GET / HTTP/1.1\r\nHost: a\r\nX: 1\r\n folded\r\n\r\n", "400"},
      {"GET / HTTP/1.1\r\nHost: a\r\nX : 1\r\n\r\n", "400"},
      {"GET / HTTP/1.1\r\nHost: a\r\nX: \x01\r\n\r\n", "400"},
      {std::string("GET / HTTP/1.1\r\nHost: a\r\nX: \0\r\n\r\n", 34), "400"},
      {"GET / HTTP/1.1\nHost: a\n\n\r\n\r\n", "400"},
      {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n", "400"},
      {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1x\r\n\r\n", "400"},
      {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", "400"},
      {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999\r\n\r\n", "413"},
      {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4194305\r\n\r\n", "413"},
      {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
       "400"},
      {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n",
       "400"},
      {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", "501"},
      {"POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "400"},
      {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "400"},
      {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\naXX0\r\n\r\n", "400"},
      {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nffffffff\r\n", "413"},
      {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1;" +
           std::string(20'000, 'e'),
       "431"},
      {"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nT: " +
           std::string(20'000, 't'),
       "431"},
      {"GET /" + std::string(9000, 'u') + " HTTP/1.1\r\n", "414"},
      {"GET / HTTP/1.1\r\nHost: a\r\nX: " + std::string(17'000, 'h'), "431"},
      {"GET / HTTP/1.1\r\nHost: a\r\nExpect: magic\r\n\r\n", "417"},
      {post("/", "x", "Content-Encoding: br\r\n"), "415"},
      {post("/", "x", "Content-Encoding: gzip\r\n"), "400"},
  };
  for (const auto& c : cases) {
    Peer peer = connect();
    peer.send(c.request);
    ASSERT_TRUE(peer.expect("\r\n\r\n")) << c.request.substr(0, 200);
    EXPECT_THAT(peer.taken, StartsWith(std::string("HTTP/1.1 ") + c.status))
        << c.request.substr(0, 200);
    EXPECT_THAT(peer.taken, HasSubstr("Connection: close")) << c.request.substr(0, 200);
    EXPECT_TRUE(peer.expect_end());
  }
  EXPECT_TRUE(seen.empty());
}

TEST_F(HttpServerTest, ARefusalOfHeadHasNoBody) {
  const std::string cases[] = {
      "HEAD / HTTP/1.1\r\n\r\n",          // 400
      "HEAD / HTTP/2.0\r\n\r\n",          // 505
      "HEAD /" + std::string(9000, 'u'),  // 414
      "HEAD / HTTP/1.1\r\nHost: a\r\nExpect: magic\r\n\r\n",
  };
  for (const std::string& request : cases) {
    Peer peer = connect();
    peer.send(request.substr(0, 3));
    settle();
    peer.send(request.substr(3));
    ASSERT_TRUE(peer.expect("\r\n\r\n"));
    EXPECT_THAT(peer.taken, HasSubstr("Content-Length: "));
    EXPECT_TRUE(peer.expect_end());
    EXPECT_EQ(peer.received, "");
  }
  Peer slow = connect();
  slow.send("HEAD / HT");
  settle();
  pass(options.request_timeout);
  ASSERT_TRUE(slow.expect("\r\n\r\n"));
  EXPECT_THAT(slow.taken, StartsWith("HTTP/1.1 408"));
  EXPECT_TRUE(slow.expect_end());
  EXPECT_EQ(slow.received, "");
}

TEST_F(HttpServerTest, AHigherMinorVersionIsTakenForTheHighestKnown) {
  Peer peer = connect();
  peer.send("GET /a HTTP/1.2\r\nHost: a\r\n\r\nGET /b HTTP/1.9\r\nHost: a\r\n\r\n");
  ASSERT_TRUE(until([&] {
    peer.receive();
    return seen.size() == 2;
  }));
  EXPECT_THAT(seen, ElementsAre("GET /a ", "GET /b "));
  EXPECT_FALSE(peer.ended);
  Peer without_host = connect();
  without_host.send("GET / HTTP/1.2\r\n\r\n");
  ASSERT_TRUE(without_host.expect("\r\n\r\n"));
  EXPECT_THAT(without_host.taken, StartsWith("HTTP/1.1 400"));
  for (const char* version : {"HTTP/1.10", "HTTP/0.9", "HTTP/2.1", "HTTP/11"}) {
    Peer other = connect();
    other.send(std::string("GET / ") + version + "\r\nHost: a\r\n\r\n");
    ASSERT_TRUE(other.expect("\r\n\r\n"));
    EXPECT_THAT(other.taken, StartsWith("HTTP/1.1 505")) << version;
  }
}

TEST_F(HttpServerTest, SeveralLinesOfContentEncodingAreOneList) {
  std::string once;
  gzip("unpacked", once);
  std::string twice;
  gzip(once, twice);
  const std::string line = "Content-Encoding: gzip\r\n";
  Peer peer = connect();
  peer.send(post("/", twice, line + line));
  ASSERT_TRUE(peer.expect("said: unpacked."));
  peer.send(post("/", once, "Content-Encoding: identity\r\n" + line));
  ASSERT_TRUE(peer.expect("said: unpacked."));
  peer.send(post("/", once, line + "Content-Encoding: br\r\n"));
  ASSERT_TRUE(peer.expect("\r\n\r\n"));
  EXPECT_THAT(peer.taken, StartsWith("HTTP/1.1 415"));
}

TEST_F(HttpServerTest, RefusesAFloodOfHeaders) {
  std::string request = "GET / HTTP/1.1\r\nHost: a\r\n";
  for (int i = 0; i < 99; ++i) request.append("a: b\r\n");
  Peer peer = connect();
  peer.send(request + "\r\n");
  ASSERT_TRUE(peer.expect("said: ."));
  peer.send(request + "a: b\r\n\r\n");
  ASSERT_TRUE(peer.expect("\r\n\r\n"));
  EXPECT_THAT(peer.taken, StartsWith("HTTP/1.1 431"));
}

TEST_F(HttpServerTest, UndoesTheContentCodingWithinALimit) {
  options.max_body = 100'000;
  Peer peer = connect();
  std::string packed;
  gzip("unpacked", packed);
  peer.send(post("/", packed, "Content-Encoding: gzip\r\n"));
  ASSERT_TRUE(peer.expect("said: unpacked."));
  std::string bomb;
  gzip(std::string(10'000'000, ' '), bomb);
  ASSERT_LT(bomb.size(), options.max_body);
  peer.send(post("/", bomb, "Content-Encoding: gzip\r\n"));
  ASSERT_TRUE(peer.expect("\r\n\r\n"));
  EXPECT_THAT(peer.taken, StartsWith("HTTP/1.1 413"));
}

TEST_F(HttpServerTest, CompressesLargeRepliesForWhoAcceptsThem) {
  const std::string body(10'000, 'z');
  handle = [&](const HttpRequest& request, const HttpExchangePtr& exchange) {
    exchange->reply(200, "text/plain", request.path == "/large" ? body : "small");
  };
  Peer peer = connect();
  peer.send(get("/large", "Accept-Encoding: gzip, deflate\r\n"));
  ASSERT_TRUE(peer.expect("\r\n\r\n"));
  EXPECT_THAT(peer.taken, HasSubstr("Content-Encoding: gzip\r\n"));
  EXPECT_THAT(peer.taken, HasSubstr("Vary: Accept-Encoding\r\n"));
  const std::size_t at = peer.taken.find("Content-Length: ") + 16;
  const std::size_t length = std::stoul(peer.taken.substr(at));
  ASSERT_TRUE(until([&] {
    peer.receive();
    return peer.received.size() >= length;
  }));
  EXPECT_EQ(decode_content("gzip", peer.received, body.size()).value(), body);
  peer.received.clear();
  peer.send(get("/large") + get("/small", "Accept-Encoding: gzip\r\n"));
  ASSERT_TRUE(peer.expect(body));
  EXPECT_THAT(peer.taken, Not(HasSubstr("Content-Encoding")));
  ASSERT_TRUE(peer.expect("small"));
  EXPECT_THAT(peer.taken, Not(HasSubstr("Content-Encoding")));
}

TEST_F(HttpServerTest, DoesNotCompressWhatIsCodedOrAPartOrNoText) {
  const std::string body(10'000, 'z');
  handle = [&](const HttpRequest& request, const HttpExchangePtr& exchange) {
    if (request.path == "/coded") {
      exchange->reply(200, "text/plain", body, {{"content-encoding", "br"}});
    } else if (request.path == "/part") {
      exchange->reply(206, "text/plain", body, {{"Content-Range", "bytes 0-9999/20000"}});
    } else {
      exchange->reply(200, "image/png", body);
    }
  };
  Peer peer = connect();
  for (const std::string_view path : {"/coded", "/part", "/image"}) {
    peer.send(get(path, "Accept-Encoding: gzip\r\n"));
    ASSERT_TRUE(peer.expect(body)) << path;
    EXPECT_THAT(peer.taken, Not(HasSubstr("gzip"))) << path;
  }
}

TEST_F(HttpServerTest, SendsNoBodyWithAStatusThatHasNone) {
  handle = [&](const HttpRequest& request, const HttpExchangePtr& exchange) {
    exchange->reply_with(std::stoi(std::string(request.path.substr(1))), "text/plain", "body");
  };
  Peer peer = connect();
  for (const std::string_view path : {"/204", "/205", "/304"}) {
    peer.send(get(path) + get("/200"));
    ASSERT_TRUE(peer.expect("\r\n\r\nHTTP/1.1 200 OK\r\n")) << path;
    EXPECT_EQ(peer.taken.contains("Content-Length"), path == "/205");
    ASSERT_TRUE(peer.expect("body"));
  }
}

TEST_F(HttpServerTest, AsksForTheBodyOfWhoWaitsToBeAsked) {
  Peer peer = connect();
  peer.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n");
  ASSERT_TRUE(peer.expect("HTTP/1.1 100 Continue\r\n\r\n"));
  peer.send("bo");
  settle();
  peer.send("dy");
  ASSERT_TRUE(peer.expect("said: body."));
  EXPECT_THAT(peer.taken, StartsWith("HTTP/1.1 200"));
}

TEST_F(HttpServerTest, GivesUpOnASlowRequestButNotOnASlowAnswer) {
  Peer slow_head = connect();
  Peer slow_body = connect();
  Peer waiting = connect();
  slow_head.send("GET / HTTP/1.1\r\nHos");
  slow_body.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhalf");
  hold();
  waiting.send(get("/"));
  ASSERT_TRUE(until([&] { return held.size() == 1 && server->stats().connections == 3; }));
  pass(29s);
  // A byte now and then does not help.
  slow_head.send("t");
  slow_body.send("o");
  settle();
  EXPECT_EQ(server->stats().connections, 3U);
  pass(1s);
  ASSERT_TRUE(slow_head.expect("\r\n\r\n"));
  EXPECT_THAT(slow_head.taken, StartsWith("HTTP/1.1 408"));
  ASSERT_TRUE(slow_body.expect("\r\n\r\n"));
  EXPECT_THAT(slow_body.taken, StartsWith("HTTP/1.1 408"));
  pass(1h);
  held.back()->reply(200, "text/plain", "at last");
  EXPECT_TRUE(waiting.expect("at last"));
  EXPECT_EQ(server->stats().timeouts, 2U);
}

TEST_F(HttpServerTest, ClosesIdleConnections) {
  Peer peer = connect();
  Peer silent = connect();
  Peer empty_lines = connect();
  peer.send(get("/"));
  ASSERT_TRUE(peer.expect("said: ."));
  pass(74s);
  EXPECT_EQ(server->stats().connections, 3U);
  empty_lines.send("\r\n");
  settle();
  peer.send(get("/"));
  ASSERT_TRUE(peer.expect("said: ."));
  pass(2s);
  EXPECT_EQ(server->stats().connections, 1U);
  EXPECT_TRUE(silent.expect_end());
  EXPECT_TRUE(empty_lines.expect_end());
  pass(75s);
  EXPECT_TRUE(peer.expect_end());
  EXPECT_EQ(server->stats().connections, 0U);
}

TEST_F(HttpServerTest, DoesNotLingerForEver) {
  Peer peer = connect();
  peer.send(get("/", "Connection: close\r\n"));
  ASSERT_TRUE(peer.expect("said: ."));
  for (int i = 0; i < 4; ++i) {
    peer.send("more and more");
    pass(1s);
  }
  EXPECT_EQ(server->stats().connections, 0U);
}

class ConnectionLimitTest : public HttpServerTest {
 protected:
  static void expect_turned_away(Peer& peer) {
    peer.send(get("/"));
    ASSERT_TRUE(peer.expect("try again later.\n"));
    EXPECT_THAT(peer.taken, StartsWith("HTTP/1.1 503"));
    EXPECT_TRUE(peer.expect_end());
  }
};

TEST_F(ConnectionLimitTest, TurnsAwayWhoComesBeyondTheLimit) {
  options.max_connections = 2;
  Peer first = connect();
  Peer second = connect();
  Peer third = connect();
  expect_turned_away(third);
  third.close();
  EXPECT_TRUE(until([&] { return server->stats().connections == 2; }));
  EXPECT_EQ(server->stats().connections_rejected, 1U);
  first.close();
  ASSERT_TRUE(until([&] { return server->stats().connections == 1; }));
  Peer fourth = connect();
  fourth.send(get("/"));
  EXPECT_TRUE(fourth.expect("said: ."));
}

TEST_F(ConnectionLimitTest, OneAddressHasAShareOfTheConnections) {
  options.max_connections = 8;
  options.counts_loopback = true;
  Peer first = connect();
  Peer second = connect();
  Peer third = connect();
  expect_turned_away(third);
  third.close();
  first.close();
  ASSERT_TRUE(until([&] { return server->stats().connections == 1; }));
  Peer fourth = connect();
  fourth.send(get("/"));
  EXPECT_TRUE(fourth.expect("said: ."));
}

TEST_F(ConnectionLimitTest, OneAddressLeavesAsManyConnectionsAsItHas) {
  options.max_connections = 5;
  options.max_connections_per_client = 5;
  options.counts_loopback = true;
  std::vector<Peer> peers;
  for (int i = 0; i < 3; ++i) peers.push_back(connect());
  Peer fourth = connect();
  expect_turned_away(fourth);
}

TEST_F(ConnectionLimitTest, WhoIsTurnedAwayTakesNoConnection) {
  options.max_connections = 8;
  options.max_connections_per_client = 1;
  options.counts_loopback = true;
  Peer first = connect();
  std::vector<Peer> refused;  // they do not close
  for (int i = 0; i < 16; ++i) refused.push_back(connect());
  for (Peer& each : refused) EXPECT_TRUE(each.expect("try again later.\n"));
  Peer beyond = connect();
  EXPECT_TRUE(beyond.expect_end());
  EXPECT_EQ(beyond.received, "") << "one client does not take all answers of 503";
  first.close();
  ASSERT_TRUE(until([&] { return server->stats().connections == 16; }));
  Peer next = connect();
  next.send(get("/"));
  EXPECT_TRUE(next.expect("said: ."));
}

TEST_F(HttpServerTest, SaysWhyItCannotListen) {
  start();
  HttpServer other({&loop}, {this});
  const Result<std::uint16_t> taken = other.listen({"127.0.0.1", port});
  ASSERT_FALSE(taken);
  EXPECT_THAT(taken.error().message, HasSubstr("port is taken"));
  EXPECT_THAT(taken.error().message, HasSubstr(std::to_string(port)));
  const Result<std::uint16_t> nowhere = other.listen({"203.0.113.1", 0});
  ASSERT_FALSE(nowhere);
  EXPECT_THAT(nowhere.error().message, HasSubstr("203.0.113.1"));
}

TEST_F(HttpServerTest, FinishesWhatIsUnderWayWhenItShutsDown) {
  hold();
  Peer busy = connect();
  Peer idle = connect();
  busy.send(get("/"));
  ASSERT_TRUE(until([&] { return held.size() == 1 && server->stats().connections == 2; }));
  bool done = false;
  server->shutdown({loop.clock().now() + 1h}, [&] { done = true; });
  EXPECT_TRUE(idle.expect_end());
  idle.close();
  EXPECT_FALSE(done);
  held.front()->reply(200, "text/plain", "still answered");
  ASSERT_TRUE(busy.expect("still answered"));
  EXPECT_TRUE(busy.expect_end());
  busy.close();
  EXPECT_TRUE(until([&] { return done; }));
}

TEST_F(HttpServerTest, RepliesMayEndTheirConnections) {
  hold();
  Peer peer = connect();
  peer.send(get("/"));
  ASSERT_TRUE(until([&] { return held.size() == 1; }));
  held.front()->reply(200, "text/plain", "stays");
  ASSERT_TRUE(peer.expect("stays"));
  // Requests that arrived before may be answered after.
  Peer waiting = connect();
  waiting.send(get("/"));
  ASSERT_TRUE(until([&] { return held.size() == 2; }));
  Peer reading = connect();
  reading.send(get("/"));
  ASSERT_TRUE(until([&] { return held.size() == 3; }));
  held.back()->start(200, "text/plain");
  held.back()->write(std::string_view("begun"));
  ASSERT_TRUE(reading.expect("begun"));
  server->end_connections_with_replies();
  settle();
  peer.send(get("/"));
  ASSERT_TRUE(until([&] { return held.size() == 4; }));
  held.back()->reply(200, "text/plain", "goes");
  ASSERT_TRUE(peer.expect("goes"));
  EXPECT_THAT(peer.taken, HasSubstr("Connection: close\r\n"));
  EXPECT_TRUE(peer.expect_end());
  held[1]->reply(200, "text/plain", "goes too");
  ASSERT_TRUE(waiting.expect("goes too"));
  EXPECT_THAT(waiting.taken, HasSubstr("Connection: close\r\n"));
  EXPECT_TRUE(waiting.expect_end());
  held[2]->finish();
  EXPECT_TRUE(reading.expect_end());
}

TEST_F(HttpServerTest, DropsWhatIsLeftAtTheDeadlineOfAShutdown) {
  hold();
  Peer busy = connect();
  busy.send(get("/"));
  ASSERT_TRUE(until([&] { return held.size() == 1; }));
  bool closed = false;
  bool done = false;
  held.front()->on_close([&] { closed = true; });
  server->shutdown({loop.clock().now() + 20ms}, [&] { done = true; });
  EXPECT_TRUE(until([&] { return done; }));
  EXPECT_TRUE(closed);
}

}  // namespace
}  // namespace sluice
