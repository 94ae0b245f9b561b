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
using ::testing::HasSubstr;
using ::testing::StartsWith;

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

/// More requests than are read while one is unanswered.
std::string many_requests() {
  std::string requests;
  for (int i = 0; i < 200; ++i) requests += post("/next", std::string(500, 'x'));
  return requests;
}

TEST_F(HttpServerTest, TellsWhenAPeerHasGoneThatHasAskedForMoreThanIsRead) {
  hold();
  for (const bool reset : {false, true}) {
    for (const bool streaming : {false, true}) {
      Peer peer = connect();
      peer.send(get("/"));
      ASSERT_TRUE(until([&] { return held.size() == 1; }));
      const HttpExchangePtr exchange = std::exchange(held, {}).front();
      if (streaming) exchange->start(200, "text/event-stream");
      peer.send(many_requests());
      settle();
      if (streaming) {
        ASSERT_TRUE(peer.expect("\r\n\r\n"));
      }
      reset ? peer.reset() : peer.close();
      EXPECT_TRUE(until([&] { return !exchange->is_open(); })) << reset << streaming;
      EXPECT_TRUE(held.empty());
      EXPECT_TRUE(until([&] { return server->stats().connections == 0; }));
    }
  }
}

TEST_F(HttpServerTest, APeerThatClosesItsSideIsAnsweredAllThatStandsBeforeTheEnd) {
  hold();
  Peer peer = connect();
  peer.send(get("/"));
  ASSERT_TRUE(until([&] { return held.size() == 1; }));
  peer.send(many_requests());
  peer.end();
  // The server finds out whether the peer still reads.
  ASSERT_TRUE(peer.expect("HTTP/1.1 100 Continue\r\n\r\n"));
  pass(10s);
  ASSERT_TRUE(held.front()->is_open());
  SetUp();
  held.front()->reply(200, "text/plain", "at last");
  ASSERT_TRUE(peer.expect("at last"));
  ASSERT_TRUE(peer.expect_end());
  EXPECT_EQ(seen.size(), 201U);
}

TEST_F(HttpServerTest, APeerThatClosesItsSideAndGoesLaterIsNoticed) {
  hold();
  options.event_keep_alive = 15s;
  Peer peer = connect();
  peer.send(get("/"));
  ASSERT_TRUE(until([&] { return held.size() == 1; }));
  peer.end();
  ASSERT_TRUE(peer.expect("HTTP/1.1 100 Continue\r\n\r\n"));
  pass(16s);
  ASSERT_TRUE(peer.expect("HTTP/1.1 100 Continue\r\n\r\n"));
  ASSERT_TRUE(held.front()->is_open());
  peer.close();
  pass(16s);
  EXPECT_TRUE(until([&] { return !held.front()->is_open(); }));
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
            "Transfer-Encoding: chunked\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
            "Cache-Control: no-store\r\n\r\n"
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

TEST_F(HttpServerTest, RefusesARequestBeforeItsBodyIsCollectedOrDecoded) {
  std::string bomb;
  gzip(std::string(1'000'000, ' '), bomb);
  const std::string gzipped =
      "Content-Encoding: gzip\r\nContent-Length: " + std::to_string(bomb.size()) + "\r\n\r\n" +
      bomb;
  for (const std::string& rest :
       {std::string("Content-Length: 4000000\r\nExpect: 100-continue\r\n\r\n"),
        std::string("Content-Length: 4000000\r\n\r\nthe beginning"),
        std::string("Transfer-Encoding: chunked\r\n\r\n"), gzipped}) {
    int asked = 0;
    judges = [&](const HttpRequest& head) {
      ++asked;
      return std::make_unique<HeadVerdict>(head.path == "/open");
    };
    handle = [&](const HttpRequest& request, const HttpExchangePtr& exchange) {
      EXPECT_TRUE(request.body_follows);
      EXPECT_TRUE(request.body.empty());
      exchange->reply(401, "text/plain", "no\n");
    };
    Peer peer = connect();
    peer.send("POST /closed HTTP/1.1\r\nHost: test\r\n" + rest);
    ASSERT_TRUE(peer.expect_end());
    EXPECT_THAT(peer.received, StartsWith("HTTP/1.1 401 "));
    EXPECT_THAT(peer.received, HasSubstr("Connection: close"));
    EXPECT_EQ(asked, 1);
  }
}

TEST_F(HttpServerTest, AWholeBodyIsNotAskedAbout) {
  judges = [](const HttpRequest&) { return std::make_unique<HeadVerdict>(false); };
  handle = [](const HttpRequest& request, const HttpExchangePtr& exchange) {
    exchange->reply(200, "text/plain", request.body);
  };
  Peer peer = connect();
  peer.send("POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 4\r\n\r\nhere");
  EXPECT_TRUE(peer.expect("here"));
}

/// Records what it receives.
struct RecordingBody final : BodyHandler {
  bool on_body(std::string_view bytes) override {
    text.append(bytes);
    return writable;
  }
  void on_body_end() override { ended = true; }
  std::string text;
  bool writable = true;
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
    body->writable = false;
    peer.send(piece("two"));
    ASSERT_TRUE(until([&] { return body->text == "onetwo"; }));
    peer.send(piece("sec"));
    settle();
    EXPECT_EQ(body->text, "onetwo");
    body->writable = true;
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
      // Some of a body that the handler reads must arrive in time.
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

TEST_F(HttpServerTest, ABodyThatIsNotTakenEndsWithItsConnection) {
  const auto body = std::make_shared<RecordingBody>();
  body->writable = false;
  HttpExchangePtr held;
  streams = [](const HttpRequest&) { return true; };
  handle = [&](const HttpRequest&, HttpExchangePtr exchange) {
    exchange->read_body(body);
    held = std::move(exchange);
  };
  Peer peer = connect();
  peer.send("POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 900000\r\n\r\nbegun");
  ASSERT_TRUE(until([&] { return body->text == "begun"; }));
  peer.send(std::string(100'000, 'x'));
  settle();
  EXPECT_TRUE(held->is_open());
  peer.reset();
  EXPECT_TRUE(until([&] { return !held->is_open(); }));
  EXPECT_EQ(body.use_count(), 1);
}

TEST_F(HttpServerTest, KeepsASilentEventStreamOpenWithComments) {
  options.event_keep_alive = std::chrono::seconds(15);
  options.output.stall_timeout = std::chrono::hours(1);
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
  // The comments show when a peer has gone.
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
  // The last handle is dropped on another thread, and the peer goes before the loop learns of that.
  std::thread([&] { held.clear(); }).join();
  peer.reset();
  EXPECT_TRUE(until([&] { return server->stats().connections == 0; }));
}

}  // namespace
}  // namespace sluice
