#include <algorithm>
#include <array>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <malloc.h>
#include <string>
#include <vector>

#include "net/http/compression.hpp"
#include "net/server/http_server_test_support.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;

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
  // The kernel may accept some more at any time, and the stall timeout then begins anew.
  Duration longest{};
  for (int second = 0; second < 300 && !closed; ++second) {
    longest = exchange.stalled_for();
    pass(1s);
  }
  EXPECT_TRUE(closed);
  EXPECT_EQ(longest, 29s);
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
  // The handler sends more than may be queued, through an object that is destroyed with the
  // connection.
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
  // With a sanitizer's allocator this shows nothing.
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

}  // namespace
}  // namespace sluice
