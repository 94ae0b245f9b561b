// How the requests of several peers share the loop, and replies that are compressed in parts.

#include "net/server/server_http_test_support.hpp"

namespace sluice {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using namespace std::chrono_literals;

/// Replies that are compressed in parts.
class LongReplyTest : public ServerHttpTest {
 protected:
  /// Counts the turns of the loop.
  struct Turns final : Executor::TurnHook {
    explicit Turns(Executor& counted) : loop(&counted) { loop->at_turn_end(*this); }
    ~Turns() override { loop->forget(*this); }
    void on_turn_end() override {
      ++count;
      if (!done()) loop->at_turn_end(*this);
    }
    Executor* loop;
    int count = 0;
    std::function<bool()> done;
  };
  static std::string get_packed(std::string_view path) {
    return "GET " + std::string(path) + " HTTP/1.1\r\nHost: test\r\nAccept-Encoding: gzip\r\n\r\n";
  }
  /// Removes the first reply from `replies` and returns its body.
  static std::string take_body(std::string& replies) {
    EXPECT_THAT(replies, HasSubstr("Content-Encoding: gzip\r\n"));
    EXPECT_THAT(replies, HasSubstr("Transfer-Encoding: chunked\r\n"));
    replies.erase(0, replies.find("\r\n\r\n") + 4);
    BodyReader reader(std::size_t{64} << 20U);
    const Result<std::size_t> used = reader.feed(replies);
    EXPECT_TRUE(used && reader.done());
    replies.erase(0, used.value_or(0));
    return decode_content("gzip", reader.body(), std::size_t{64} << 20U).value_or("broken");
  }
  std::string take_all(MemoryConnection& peer) {
    std::string all;
    std::size_t before = 0;
    do {
      before = all.size();
      executor.run();
      all += peer.take();
    } while (all.size() > before);
    return all;
  }
  static std::string numbers(std::size_t size) {
    std::string text;
    for (std::uint64_t i = 0; text.size() < size; ++i) text += std::to_string(i * 7919) + ",";
    return text;
  }
};

TEST_F(LongReplyTest, GivesWayToOthersAfterEachPart) {
  holds = true;
  const Peer peer = connect();
  peer->write(get_packed("/long") + get("/next"));
  const std::string body = numbers(std::size_t{4} << 20U);
  std::string replies;
  Turns turns(executor);
  turns.done = [&] {
    replies += peer->take();
    return asked.size() == 2;
  };
  held.at(0)->reply(200, "text/plain", body);
  held.clear();
  EXPECT_LT(peer->queued_bytes(), 1000U) << "only the head";
  executor.run();
  EXPECT_GE(turns.count, static_cast<int>(body.size() / kCompressedAtOnce));
  ASSERT_EQ(asked.size(), 2U);
  held.at(0)->reply(200, "text/plain", "short");
  replies += peer->take();
  EXPECT_TRUE(take_body(replies) == body);
  EXPECT_THAT(replies, AllOf(StartsWith("HTTP/1.1 200"), EndsWith("short")));
}

TEST_F(LongReplyTest, WaitsForAPeerThatDoesNotRead) {
  options.output.high_water = 1000;
  options.output.low_water = 100;
  MemoryBudget budget(std::size_t{16} << 20U);
  options.memory = &budget;
  HttpWorker bounded(executor, nullptr, *this, options);
  holds = true;
  const Peer peer(new MemoryConnection(bounded, options.output));
  ServerHttp::begin(*peer, bounded);
  peer->write(get_packed("/long"));
  const std::string body = numbers(std::size_t{4} << 20U);
  held.at(0)->reply(200, "text/plain", body);
  held.clear();
  executor.run();
  EXPECT_LT(peer->queued_bytes(), kCompressedAtOnce);
  EXPECT_GT(budget.used(), body.size());
  std::string replies = take_all(*peer);
  EXPECT_TRUE(take_body(replies) == body);
  EXPECT_EQ(budget.used(), 0U);

  peer->write(get_packed("/long"));
  held.at(0)->reply(200, "text/plain", body);
  held.clear();
  peer->vanish();
  executor.run();
  EXPECT_EQ(budget.used(), 0U);
}

TEST_F(LongReplyTest, IsSentAsItIsWhereCompressingFindsNoMemory) {
  MemoryBudget budget(std::size_t{300} << 10U);
  options.memory = &budget;
  HttpWorker bounded(executor, nullptr, *this, options);
  holds = true;
  const Peer peer(new MemoryConnection(bounded, options.output));
  ServerHttp::begin(*peer, bounded);
  peer->write(get_packed("/long"));
  const std::string body = numbers(kCompressedAtOnce + 1);
  held.at(0)->reply(200, "text/plain", body);
  held.clear();
  executor.run();
  const std::string reply = peer->take();
  EXPECT_THAT(reply, Not(HasSubstr("Content-Encoding")));
  EXPECT_TRUE(reply.ends_with(body));
}

TEST_F(LongReplyTest, ReachesAPeerThatSendsNoMore) {
  holds = true;
  const Peer peer = connect();
  peer->write(get_packed("/long"));
  const std::string body = numbers(1'000'000);
  held.at(0)->reply(200, "text/plain", body);
  held.clear();
  peer->end();
  std::string replies = take_all(*peer);
  EXPECT_TRUE(take_body(replies) == body);
  EXPECT_TRUE(peer->is_over());
}

/// The work limits allow only a few requests in a turn.
class BusyServerHttpTest : public ServerHttpTest {
 protected:
  BusyServerHttpTest() {
    options.work = {.turn = 8 * kMessageCost, .connection = 4 * kMessageCost};
  }
  std::size_t place_of(std::string_view path) const {
    return static_cast<std::size_t>(std::ranges::find(asked, path) - asked.begin());
  }
};

TEST_F(BusyServerHttpTest, ManyRequestsOfOnePeerDoNotKeepAnother) {
  HttpWorker busy(executor, nullptr, *this, options);
  const auto join = [&] {
    Peer peer(new MemoryConnection(busy, options.output));
    ServerHttp::begin(*peer, busy);
    return peer;
  };
  const Peer loud = join();
  const Peer quiet = join();
  std::string many;
  for (int i = 0; i < 1000; ++i) many += get("/loud");
  loud->write(many);
  EXPECT_LE(asked.size(), 4U);
  quiet->write(get("/quiet"));
  executor.run();
  EXPECT_EQ(asked.size(), 1001U);
  EXPECT_LT(place_of("/quiet"), 10U);
  EXPECT_THAT(quiet->take(), EndsWith("/quiet=0"));
}

TEST_F(BusyServerHttpTest, ManyRequestsOfOneClientOfAProxyDoNotKeepAnother) {
  MemoryBudget budget(1'000'000);
  for (const char* path : {"/loud", "/quiet"}) {
    clients[path] = std::make_shared<MemoryShare>(budget);
  }
  options.stands_for_many = [](const PeerAddress& /*peer*/) { return true; };
  HttpWorker busy(executor, nullptr, *this, options);
  const auto join = [&] {
    Peer peer(new MemoryConnection(busy, options.output));
    ServerHttp::begin(*peer, busy);
    return peer;
  };
  std::vector<Peer> loud;
  for (int i = 0; i < 100; ++i) loud.push_back(join());
  for (const char* before : {"", "/loud", "/quiet"}) {
    const Peer quiet = join();
    if (*before != '\0') quiet->write(get(before));
    executor.run();
    asked.clear();
    for (const Peer& each : loud) each->write(get("/loud") + post("/loud", "body") + get("/loud"));
    quiet->write(post("/quiet", "body"));
    executor.run();
    EXPECT_EQ(asked.size(), 301U);
    EXPECT_LT(place_of("/quiet"), 20U) << "after " << before;
    EXPECT_THAT(quiet->take(), EndsWith("/quiet=4"));
    for (const Peer& each : loud) each->take();
  }
}

TEST_F(BusyServerHttpTest, EachHasItsTurnWhenThereAreMoreThanOneTurnHasRoomFor) {
  HttpWorker busy(executor, nullptr, *this, options);
  std::vector<Peer> peers;
  for (int i = 0; i < 20; ++i) {
    peers.emplace_back(new MemoryConnection(busy, options.output));
    ServerHttp::begin(*peers.back(), busy);
    std::string many;
    for (int k = 0; k < 50; ++k) many += get("/" + std::to_string(i));
    peers.back()->write(many);
  }
  executor.run();
  ASSERT_EQ(asked.size(), 1000U);
  // Every connection has been served once before any is served for the third time.
  for (int i = 0; i < 20; ++i) EXPECT_LT(place_of("/" + std::to_string(i)), 160U) << i;
}

TEST_F(BusyServerHttpTest, ManyThatGoTogetherDoNotEndInOneTurn) {
  holds = true;
  HttpWorker busy(executor, nullptr, *this, options);
  std::vector<std::string> order;
  std::vector<Peer> peers;
  for (int i = 0; i < 100; ++i) {
    peers.emplace_back(new MemoryConnection(busy, options.output));
    ServerHttp::begin(*peers.back(), busy);
    peers.back()->write(get("/held"));
    executor.run();
    held.back()->on_close([&] {
      order.emplace_back("end");
      executor.post([&] { order.emplace_back("other"); });
    });
  }
  for (const Peer& peer : peers) peer->vanish();
  executor.run();
  EXPECT_EQ(std::ranges::count(order, "end"), 100);
  EXPECT_LT(std::ranges::find(order, "other") - order.begin(), 10);
  held.clear();
}

TEST_F(BusyServerHttpTest, ABodyCountsAsItComes) {
  HttpWorker busy(executor, nullptr, *this, options);
  const Peer heavy(new MemoryConnection(busy, options.output));
  ServerHttp::begin(*heavy, busy);
  heavy->write(post("/heavy", std::string(1'000'000, 'x')));
  EXPECT_LE(busy.counters.bytes_in, options.work.turn + BufferPool::kScratchSize);
  const Peer light(new MemoryConnection(busy, options.output));
  ServerHttp::begin(*light, busy);
  light->write(get("/light"));
  executor.run();
  EXPECT_THAT(asked, ElementsAre("/light", "/heavy"));
  EXPECT_THAT(heavy->take(), EndsWith("/heavy=1000000"));
}

TEST_F(BusyServerHttpTest, ABodyThatExpandsGivesWayMeanwhile) {
  HttpWorker busy(executor, nullptr, *this, options);
  const Peer heavy(new MemoryConnection(busy, options.output));
  ServerHttp::begin(*heavy, busy);
  const Peer light(new MemoryConnection(busy, options.output));
  ServerHttp::begin(*light, busy);
  std::string bomb;
  gzip(std::string(4'000'000, ' '), bomb);
  heavy->write(post("/heavy", bomb, "Content-Encoding: gzip\r\n"));
  light->write(get("/light"));
  executor.run();
  EXPECT_THAT(asked, ElementsAre("/light", "/heavy"));
  EXPECT_THAT(heavy->take(), EndsWith("/heavy=4000000"));
}

}  // namespace
}  // namespace sluice
