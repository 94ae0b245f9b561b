#include "net/http_server.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <malloc.h>
#include <string>
#include <thread>
#include <vector>

#include "net/compression.hpp"
#include "net/descriptor.hpp"
#include "net/server_test_support.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class HttpServerTest : public ServerTest {
 protected:
  void SetUp() override {
    handle = [this](const HttpRequest& request, const HttpExchangePtr& exchange) {
      seen.push_back(std::string(request.method_name) + " " + std::string(request.target) + " " +
                     std::string(request.body));
      exchange->reply(200, "text/plain", "you said: " + std::string(request.body) + ".");
    };
  }
  /// Keeps the exchanges unanswered.
  void hold() {
    handle = [this](const HttpRequest& request, HttpExchangePtr exchange) {
      seen.push_back(std::string(request.target));
      held.push_back(std::move(exchange));
    };
  }

  std::vector<std::string> seen;
  std::vector<HttpExchangePtr> held;
};

TEST_F(HttpServerTest, AnswersARequestWithOneReply) {
  Peer peer = connect();
  peer.send(post("/a?b=c", "hello"));
  ASSERT_TRUE(peer.expect("hello."));
  EXPECT_EQ(peer.taken,
            "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 16\r\n\r\n"
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
  peer.send(get("/"));
  ASSERT_TRUE(peer.expect("said: ."));
  pass(74s);
  EXPECT_EQ(server->stats().connections, 2U);
  peer.send(get("/"));
  ASSERT_TRUE(peer.expect("said: ."));
  pass(2s);
  EXPECT_EQ(server->stats().connections, 1U);
  EXPECT_TRUE(silent.expect_end());
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

TEST_F(HttpServerTest, TellsWhenThePeerOfAPendingReplyHasGone) {
  hold();
  for (const bool reset : {false, true}) {
    for (const bool idle : {false, true}) {
      for (const bool streaming : {false, true}) {
        Peer peer = connect();
        peer.send(get("/"));
        ASSERT_TRUE(until([&] { return held.size() == 1; }));
        const HttpExchangePtr exchange = std::exchange(held, {}).front();
        if (streaming) exchange->start(200, "text/event-stream");
        int closed = 0;
        exchange->on_close([&] { ++closed; });
        if (idle) pass(10s);
        reset ? peer.reset() : peer.close();
        EXPECT_TRUE(until([&] { return closed == 1; }));
        EXPECT_FALSE(exchange->is_open());
        EXPECT_TRUE(exchange->write("nobody is there"));
        exchange->finish();
        exchange->reply(200, "text/plain", "nobody");
        EXPECT_EQ(closed, 1);
        EXPECT_EQ(server->stats().connections, 0U);
        EXPECT_EQ(server->stats().streaming_replies, 0U);
      }
    }
  }
}

TEST_F(HttpServerTest, CallsNobodyBackWhenTheReplyWasFinished) {
  hold();
  Peer peer = connect();
  peer.send(get("/"));
  ASSERT_TRUE(until([&] { return held.size() == 1; }));
  bool closed = false;
  held.front()->on_close([&] { closed = true; });
  held.front()->reply(200, "text/plain", "done");
  ASSERT_TRUE(peer.expect("done"));
  peer.close();
  ASSERT_TRUE(until([&] { return server->stats().connections == 0; }));
  EXPECT_FALSE(closed);
}

TEST_F(HttpServerTest, StreamsAReplyInChunks) {
  hold();
  Peer peer = connect();
  peer.send(get("/"));
  ASSERT_TRUE(until([&] { return held.size() == 1; }));
  HttpExchange& exchange = *held.front();
  exchange.start(200, "text/event-stream", {{"Cache-Control", "no-store"}});
  exchange.write("first");
  exchange.write(ChunkBlock("second block"));
  exchange.write("");
  EXPECT_EQ(server->stats().bytes_out, 0U) << "writes of a turn are collected";
  ASSERT_TRUE(peer.expect("second block\r\n"));
  EXPECT_EQ(peer.taken,
            "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
            "Transfer-Encoding: chunked\r\nCache-Control: no-store\r\n\r\n"
            "5\r\nfirst\r\nc\r\nsecond block\r\n");
  EXPECT_EQ(server->stats().streaming_replies, 1U);
  exchange.write("now");
  exchange.flush();
  peer.receive();
  EXPECT_EQ(std::exchange(peer.received, {}), "3\r\nnow\r\n");
  exchange.finish();
  EXPECT_FALSE(exchange.is_open());
  ASSERT_TRUE(peer.expect("0\r\n\r\n"));
  EXPECT_EQ(server->stats().streaming_replies, 0U);
  peer.send(get("/again"));
  EXPECT_TRUE(until([&] { return held.size() == 2; }));
}

/// Keeps what it is given.
struct RecordingBody final : BodyHandler {
  bool on_body(std::string_view bytes) override {
    text.append(bytes);
    return room;
  }
  void on_body_end() override { ended = true; }
  std::string text;
  bool room = true;
  bool ended = false;
};

TEST_F(HttpServerTest, HandsABodyOnWhileItArrives) {
  for (const bool chunked : {false, true}) {
    const auto body = std::make_shared<RecordingBody>();
    HttpExchangePtr held;
    streams = [](const HttpRequest& head) { return head.path == "/stream"; };
    handle = [&](const HttpRequest& request, HttpExchangePtr exchange) {
      EXPECT_TRUE(request.body_follows);
      exchange->read_body(body);
      held = std::move(exchange);
    };
    const auto piece = [&](std::string_view text) {
      return chunked ? std::to_string(text.size()) + "\r\n" + std::string(text) + "\r\n"
                     : std::string(text);
    };
    Peer peer = connect();
    peer.send("POST /stream HTTP/1.1\r\nHost: test\r\nExpect: 100-continue\r\n" +
              std::string(chunked ? "Transfer-Encoding: chunked" : "Content-Length: 9") +
              "\r\n\r\n");
    ASSERT_TRUE(peer.expect("100 Continue\r\n\r\n"));
    peer.send(piece("one"));
    ASSERT_TRUE(until([&] { return body->text == "one"; }));
    // The reply need not wait for the body.
    held->start(200, "text/plain");
    held->write(std::string_view("early"));
    ASSERT_TRUE(peer.expect("early"));
    EXPECT_NE(peer.taken.find("Connection: close"), std::string::npos);
    body->room = false;
    peer.send(piece("two"));
    ASSERT_TRUE(until([&] { return body->text == "onetwo"; }));
    peer.send(piece("sec"));
    settle();
    EXPECT_EQ(body->text, "onetwo");
    body->room = true;
    held->resume_body();
    if (chunked) peer.send("0\r\n\r\n");
    ASSERT_TRUE(until([&] { return body->ended; }));
    EXPECT_EQ(body->text, "onetwosec");
    EXPECT_EQ(body.use_count(), 1);
    held->finish();
    EXPECT_TRUE(peer.expect_end());
  }
}

TEST_F(HttpServerTest, ABodyThatIsHandedOnEndsWithItsReplyOrItsConnection) {
  const auto body = std::make_shared<RecordingBody>();
  HttpExchangePtr held;
  streams = [](const HttpRequest&) { return true; };
  handle = [&](const HttpRequest&, HttpExchangePtr exchange) {
    exchange->read_body(body);
    held = std::move(exchange);
  };
  const std::string head = "POST / HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n";
  {
    Peer peer = connect();
    peer.send(head);
    ASSERT_TRUE(until([&] { return held != nullptr; }));
    held->reply(403, {}, {});
    ASSERT_TRUE(peer.expect("HTTP/1.1 403 "));
    peer.send("1\r\nx\r\n");
    settle();
    EXPECT_EQ(body->text, "");
    EXPECT_EQ(body.use_count(), 1);
  }
  for (const std::string_view end : {"", "x\r\n", "idle"}) {
    held = nullptr;
    Peer peer = connect();
    peer.send(head);
    ASSERT_TRUE(until([&] { return held != nullptr; }));
    if (end == "idle") {
      // Of a body that the handler takes, something has to come.
      pass(options.idle_timeout);
    } else if (end.empty()) {
      peer.close();
    } else {
      peer.send(end);
    }
    EXPECT_TRUE(until([&] { return !held->is_open(); })) << end;
    EXPECT_EQ(body.use_count(), 1);
    EXPECT_FALSE(body->ended);
  }
}

TEST_F(HttpServerTest, KeepsASilentEventStreamOpenWithComments) {
  options.event_keep_alive = std::chrono::seconds(15);
  options.stall_timeout = std::chrono::hours(1);
  std::vector<HttpExchangePtr> held;
  handle = [&](const HttpRequest& request, HttpExchangePtr exchange) {
    exchange->start(200, request.path == "/events" ? "text/event-stream" : "text/plain");
    held.push_back(std::move(exchange));
  };
  Peer events = connect();
  events.send(get("/events"));
  Peer text = connect();
  text.send(get("/text"));
  ASSERT_TRUE(events.expect("\r\n\r\n"));
  ASSERT_TRUE(text.expect("\r\n\r\n"));
  pass(std::chrono::seconds(14));
  held[0]->write(std::string_view("data: 1\n\n"));
  ASSERT_TRUE(events.expect("9\r\ndata: 1\n\n\r\n"));
  // Only silence counts.
  pass(std::chrono::seconds(14));
  events.receive();
  EXPECT_EQ(events.received, "");
  for (int i = 0; i < 3; ++i) {
    pass(std::chrono::seconds(15));
    ASSERT_TRUE(events.expect("\r\n: keep-alive\n\n\r\n"));
  }
  text.receive();
  EXPECT_EQ(text.received, "");
  // A peer that takes nothing is sent no more of them.
  events.reset();
  pass(std::chrono::seconds(15));
  pass(std::chrono::seconds(15));
  EXPECT_TRUE(until([&] { return !held[0]->is_open(); }));
}

TEST_F(HttpServerTest, StreamsToOldClientsUntilTheConnectionCloses) {
  hold();
  Peer peer = connect();
  peer.send("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  ASSERT_TRUE(until([&] { return held.size() == 1; }));
  held.front()->start(200, "text/event-stream");
  held.front()->write("plain ");
  held.front()->write(ChunkBlock("bytes"));
  held.front()->finish();
  ASSERT_TRUE(peer.expect_end());
  EXPECT_THAT(peer.received, HasSubstr("Connection: close\r\n"));
  EXPECT_TRUE(peer.received.ends_with("\r\n\r\nplain bytes")) << peer.received;
}

TEST_F(HttpServerTest, BreaksAnAbortedReplyOff) {
  hold();
  Peer peer = connect();
  peer.send(get("/"));
  ASSERT_TRUE(until([&] { return held.size() == 1; }));
  bool closed = false;
  held.front()->on_close([&] { closed = true; });
  held.front()->start(200, "text/plain");
  held.front()->write("half");
  held.front()->flush();
  held.front()->abort();
  ASSERT_TRUE(peer.expect_end());
  EXPECT_FALSE(peer.received.ends_with("0\r\n\r\n"));
  EXPECT_FALSE(closed);
}

TEST_F(HttpServerTest, AnswersForWhoForgetsTo) {
  hold();
  Peer peer = connect();
  peer.send(get("/"));
  ASSERT_TRUE(until([&] { return held.size() == 1; }));
  held.clear();
  ASSERT_TRUE(peer.expect("\r\n\r\n"));
  EXPECT_THAT(peer.taken, StartsWith("HTTP/1.1 500"));
  peer.send(get("/"));
  ASSERT_TRUE(until([&] { return held.size() == 1; }));
  std::thread([&] { held.clear(); }).join();
  ASSERT_TRUE(peer.expect("HTTP/1.1 500"));
  peer.send(get("/"));
  ASSERT_TRUE(until([&] { return held.size() == 1; }));
  held.front()->start(200, "text/plain");
  std::thread([&] { held.clear(); }).join();
  EXPECT_TRUE(peer.expect_end());
}

TEST_F(HttpServerTest, LetsAForgottenExchangeOutliveItsConnection) {
  hold();
  Peer peer = connect();
  peer.send(get("/"));
  ASSERT_TRUE(until([&] { return held.size() == 1; }));
  // The last handle goes on another thread, and the peer before the loop has heard of it.
  std::thread([&] { held.clear(); }).join();
  peer.reset();
  EXPECT_TRUE(until([&] { return server->stats().connections == 0; }));
}

TEST_F(HttpServerTest, TellsAWriterToWaitAndWhenToGoOn) {
  hold();
  Peer peer = connect(65536);
  peer.send(get("/"));
  ASSERT_TRUE(until([&] { return held.size() == 1; }));
  HttpExchange& exchange = *held.front();
  exchange.start(200, "text/plain");
  int drained = 0;
  exchange.on_drain([&] { ++drained; });
  const ChunkBlock block(std::string(10'000, 'b'));
  std::size_t written = 0;
  for (int round = 1; round <= 3; ++round) {
    while (exchange.write(block)) {
      written += block.body().size();
      exchange.flush();
      ASSERT_LT(written, 100U << 20U);
    }
    written += block.body().size();
    EXPECT_GT(exchange.queued_bytes(), options.output.high_water);
    settle();
    EXPECT_EQ(drained, round - 1);
    ASSERT_TRUE(until([&] {
      peer.receive();
      return drained == round;
    }));
    EXPECT_LE(exchange.queued_bytes(), options.output.low_water);
  }
  exchange.finish();
  ASSERT_TRUE(peer.expect("\r\n0\r\n\r\n"));
  EXPECT_EQ(static_cast<std::size_t>(std::ranges::count(peer.taken, 'b')), written);
}

TEST_F(HttpServerTest, TellsWhenToGoOnAlsoIfTheSocketTookEverything) {
  hold();
  options.output.high_water = 1000;
  options.output.low_water = 100;
  Peer peer = connect();
  peer.send(get("/"));
  ASSERT_TRUE(until([&] { return held.size() == 1; }));
  HttpExchange& exchange = *held.front();
  exchange.start(200, "text/plain");
  int drained = 0;
  exchange.on_drain([&] { ++drained; });
  EXPECT_FALSE(exchange.write(std::string(2000, 'x')));
  EXPECT_TRUE(until([&] { return drained == 1; }));
  EXPECT_FALSE(exchange.write(std::string(2000, 'x')));
  exchange.flush();
  EXPECT_EQ(drained, 1) << "not from within a call";
  EXPECT_TRUE(until([&] { return drained == 2; }));
}

TEST_F(HttpServerTest, DropsAPeerThatDoesNotRead) {
  hold();
  Peer peer = connect(65536);
  peer.send(get("/"));
  ASSERT_TRUE(until([&] { return held.size() == 1; }));
  HttpExchange& exchange = *held.front();
  exchange.start(200, "text/plain");
  bool closed = false;
  exchange.on_close([&] { closed = true; });
  while (exchange.write(std::string(10'000, 'x'))) exchange.flush();
  pass(29s);
  EXPECT_EQ(exchange.stalled_for(), 29s);
  EXPECT_FALSE(closed);
  pass(1s);
  EXPECT_TRUE(closed);
  EXPECT_EQ(server->stats().stalled, 1U);
  EXPECT_EQ(server->stats().connections, 0U);
}

TEST_F(HttpServerTest, AnAnswerThatIsReadSlowlyIsNotIdle) {
  handle = [](const HttpRequest&, const HttpExchangePtr& exchange) {
    exchange->reply(200, "text/plain", std::string(8'000'000, 'a') + "end");
  };
  Peer peer = connect(65536);
  peer.send(get("/"));
  for (int i = 0; i < 12; ++i) {
    pass(10s);
    for (int piece = 0; piece < 4; ++piece) peer.receive();
    settle();
  }
  EXPECT_TRUE(until([&] {
    peer.receive();
    return peer.received.ends_with("aend");
  }));
  pass(options.idle_timeout - 1ms);
  EXPECT_FALSE(peer.ended);
}

TEST_F(HttpServerTest, DropsAPeerForWhomTooMuchIsQueued) {
  hold();
  options.output.max_queued = 1U << 20U;
  Peer peer = connect(65536);
  peer.send(get("/"));
  ASSERT_TRUE(until([&] { return held.size() == 1; }));
  bool closed = false;
  held.front()->on_close([&] { closed = true; });
  held.front()->start(200, "text/plain");
  for (int i = 0; i < 1000; ++i) {
    held.front()->write(std::string(10'000, 'x'));
    EXPECT_LT(held.front()->queued_bytes(), options.output.max_queued + 11'000);
  }
  EXPECT_FALSE(closed) << "not within a call to write()";
  settle();
  EXPECT_TRUE(closed);
  EXPECT_EQ(server->stats().stalled, 1U);
  EXPECT_EQ(server->stats().streaming_replies, 0U);
}

TEST_F(HttpServerTest, NothingIsDestroyedWithinACallThatSends) {
  // The handler sends more than may wait, through what goes with the connection.
  struct Kept {
    HttpExchangePtr exchange;
    bool* destroyed;
    ~Kept() { *destroyed = true; }
  };
  options.output.max_queued = 1U << 20U;
  bool destroyed = false;
  bool within = false;
  handle = [&](const HttpRequest&, HttpExchangePtr exchange) {
    auto kept = std::make_unique<Kept>(std::move(exchange), &destroyed);
    Kept& own = *kept;
    own.exchange->on_close([kept = std::move(kept)] {});
    own.exchange->start(200, "text/event-stream");
    for (int i = 0; i < 8; ++i) {
      own.exchange->write(std::string(1U << 20U, 'x'));
      own.exchange->flush();
      within = within || destroyed;
    }
    own.exchange->abort();
    within = within || destroyed;
  };
  Peer peer = connect(65536);
  peer.send(get("/"));
  ASSERT_TRUE(peer.expect_end());
  settle();
  EXPECT_FALSE(within);
  EXPECT_TRUE(destroyed);
  EXPECT_EQ(server->stats().connections, 0U);
  EXPECT_EQ(server->stats().streaming_replies, 0U);
}

TEST_F(HttpServerTest, SendsOneMessageLongerThanTheQueueToAPeerThatReads) {
  hold();
  options.output.max_queued = 1U << 20U;
  Peer peer = connect(65536);
  peer.send(get("/"));
  ASSERT_TRUE(until([&] { return held.size() == 1; }));
  held.front()->start(200, "text/plain");
  EXPECT_FALSE(held.front()->write(std::string(10'000'000, 'x')));
  held.front()->finish();
  ASSERT_TRUE(peer.expect("\r\n0\r\n\r\n"));
  EXPECT_EQ(std::ranges::count(peer.taken, 'x'), 10'000'000 + 1);  // and one in "text"
}

TEST_F(HttpServerTest, ReadsNoFurtherRequestsWhileAnswersAreUnread) {
  const std::string answer(10'000, 'a');
  std::size_t asked = 0;
  handle = [&](const HttpRequest& request, const HttpExchangePtr& exchange) {
    ++asked;
    exchange->reply(200, "text/plain", std::string(request.path) + " " + answer + "\n");
  };
  Peer peer = connect(65536);
  constexpr std::size_t kRequests = 2000;
  std::string requests;
  for (std::size_t i = 0; i < kRequests; ++i) requests += get("/" + std::to_string(i));
  std::string_view rest = requests;
  for (int idle = 0; idle < 100; ++idle) {
    const ssize_t sent = rest.empty() ? 0 : peer.try_send(rest);
    if (sent > 0) {
      rest.remove_prefix(static_cast<std::size_t>(sent));
      idle = 0;
    }
    settle();
  }
  pass(1ms);
  EXPECT_LT(asked, kRequests / 2);
  EXPECT_LE(server->stats().queued_bytes, options.output.high_water + 2 * answer.size());
  for (std::size_t i = 0; i < kRequests; ++i) {
    while (peer.received.find('\n' + std::string()) == std::string::npos && peer.receive() > 0) {
    }
    if (!rest.empty()) {
      const ssize_t sent = peer.try_send(rest);
      if (sent > 0) rest.remove_prefix(static_cast<std::size_t>(sent));
    }
    ASSERT_TRUE(peer.expect("\r\n\r\n/" + std::to_string(i) + " " + answer + "\n"));
  }
  EXPECT_EQ(asked, kRequests);
}

TEST_F(HttpServerTest, AnswersWhatCameWholeBeforeThePeerClosedItsSide) {
  const std::string answer(300'000, 'a');
  std::size_t asked = 0;
  handle = [&](const HttpRequest&, const HttpExchangePtr& exchange) {
    ++asked;
    exchange->reply(200, "text/plain", answer);
  };
  Peer peer = connect(65536);
  std::string requests;
  for (int i = 0; i < 20; ++i) requests += get("/");
  peer.send(requests + "GET /part");
  settle();
  peer.end();
  settle();
  ASSERT_TRUE(peer.expect_end());
  EXPECT_EQ(asked, 20U);
  EXPECT_EQ(static_cast<std::size_t>(std::ranges::count(peer.received, 'a')) / 300'000, 20U);
}

TEST_F(HttpServerTest, GivesUpWhoLeavesMoreUnreadThanThereIsMemory) {
  MemoryBudget memory(std::size_t{1} << 20U);
  options.memory = &memory;
  handle = [](const HttpRequest&, const HttpExchangePtr& exchange) {
    exchange->reply(200, "text/plain", std::string(8'000'000, 'a'));
  };
  Peer deaf = connect(65536);
  deaf.send(get("/"));
  ASSERT_TRUE(until([&] { return server->stats().stalled == 1; }));
  settle();
  EXPECT_EQ(server->stats().connections, 0U);
  EXPECT_EQ(memory.used(), 0U);
}

TEST_F(HttpServerTest, AChunkedBodyDrawsOnTheMemoryToo) {
  MemoryBudget memory(std::size_t{1} << 20U);
  options.memory = &memory;
  Peer peer = connect();
  peer.send("POST / HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n3d0900\r\n" +
            std::string(3'000'000, 'b'));
  EXPECT_TRUE(peer.expect("HTTP/1.1 503 "));
  peer.close();
  ASSERT_TRUE(until([&] { return server->stats().connections == 0; }));
  EXPECT_EQ(memory.used(), 0U);
}

TEST_F(HttpServerTest, HoldsNoMoreThanItsMemory) {
  MemoryBudget memory(std::size_t{1} << 20U);
  options.memory = &memory;
  std::vector<Peer> peers;
  for (int i = 0; i < 40; ++i) {
    peers.push_back(connect());
    peers.back().send("POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 200000\r\n\r\n" +
                      std::string(100'000, 'b'));
    settle();
    ASSERT_LE(memory.used(), memory.limit());
  }
  std::size_t refused = 0;
  for (Peer& peer : peers) {
    peer.receive();
    if (peer.received.starts_with("HTTP/1.1 503 Service Unavailable\r\n")) ++refused;
  }
  EXPECT_GT(refused, 0U);
  EXPECT_LT(refused, peers.size());
  // A small request is served all the same.
  Peer modest = connect();
  modest.send(post("/", "hello"));
  EXPECT_TRUE(modest.expect("you said: hello."));
  // And so is a large one when others have gone.
  while (peers.size() > 1) peers.pop_back();
  ASSERT_TRUE(until([&] { return server->stats().connections == 2; }));
  peers.front().send(std::string(100'000, 'b'));
  EXPECT_TRUE(peers.front().expect("b."));
  peers.clear();
  modest.close();
  ASSERT_TRUE(until([&] { return server->stats().connections == 0; }));
  EXPECT_EQ(memory.used(), 0U);
}

TEST_F(HttpServerTest, AHeadAloneReservesNothing) {
  MemoryBudget memory(std::size_t{1} << 20U);
  options.memory = &memory;
  Peer peer = connect();
  peer.send("POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 4000000\r\n\r\nb");
  settle();
  EXPECT_EQ(memory.used(), 0U);
}

TEST_F(HttpServerTest, CountsStreamingRepliesAlsoWhenTheirPeerIsResetAtTheEnd) {
  hold();
  for (int i = 0; i < 20; ++i) {
    Peer peer = connect();
    peer.send(get("/"));
    ASSERT_TRUE(until([&] { return held.size() == 1; }));
    held.front()->start(200, "text/plain");
    held.front()->flush();
    EXPECT_TRUE(peer.expect("\r\n\r\n"));
    peer.reset();
    held.front()->write(std::string(1000, 'x'));
    held.front()->finish();
    held.clear();
    EXPECT_EQ(server->stats().streaming_replies, 0U);
  }
  ASSERT_TRUE(until([&] { return server->stats().connections == 0; }));
  EXPECT_EQ(server->stats().streaming_replies, 0U);
}

TEST_F(HttpServerTest, TurnsAwayWhoComesBeyondTheLimit) {
  options.max_connections = 2;
  Peer first = connect();
  Peer second = connect();
  Peer third = connect();
  third.send(get("/"));
  ASSERT_TRUE(third.expect("try it again.\n"));
  EXPECT_THAT(third.taken, StartsWith("HTTP/1.1 503"));
  EXPECT_TRUE(third.expect_end());
  third.close();
  EXPECT_TRUE(until([&] { return server->stats().connections == 2; }));
  EXPECT_EQ(server->stats().connections_rejected, 1U);
  first.close();
  ASSERT_TRUE(until([&] { return server->stats().connections == 1; }));
  Peer fourth = connect();
  fourth.send(get("/"));
  EXPECT_TRUE(fourth.expect("said: ."));
}

TEST_F(HttpServerTest, SaysWhyItCannotListen) {
  start();
  HttpServer other({&loop}, {this});
  const Result<std::uint16_t> taken = other.listen("127.0.0.1", port);
  ASSERT_FALSE(taken);
  EXPECT_THAT(taken.error().message, HasSubstr("port is taken"));
  EXPECT_THAT(taken.error().message, HasSubstr(std::to_string(port)));
  const Result<std::uint16_t> nowhere = other.listen("203.0.113.1", 0);
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
  server->shutdown(loop.clock().now() + 1h, [&] { done = true; });
  EXPECT_TRUE(idle.expect_end());
  idle.close();
  EXPECT_FALSE(done);
  held.front()->reply(200, "text/plain", "still answered");
  ASSERT_TRUE(busy.expect("still answered"));
  EXPECT_TRUE(busy.expect_end());
  busy.close();
  EXPECT_TRUE(until([&] { return done; }));
}

TEST_F(HttpServerTest, DropsWhatIsLeftAtTheDeadlineOfAShutdown) {
  hold();
  Peer busy = connect();
  busy.send(get("/"));
  ASSERT_TRUE(until([&] { return held.size() == 1; }));
  bool closed = false;
  bool done = false;
  held.front()->on_close([&] { closed = true; });
  server->shutdown(loop.clock().now() + 20ms, [&] { done = true; });
  EXPECT_TRUE(until([&] { return done; }));
  EXPECT_TRUE(closed);
}

TEST_F(HttpServerTest, KeepsLittleMemoryForAnIdleStream) {
  hold();
  start();
  static constexpr std::size_t kStreams = 300;
  std::vector<Peer> peers;
  peers.reserve(kStreams);
  const auto open = [&](std::size_t count) {
    while (peers.size() < count) {
      peers.push_back(connect());
      peers.back().send(get("/"));
    }
    ASSERT_TRUE(until([&] { return held.size() == count; }));
    for (const HttpExchangePtr& exchange : held) {
      exchange->start(200, "text/event-stream");
      exchange->write("data: first\n\n");
    }
    pass(2s);
  };
  open(50);
  for (Peer& peer : peers) ASSERT_TRUE(peer.expect("data: first\n\n"));
  held.reserve(kStreams);
  const std::size_t before = mallinfo2().uordblks;
  open(kStreams);
  const std::size_t after = mallinfo2().uordblks;
  EXPECT_EQ(server->stats().parked, kStreams);
  // A sanitizer's allocator says nothing here.
  EXPECT_LT((after - before) / (kStreams - 50), 1536U);
}

TEST_F(HttpServerTest, HoldsMemoryOnlyForHalfARequest) {
  Peer peer = connect();
  peer.send(get("/"));
  ASSERT_TRUE(peer.expect("said: ."));
  EXPECT_EQ(server->stats().parked, 1U);
  peer.send("GET / HTTP");
  ASSERT_TRUE(until([&] { return server->stats().parked == 0; }));
  peer.send("/1.1\r\nHost: test\r\n\r\n");
  ASSERT_TRUE(peer.expect("said: ."));
  EXPECT_EQ(server->stats().parked, 1U);
  peer.close();
  EXPECT_TRUE(until([&] { return server->stats().connections == 0; }));
  EXPECT_EQ(server->stats().parked, 0U);
}

/// Blocking ends of connections to a server on loops of its own, for tests of who runs where.
class Client {
 public:
  explicit Client(std::uint16_t port) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(socket_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  }
  void send(const std::string& request) const {
    EXPECT_EQ(::send(socket_.get(), request.data(), request.size(), 0),
              static_cast<ssize_t>(request.size()));
  }
  /// What comes until it ends with `end`, or the server closes.
  std::string read_until(std::string_view end) const {
    std::string reply;
    std::array<char, 1000> piece;
    while (end.empty() || !reply.ends_with(end)) {
      const ssize_t got = ::recv(socket_.get(), piece.data(), piece.size(), 0);
      if (got <= 0) break;
      reply.append(piece.data(), static_cast<std::size_t>(got));
    }
    return reply;
  }

 private:
  Descriptor socket_;
};

void shut_down(HttpServer& server, LoopPool& pool) {
  std::atomic<bool> done = false;
  server.shutdown(SteadyClock().now() + 5s, [&] { done = true; });
  while (!done) std::this_thread::yield();
  pool.stop();
}

TEST(HttpServerThreadsTest, AConnectionGoesOnWhereItsHandlerWants) {
  /// Answers on a later turn with its number, and sends the connection to the next loop.
  class Handler final : public HttpHandler {
   public:
    void on_request(const HttpRequest& request, HttpExchangePtr exchange) override {
      Executor& home = exchange->executor();
      home.post([this, body = std::string(request.body), exchange = std::move(exchange)] {
        exchange->continue_on(*next);
        exchange->reply(200, "text/plain", body + " on " + std::to_string(number) + ";");
      });
    }
    std::size_t number = 0;
    Executor* next = nullptr;
  };
  LoopPool pool(3);
  const std::vector<EventLoop*> loops = pool.loops();
  std::array<Handler, 3> handlers;
  for (std::size_t i = 0; i < 3; ++i) {
    handlers[i].number = i;
    handlers[i].next = loops[(i + 1) % 3];
  }
  HttpServer server(loops, {&handlers[0], &handlers[1], &handlers[2]});
  const std::uint16_t port = server.listen("127.0.0.1", 0).value();
  pool.start();
  const Client client(port);
  for (int i = 0; i < 30; ++i) {
    client.send(post("/", "request " + std::to_string(i)));
    const std::string expected =
        "request " + std::to_string(i) + " on " + std::to_string(i % 3) + ";";
    EXPECT_THAT(client.read_until(expected), HasSubstr(expected));
  }
  // What has been read ahead goes along, and so does what has not been read yet.
  std::string many;
  for (int i = 0; i < 300; ++i) many += post("/", std::string(1000, 'x') + std::to_string(i));
  client.send(many + post("/", "the last"));
  const std::string replies = client.read_until("the last on 0;");
  std::size_t at = 0;
  for (int i = 0; i < 300; ++i) {
    at = replies.find("x" + std::to_string(i) + " on " + std::to_string(i % 3) + ";", at);
    ASSERT_NE(at, std::string::npos) << i;
  }
  EXPECT_EQ(server.stats().connections_total, 1U);
  shut_down(server, pool);
  EXPECT_EQ(server.stats().connections, 0U);
  EXPECT_EQ(server.stats().parked, 0U);
}

TEST(HttpServerThreadsTest, AConnectionMayMoveWhenItsOutputHasDrained) {
  class Handler final : public HttpHandler {
   public:
    void on_request(const HttpRequest& request, HttpExchangePtr exchange) override {
      exchange->executor().post(
          [this, exchange = std::move(exchange), target = std::string(request.target)] {
            exchange->continue_on(*next);
            exchange->start(200, "text/plain");
            const bool drains = ++count % 2 == 0;
            if (drains) exchange->on_drain([exchange] { exchange->finish(); });
            exchange->write(std::string(300'000, 'x') + target);
            if (!drains) exchange->finish();
          });
    }
    Executor* next = nullptr;
    int count = 0;
  };
  LoopPool pool(2);
  std::array<Handler, 2> handlers;
  for (std::size_t i = 0; i < 2; ++i) handlers[i].next = &pool.loop(1 - i);
  HttpServer server(pool.loops(), {&handlers[0], &handlers[1]});
  const std::uint16_t port = server.listen("127.0.0.1", 0).value();
  pool.start();
  const Client client(port);
  for (int round = 0; round < 8; ++round) {
    client.send(get("/1") + get("/2") + get("/3"));
    static constexpr std::string_view kLast = "/3\r\n0\r\n\r\n";
    const std::string replies = client.read_until(kLast);
    ASSERT_THAT(replies, EndsWith(kLast)) << round;
    ASSERT_EQ(std::ranges::count(replies, 'x'), 900'003) << round;
  }
  shut_down(server, pool);
  EXPECT_EQ(server.stats().connections, 0U);
}

TEST(HttpServerThreadsTest, DealsConnectionsOutToItsLoops) {
  class Echo final : public HttpHandler {
   public:
    void on_request(const HttpRequest& request, HttpExchangePtr exchange) override {
      ++requests;
      exchange->reply(200, "text/plain", request.target);
    }
    std::atomic<int> requests = 0;
  };
  LoopPool pool(3);
  std::array<Echo, 3> handlers;
  HttpServer server(pool.loops(), {&handlers[0], &handlers[1], &handlers[2]});
  const std::uint16_t port = server.listen("localhost", 0).value();
  pool.start();
  for (int i = 0; i < 9; ++i) {
    const Client client(port);
    client.send(get("/echo", "Connection: close\r\n"));
    EXPECT_TRUE(client.read_until({}).ends_with("/echo"));
  }
  for (const Echo& handler : handlers) EXPECT_EQ(handler.requests, 3);
  shut_down(server, pool);
  EXPECT_EQ(server.stats().connections, 0U);
  EXPECT_EQ(server.stats().requests_total, 9U);
}

}  // namespace
}  // namespace sluice
