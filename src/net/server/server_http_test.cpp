#include "net/server/server_http.hpp"

#include "net/server/server_http_test_support.hpp"

namespace sluice {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using namespace std::chrono_literals;

TEST_F(ServerHttpTest, FindsRequestsHoweverTheyAreCut) {
  const std::string chunked =
      "POST /c HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n0\r\n\r\n";
  const std::string all = get("/a") + post("/b", "12345") + chunked + "\r\n" + get("/d");
  for (std::size_t piece = 1; piece < all.size(); ++piece) {
    asked.clear();
    const Peer peer = connect();
    std::string replies;
    for (std::size_t at = 0; at < all.size(); at += piece) {
      peer->write(std::string_view(all).substr(at, piece));
      executor.run();
      replies += peer->take();
    }
    ASSERT_THAT(asked, ElementsAre("/a", "/b", "/c", "/d")) << piece;
    for (const char* reply : {"/a=0", "/b=5", "/c=3", "/d=0"}) {
      ASSERT_THAT(replies, HasSubstr(reply)) << piece;
    }
    peer->tear_down();
  }
}

TEST_F(ServerHttpTest, AShutdownAnswersRequestsThatHaveComeInPart) {
  const std::string whole = post("/a", "12345");
  const std::string long_one = post("/b", std::string(200'000, 'x'));
  std::vector<Peer> peers;
  for (const std::string_view part :
       {std::string_view(whole).substr(0, 1), std::string_view(whole).substr(0, 30),
        std::string_view(whole).substr(0, whole.size() - 1),
        std::string_view(long_one).substr(0, long_one.size() - 1)}) {
    peers.push_back(connect());
    peers.back()->write(part);
  }
  executor.run();
  worker.drain();
  executor.run();
  for (const Peer& peer : peers) {
    EXPECT_THAT(peer->take(), AllOf(StartsWith("HTTP/1.1 503 "), HasSubstr("Connection: close\r\n"),
                                    EndsWith("The server is shutting down; try another\n")));
  }
  EXPECT_TRUE(asked.empty());
}

TEST_F(ServerHttpTest, AShutdownLetsWhatHasComeWholeBeHandled) {
  prepares = true;
  const Peer preparing = connect();
  preparing->write(post("/a", "12345"));
  executor.run();
  ASSERT_NE(prepared, nullptr);
  worker.drain();
  executor.run();
  EXPECT_EQ(preparing->take(), "");
  prepared->is_done = true;
  prepared->ready();
  executor.run();
  EXPECT_THAT(preparing->take(),
              AllOf(StartsWith("HTTP/1.1 200 "), HasSubstr("Connection: close\r\n")));
}

TEST_F(ServerHttpTest, APeerMayTakeItsRepliesByteByByte) {
  const Peer peer = connect();
  peer->write(get("/a") + get("/b"));
  executor.run();
  std::string replies;
  for (std::string byte = peer->take(1); !byte.empty(); byte = peer->take(1)) {
    ASSERT_EQ(byte.size(), 1U);
    replies += byte;
    executor.run();
  }
  EXPECT_THAT(replies, HasSubstr("/a=0"));
  EXPECT_THAT(replies, EndsWith("/b=0"));
}

TEST_F(ServerHttpTest, APeerThatSendsNoMoreStillGetsItsSlowAnswer) {
  holds = true;
  const Peer peer = connect();
  peer->write(get("/slow"));
  peer->end();
  executor.run();
  // The server finds out whether the peer has gone altogether.
  EXPECT_EQ(peer->take(), "HTTP/1.1 100 Continue\r\n\r\n");
  executor.run();
  ASSERT_TRUE(held.at(0)->is_open());
  held[0]->reply(200, "text/plain", "at last");
  executor.run();
  EXPECT_THAT(peer->take(), EndsWith("at last"));
  executor.run();
  EXPECT_TRUE(peer->is_over());
}

TEST_F(ServerHttpTest, APeerThatSendsNoMoreStillGetsItsEvents) {
  holds = true;
  const Peer peer = connect();
  peer->write(get("/events"));
  executor.run();
  held.at(0)->start(200, "text/event-stream");
  peer->end();
  executor.run();
  EXPECT_THAT(peer->take(), HasSubstr(": keep-alive\n\n"));
  held[0]->write(std::string_view("data: 1\n\n"));
  held[0]->finish();
  executor.run();
  EXPECT_THAT(peer->take(), AllOf(HasSubstr("data: 1\n\n"), EndsWith("0\r\n\r\n")));
}

TEST_F(ServerHttpTest, BodiesThatAreHandedOverArriveAsThoseThatAreCopied) {
  holds = true;
  for (const std::string version : {"1.1", "1.0"}) {
    const Peer peer = connect();
    peer->write(get("/events", version));
    executor.run();
    HttpExchange& reply = *held.back();
    reply.start(200, "text/plain");
    reply.flush();
    executor.run();
    peer->take();
    std::string expected;
    for (const std::size_t size : {10UL, 10'000UL, 20UL, 100'000UL, 5'000UL}) {
      const std::string body(size, 'x');
      std::string given = body;
      reply.take(given);
      std::string framed = body;
      if (version == "1.1") frame_chunk(framed);
      expected += framed;
    }
    reply.flush();
    executor.run();
    std::string taken;
    for (std::string part = peer->take(); !part.empty(); part = peer->take()) {
      taken += part;
      executor.run();
    }
    EXPECT_TRUE(taken == expected) << version;
  }
}

TEST_F(ServerHttpTest, AReplyWhoseConnectionIsOverAcceptsNoMore) {
  holds = true;
  const Peer peer = connect();
  peer->write(get("/events"));
  held.at(0)->start(200, "text/event-stream");
  const ChunkBlock block = ChunkBlock::from_framed(Bytes(std::string("2\r\nxx\r\n")));
  EXPECT_TRUE(held[0]->write(std::string_view("x")));
  EXPECT_TRUE(held[0]->write(block));
  peer->give_up();
  EXPECT_FALSE(held[0]->write(std::string_view("x")));
  EXPECT_FALSE(held[0]->write(block));
}

TEST_F(ServerHttpTest, APeerThatHasGoneIsNoticedThoughNothingIsToBeSaid) {
  holds = true;
  bool is_lost = false;
  const Peer peer = connect();
  peer->write(get("/slow"));
  held.at(0)->on_close([&] { is_lost = true; });
  peer->end();
  executor.run();
  EXPECT_FALSE(is_lost);
  peer->vanish();
  executor.run();
  EXPECT_TRUE(is_lost);
  EXPECT_FALSE(held[0]->is_open());
}

TEST_F(ServerHttpTest, APeerOfHttp10ThatSendsNoMoreHasGone) {
  // HTTP/1.0 does not have 100 (Continue), and a proxy that speaks 1.0 ends a request in this way.
  holds = true;
  const Peer peer = connect();
  peer->write(get("/slow", "1.0"));
  peer->end();
  executor.run();
  EXPECT_FALSE(held.at(0)->is_open());
}

TEST_F(ServerHttpTest, ABodyIsPreparedBeforeItsRequestIsHandled) {
  const std::string body = std::string(100'000, 'x');
  std::string packed;
  gzip(body, packed);
  const std::string chunked =
      "POST /chunked HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n"
      "186a0\r\n" +
      body + "\r\n0\r\n\r\n";
  const std::string requests[] = {post("/plain", body),
                                  post("/packed", packed, "Content-Encoding: gzip\r\n"), chunked};
  prepares = true;
  for (const std::string& request : requests) {
    for (const char* behind : {"", "GET /next HTTP/1.1\r\nHost: test\r\n\r\n"}) {
      asked.clear();
      const Peer peer = connect();
      peer->write(request + behind);
      executor.run();
      ASSERT_TRUE(asked.empty());
      executor.advance(options.request_timeout + 1s);
      ASSERT_TRUE(peer->is_open()) << "the peer has done its part";
      prepared->is_done = true;
      prepared->ready();
      executor.run();
      ASSERT_EQ(asked.size(), *behind == '\0' ? 1U : 2U);
      EXPECT_THAT(peer->take(), HasSubstr(asked[0] + "=100000"));
      peer->tear_down();
    }
  }
}

TEST_F(ServerHttpTest, APeerMayEndWhileItsBodyIsPrepared) {
  prepares = true;
  const Peer ending = connect();
  ending->write(post("/a", std::string(100, 'x')));
  ending->end();
  executor.run();
  ASSERT_TRUE(ending->is_open());
  prepared->is_done = true;
  prepared->ready();
  executor.run();
  EXPECT_THAT(ending->take(), EndsWith("/a=100"));
}

TEST_F(ServerHttpTest, WhatIsPreparedForAPeerThatIsRefusedGoesAtOnce) {
  struct Noted final : PreparedBody {
    explicit Noted(int& count) : left(count) { ++left; }
    ~Noted() override { --left; }
    [[nodiscard]] bool is_ready() const override { return false; }
    [[nodiscard]] std::string_view text() const override { return {}; }
    int& left;
  };
  struct Handler final : HttpHandler {
    void on_request(const HttpRequest& /*request*/, HttpExchangePtr exchange) override {
      exchange->reply(200, {}, {});
    }
    [[nodiscard]] bool prepares_body(const HttpRequest& /*head*/,
                                     std::size_t /*size*/) const override {
      return true;
    }
    std::unique_ptr<PreparedBody> prepare(const HttpRequest& /*head*/, std::string /*body*/,
                                          Executor::Task /*ready*/) override {
      return std::make_unique<Noted>(left);
    }
    int left = 0;
  };
  Handler handler;
  MemoryBudget budget(1);
  options.memory = &budget;
  HttpWorker bounded(executor, nullptr, handler, options);
  const Peer peer(new MemoryConnection(bounded, options.output));
  ServerHttp::begin(*peer, bounded);
  peer->write(post("/a", "12345"));
  executor.run();
  EXPECT_EQ(handler.left, 1);
  // More than the free memory, while the peer reads nothing.
  peer->write(std::string(100'000, 'x'));
  executor.run();
  EXPECT_EQ(handler.left, 0);
  EXPECT_THAT(peer->take(), StartsWith("HTTP/1.1 503 "));
}

TEST_F(ServerHttpTest, ABodyIsPreparedForWhoeverItsHeadSays) {
  prepares = true;
  for (const bool is_cut : {false, true}) {
    const Peer peer = connect();
    const std::string request = post("/a", "12345");
    if (is_cut) {
      peer->write(request.substr(0, request.size() - 1));
      executor.run();
    }
    peer->write(is_cut ? "5" : request);
    executor.run();
    ASSERT_NE(prepared, nullptr);
    EXPECT_NE(prepared_with, nullptr);
    prepared->is_done = true;
    prepared->ready();
    executor.run();
    EXPECT_THAT(peer->take(), EndsWith("/a=5"));
    EXPECT_EQ(judged_as, prepared_with);
    prepared = nullptr;
    peer->write(post("/refused", "12345"));
    executor.run();
    EXPECT_EQ(prepared, nullptr);
    EXPECT_THAT(peer->take(), EndsWith("/refused=0"));
  }
}

TEST_F(ServerHttpTest, ALongBodyTakesAboutAsMuchMemoryAsItIsLong) {
  const std::string body(std::size_t{1} << 20U, 'b');
  const std::string all = post("/long", body) + get("/next");
  MemoryBudget budget(body.size() + 4 * CoarseHold::kStep);
  options.memory = &budget;
  HttpWorker bounded(executor, nullptr, *this, options);
  for (const bool is_prepared : {false, true}) {
    prepares = is_prepared;
    const Peer peer(new MemoryConnection(bounded, options.output));
    ServerHttp::begin(*peer, bounded);
    for (std::size_t at = 0; at < all.size(); at += 7777) {
      peer->write(std::string_view(all).substr(at, 7777));
      executor.run();
    }
    if (is_prepared) {
      ASSERT_NE(prepared, nullptr);
      EXPECT_TRUE(prepared->text() == body);
      prepared->is_done = true;
      prepared->ready();
      executor.run();
    }
    const std::string replies = peer->take();
    EXPECT_THAT(replies, HasSubstr("/long=" + std::to_string(body.size())));
    EXPECT_THAT(replies, EndsWith("/next=0"));
    peer->tear_down();
    EXPECT_EQ(budget.used(), 0U);
  }
}

TEST_F(ServerHttpTest, ABodyThatIsCutOffEndsTheConnection) {
  const Peer peer = connect();
  peer->write(post("/a", "12345").substr(0, 50));
  peer->end();
  executor.run();
  EXPECT_TRUE(peer->is_over());
  EXPECT_TRUE(asked.empty());
}

/// More than any string can hold: appending it fails as if there were no memory.
const std::string_view kTooMuch("x", std::string::npos / 2);

/// Reads bodies as they arrive. A message in them is never complete.
class StreamedBodyTest : public ServerHttpTest {
 protected:
  struct Body final : BodyHandler {
    bool on_body(std::string_view /*bytes*/) override { return true; }
    void on_body_end() override {}
    [[nodiscard]] std::uint64_t unfinished() const override { return 1; }
  };
  [[nodiscard]] bool streams_body(const HttpRequest& /*head*/) const override { return true; }
  void on_request(const HttpRequest& /*request*/, HttpExchangePtr exchange) override {
    exchange->start(200, "text/plain");
    exchange->read_body(std::make_shared<Body>());
    held.push_back(std::move(exchange));
  }
};

TEST_F(StreamedBodyTest, IsNotLateForTheTimeThatThePeerDoesNotRead) {
  options.output.high_water = 1000;
  options.output.low_water = 100;
  options.output.stall_timeout = {};
  options.request_timeout = 20s;
  options.idle_timeout = 30s;
  const Peer peer = connect();
  peer->write("POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 1000\r\n\r\npart of it");
  executor.run();
  peer->take();
  EXPECT_FALSE(held.at(0)->write(std::string(5000, 'x')));
  executor.advance(60s);
  EXPECT_EQ(peer->take().size(), 5000U + std::string_view("1388\r\n\r\n").size());
  executor.advance(15s);
  EXPECT_TRUE(peer->is_open()) << "it has as much time as before";
  executor.advance(10s);
  EXPECT_FALSE(peer->is_open());
}

TEST_F(ServerHttpTest, NothingLeavesOfWhatCannotBeWrittenWhole) {
  holds = true;
  const Peer peer = connect();
  peer->write(get("/a"));
  executor.run();
  held.at(0)->start(200, "text/plain");
  held[0]->write(std::string_view("a"));
  EXPECT_THROW(held[0]->write(kTooMuch), std::exception);
  executor.run();
  EXPECT_THAT(peer->take(), EndsWith("\r\n\r\n1\r\na\r\n"));
  EXPECT_THROW(held[0]->write(kTooMuch), std::exception);
  held[0]->write(std::string_view("b"));
  EXPECT_THROW(held[0]->write(kTooMuch), std::exception);
  held[0]->finish();
  EXPECT_EQ(peer->take(), "1\r\nb\r\n0\r\n\r\n");
}

TEST_F(ServerHttpTest, AReplyThatCannotBeWrittenLeavesRoomForAnother) {
  holds = true;
  for (const bool is_stream : {false, true}) {
    const Peer peer = connect();
    peer->write(get("/a"));
    executor.run();
    if (is_stream) {
      const HeaderField field{"X-Long", kTooMuch};
      EXPECT_THROW(held.at(0)->start(200, "text/plain", std::span(&field, 1)), std::exception);
    } else {
      EXPECT_THROW(held.at(0)->reply(200, "text/plain", kTooMuch), std::exception);
    }
    held[0]->reply(500, "text/plain", "no memory");
    held.clear();
    EXPECT_THAT(peer->take(), AllOf(StartsWith("HTTP/1.1 500"), EndsWith("\r\n\r\nno memory")));
    peer->tear_down();
  }
}

TEST_F(ServerHttpTest, TellsHeadsAndExpectationsApart) {
  const Peer peer = connect();
  const std::string request = post("/a", "body", "Expect: 100-continue\r\n");
  peer->write(request.substr(0, request.size() - 4));
  executor.run();
  EXPECT_EQ(peer->take(), "HTTP/1.1 100 Continue\r\n\r\n");
  peer->write("body");
  executor.run();
  EXPECT_THAT(peer->take(), EndsWith("/a=4"));
  peer->write("HEAD /b HTTP/1.1\r\nHost: test\r\n\r\n");
  executor.run();
  EXPECT_THAT(peer->take(), AllOf(HasSubstr("Content-Length: 4"), EndsWith("\r\n\r\n")));
}

TEST_F(ServerHttpTest, EachResponseSaysWhenItIsSent) {
  std::chrono::system_clock::time_point time(784111777s);
  options.time_of_day = [&time] { return time; };
  HttpWorker timed(executor, nullptr, *this, options);
  const auto answer = [&](std::string_view request) {
    const Peer peer(new MemoryConnection(timed, options.output));
    ServerHttp::begin(*peer, timed);
    peer->write(request);
    executor.run();
    return peer->take();
  };
  for (const std::string& request :
       {get("/"), get("/", "1.0"), std::string("no request\r\n\r\n")}) {
    EXPECT_THAT(answer(request), HasSubstr("\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n"));
  }
  time += 3s;
  EXPECT_THAT(answer(get("/")), HasSubstr(" 08:49:37 GMT\r\n"));
  executor.advance(3s);
  EXPECT_THAT(answer(get("/")), HasSubstr(" 08:49:40 GMT\r\n"));
  timed.drop_all();
  executor.run();
}

TEST_F(ServerHttpTest, WhatAHandlerThrowsCostsItsRequest) {
  fails = true;
  const Peer peer = connect();
  peer->write(get("/a") + get("/b"));
  executor.run();
  EXPECT_THAT(peer->take(), StartsWith("HTTP/1.1 500 "));
  EXPECT_THAT(asked, ElementsAre("/a", "/b"));
  fails = false;
  peer->write(get("/c"));
  executor.run();
  EXPECT_THAT(peer->take(), EndsWith("/c=0"));
}

TEST_F(ServerHttpTest, WhatACallbackThrowsCostsItsConnection) {
  holds = true;
  const Peer peer = connect();
  const Peer other = connect();
  peer->write(get("/a"));
  other->write(get("/b"));
  held.at(0)->on_close([] { throw std::runtime_error("in a callback"); });
  peer->vanish();
  executor.run();
  EXPECT_TRUE(peer->is_over());
  held.at(1)->reply(200, "text/plain", "fine");
  EXPECT_THAT(other->take(), EndsWith("fine"));
}

}  // namespace
}  // namespace sluice
