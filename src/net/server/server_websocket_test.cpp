#include <algorithm>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <string_view>
#include <vector>

#include "core/manual_executor.hpp"
#include "net/connection/memory_connection.hpp"
#include "net/http/compression.hpp"
#include "net/server/server_http.hpp"
#include "net/server/server_test_support.hpp"
#include "net/websocket/websocket.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

constexpr std::string_view kHandshake =
    "Upgrade: websocket\r\nConnection: keep-alive, Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";

std::string client_frame(WebSocketOpcode opcode, std::string_view payload,
                         bool compressed = false) {
  std::string out;
  append_websocket_frame(out, opcode, payload, compressed, 0x1234ABCD);
  return out;
}
/// An empty frame, with more to follow.
std::string client_fragment(WebSocketOpcode opcode) {
  std::string out = client_frame(opcode, {});
  out[0] = static_cast<char>(opcode);
  return out;
}
std::string unmasked(WebSocketOpcode opcode, std::string_view payload) {
  std::string out;
  append_websocket_frame(out, opcode, payload);
  return out;
}
std::string close_frame(int code, std::string_view reason = {}) {
  std::string out;
  append_websocket_close(out, code, reason);
  return out;
}
std::string masked_close(int code) {
  std::string out;
  append_websocket_close(out, code, {}, 7);
  return out;
}

class ServerWebSocketTest : public ServerTest {
 protected:
  /// Records what happens.
  class Recorder final : public WebSocketHandler {
   public:
    explicit Recorder(ServerWebSocketTest& test) : test_(&test) {}
    ~Recorder() override { test_->events.emplace_back("destroyed"); }
    bool on_message(std::string_view text) override {
      test_->events.push_back("text " + std::string(text));
      return !test_->pauses;
    }
    void on_drain() override { test_->events.emplace_back("drain"); }
    void on_close(int code) override { test_->events.push_back("close " + std::to_string(code)); }

   private:
    ServerWebSocketTest* test_;
  };

  void SetUp() override {
    handle = [this](const HttpRequest& request, const HttpExchangePtr& exchange) {
      session = exchange->upgrade_websocket(request, websocket_options,
                                            std::make_unique<Recorder>(*this));
    };
  }
  /// A client whose handshake is over.
  Peer open(std::string_view extra = {}) {
    Peer peer = connect();
    peer.send(get("/ws", std::string(kHandshake).append(extra)));
    EXPECT_TRUE(peer.expect("\r\n\r\n"));
    EXPECT_THAT(peer.taken, StartsWith("HTTP/1.1 101"));
    EXPECT_TRUE(session);
    return peer;
  }
  /// Whether the connection ends after the peer has received `last`.
  bool ends(Peer& peer, const std::string& last) { return peer.expect(last) && peer.expect_end(); }

  WebSocketOptions websocket_options;
  WebSocketSessionPtr session;
  std::vector<std::string> events;
  bool pauses = false;
};

TEST_F(ServerWebSocketTest, ShakesHands) {
  Peer peer = connect();
  peer.send(get("/ws", kHandshake));
  ASSERT_TRUE(peer.expect("\r\n\r\n"));
  EXPECT_EQ(peer.taken,
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n");
  EXPECT_EQ(server->stats().websockets, 1U);
}

TEST_F(ServerWebSocketTest, RefusesWhatIsNoHandshake) {
  const auto with_key = [](const std::string& key) {
    return "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
           "Sec-WebSocket-Key: " +
           key + "\r\n";
  };
  struct {
    std::string request;
    const char* status;
    const char* says;
  } const cases[] = {
      {get("/ws"), "426", "Upgrade: websocket"},
      {post("/ws", "", kHandshake), "400", ""},
      {get("/ws", "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"),
       "400", ""},
      {get("/ws",
           "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
           "Sec-WebSocket-Key: short\r\n"),
       "400", ""},
      {get("/ws",
           "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 8\r\n"
           "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"),
       "426", "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"},
      {get("/ws", std::string(kHandshake) + "Sec-WebSocket-Version: 8\r\n"), "426", ""},
      {get("/ws", with_key("************************")), "400", "Sec-WebSocket-Key"},
      {get("/ws", with_key("dGhlIHNhbXBsZSBub25jZQA=")), "400", "Sec-WebSocket-Key"},
      {get("/ws", with_key("=Ghl=HNhbXBsZSBub25jZQ==")), "400", "Sec-WebSocket-Key"},
      {get("/ws", with_key("dGhlIHNhbXBsZSBub25jZQAA")), "400", "Sec-WebSocket-Key"},
      {get("/ws", "Upgrade: h2c\r\nConnection: Upgrade\r\n"), "426", ""},
      {get("/ws",
           "Upgrade: upgrade\r\nUpgrade: websocket\r\nConnection: keep-alive\r\n"
           "Connection: x\r\n"),
       "426", ""},
  };
  for (const auto& c : cases) {
    Peer peer = connect();
    peer.send(c.request);
    ASSERT_TRUE(peer.expect("\r\n\r\n"));
    const std::string reply = peer.taken + peer.received;
    EXPECT_THAT(reply, StartsWith(std::string("HTTP/1.1 ") + c.status)) << c.request;
    EXPECT_THAT(reply, HasSubstr(c.says)) << c.request;
    EXPECT_FALSE(session);
  }
  EXPECT_EQ(server->stats().websockets, 0U);
}

TEST_F(ServerWebSocketTest, SeveralLongMessagesAtOnceReachAPeerThatReads) {
  Peer peer = open();
  std::size_t all = 0;
  for (const char letter : {'a', 'b', 'c', 'd', 'e'}) {
    const std::string message(options.output.max_queued + 1, letter);
    session->send_text(message);
    all += message.size();
  }
  session->send_text("the last");
  EXPECT_TRUE(until([&] {
    peer.receive();
    return peer.received.ends_with("the last") || peer.ended;
  }));
  EXPECT_GT(peer.received.size(), all);
  EXPECT_FALSE(peer.ended);
}

TEST_F(ServerWebSocketTest, AHandlerMayTakeItsTimeForAMessage) {
  pauses = true;
  Peer peer = open();
  peer.send(client_frame(WebSocketOpcode::text, "a") + client_frame(WebSocketOpcode::text, "b"));
  peer.send(client_frame(WebSocketOpcode::text, "c"));
  EXPECT_TRUE(until([&] { return !events.empty(); }));
  for (int i = 0; i < 10; ++i) loop.poll();
  EXPECT_THAT(events, ElementsAre("text a"));
  session->resume_input();
  EXPECT_TRUE(until([&] { return events.size() > 1; }));
  for (int i = 0; i < 10; ++i) loop.poll();
  EXPECT_THAT(events, ElementsAre("text a", "text b"));
  pauses = false;
  session->resume_input();
  EXPECT_TRUE(until([&] { return events.size() > 2; }));
  EXPECT_THAT(events, ElementsAre("text a", "text b", "text c"));
}

TEST_F(ServerWebSocketTest, APeerThatIsResetMeanwhileIsNoticed) {
  pauses = true;
  Peer peer = open();
  peer.send(client_frame(WebSocketOpcode::text, "a"));
  ASSERT_TRUE(until([&] { return !events.empty(); }));
  peer.send(client_frame(WebSocketOpcode::text, "b"));
  settle();
  peer.reset();
  EXPECT_TRUE(until([&] { return events.size() > 2; }));
  EXPECT_THAT(events, ElementsAre("text a", "close 1006", "destroyed"));
}

TEST_F(ServerWebSocketTest, NothingElseIsTakenMeanwhileForWhateverReasonTheConnectionGoesOn) {
  pauses = true;
  Peer peer = open();
  peer.send(client_frame(WebSocketOpcode::text, "a") + client_frame(WebSocketOpcode::text, "b"));
  ASSERT_TRUE(until([&] { return !events.empty(); }));
  const Bytes block(unmasked(WebSocketOpcode::text, std::string(10'000, 'w')));
  while (session->send_frames(block)) session->flush();
  ASSERT_TRUE(until([&] {
    peer.receive();
    return events.size() > 1;
  }));
  for (int i = 0; i < 10; ++i) loop.poll();
  EXPECT_THAT(events, ElementsAre("text a", "drain"));
}

TEST_F(ServerWebSocketTest, APartOfAMessageIsNotLateWhileThePeerIsNotReadFrom) {
  options.request_timeout = 2s;
  Peer peer = open();
  const std::string frame = client_frame(WebSocketOpcode::text, std::string(1000, 'x'));
  peer.send(frame.substr(0, 100));
  settle();
  const Bytes block(unmasked(WebSocketOpcode::text, std::string(10'000, 'w')));
  while (session->send_frames(block)) session->flush();
  peer.send(frame.substr(100));
  for (int i = 0; i < 5; ++i) pass(1s);
  ASSERT_TRUE(until([&] {
    peer.receive();
    return events.size() > 1 || peer.ended;
  }));
  EXPECT_THAT(events, ElementsAre("drain", "text " + std::string(1000, 'x')));
}

TEST_F(ServerWebSocketTest, CarriesMessagesBothWays) {
  Peer peer = open();
  peer.send(client_frame(WebSocketOpcode::text, "hello") + client_frame(WebSocketOpcode::text, ""));
  ASSERT_TRUE(until([&] { return events.size() == 2; }));
  EXPECT_THAT(events, ElementsAre("text hello", "text "));
  session->send_text("one");
  session->send_frames(Bytes(unmasked(WebSocketOpcode::text, "two")));
  session->send_frames(std::string_view(unmasked(WebSocketOpcode::text, "three")));
  ASSERT_TRUE(peer.expect(unmasked(WebSocketOpcode::text, "one") +
                          unmasked(WebSocketOpcode::text, "two") +
                          unmasked(WebSocketOpcode::text, "three")));
  session->send_text("now");
  session->flush();
  peer.receive();
  EXPECT_EQ(peer.received, unmasked(WebSocketOpcode::text, "now"));
}

TEST_F(ServerWebSocketTest, TakesFramesInPiecesAndRightBehindTheHandshake) {
  const std::string bytes = client_frame(WebSocketOpcode::text, std::string(300, 'a')) +
                            client_frame(WebSocketOpcode::ping, "p") +
                            client_frame(WebSocketOpcode::text, "end");
  Peer peer = connect();
  peer.send(get("/ws", kHandshake) + bytes.substr(0, 5));
  for (const char byte : bytes.substr(5)) {
    peer.send({&byte, 1});
    loop.poll();
  }
  ASSERT_TRUE(until([&] { return events.size() == 2; }));
  EXPECT_THAT(events, ElementsAre("text " + std::string(300, 'a'), "text end"));
  EXPECT_TRUE(peer.expect(unmasked(WebSocketOpcode::pong, "p")));
}

TEST_F(ServerWebSocketTest, ClosesWhenThePeerDoes) {
  Peer peer = open();
  peer.send(masked_close(1001) + client_frame(WebSocketOpcode::text, "too late"));
  ASSERT_TRUE(ends(peer, close_frame(1001)));
  EXPECT_THAT(events, ElementsAre("close 1001", "destroyed"));
  EXPECT_FALSE(session->is_open());
  EXPECT_TRUE(session->send_text("nobody listens"));
  session->close(1000);
  peer.close();
  EXPECT_TRUE(until([&] { return server->stats().connections == 0; }));
  EXPECT_EQ(server->stats().websockets, 0U);
}

TEST_F(ServerWebSocketTest, ClosesAndWaitsForThePeerToAgree) {
  Peer peer = open();
  session->send_text("last");
  session->close(1000, "enough");
  session->send_text("after the end");
  ASSERT_TRUE(peer.expect(unmasked(WebSocketOpcode::text, "last") + close_frame(1000, "enough")));
  peer.send(client_frame(WebSocketOpcode::text, "crossed") + masked_close(1000));
  EXPECT_TRUE(peer.expect_end());
  EXPECT_THAT(peer.received, IsEmpty());
  EXPECT_THAT(events, ElementsAre("close 1000", "destroyed"));
}

TEST_F(ServerWebSocketTest, DoesNotWaitLongForThePeerToAgree) {
  options.ping_interval = {};
  Peer peer = open();
  session->close(1000);
  ASSERT_TRUE(peer.expect(close_frame(1000)));
  pass(4s);
  EXPECT_EQ(server->stats().connections, 1U);
  pass(1s);
  EXPECT_EQ(server->stats().connections, 0U);
  EXPECT_THAT(events, ElementsAre("close 1000", "destroyed"));
}

TEST_F(ServerWebSocketTest, TellsOfALostPeer) {
  Peer peer = open();
  peer.reset();
  ASSERT_TRUE(until([&] { return events.size() == 2; }));
  EXPECT_THAT(events, ElementsAre("close 1006", "destroyed"));
}

TEST_F(ServerWebSocketTest, EndsABrokenConversationWithItsReason) {
  websocket_options.max_message = 1000;
  const std::string large(1001, 'l');
  struct {
    std::string bytes;
    int code;
  } const cases[] = {
      {unmasked(WebSocketOpcode::text, "not masked"), 1002},
      {client_frame(WebSocketOpcode::continuation, "of nothing"), 1002},
      {client_frame(static_cast<WebSocketOpcode>(3), ""), 1002},
      {client_frame(static_cast<WebSocketOpcode>(0x73 & 0xF), "reserved"), 1002},
      {client_frame(WebSocketOpcode::text, "compressed", true), 1002},
      {client_frame(WebSocketOpcode::text, "\xC3\x28"), 1007},
      {client_frame(WebSocketOpcode::text, large), 1009},
      {client_frame(WebSocketOpcode::binary, "binary"), 1003},
      {client_frame(WebSocketOpcode::close, "x"), 1002},
      {client_frame(WebSocketOpcode::close, "\x03\xED"), 1002},  // 1005 must not be sent
  };
  for (const auto& c : cases) {
    events.clear();
    Peer peer = open();
    peer.send(c.bytes);
    ASSERT_TRUE(until([&] {
      peer.receive();
      return peer.received.size() >= 4;
    })) << c.code;
    EXPECT_EQ(peer.received[0], '\x88');
    const int code = static_cast<unsigned char>(peer.received[2]) << 8 |
                     static_cast<unsigned char>(peer.received[3]);
    EXPECT_EQ(code, c.code);
    if (code != 1003) {
      EXPECT_TRUE(peer.expect_end());
    }
    peer.close();
    ASSERT_TRUE(until([&] { return server->stats().connections == 0; }));
    EXPECT_THAT(events, ElementsAre("close " + std::to_string(c.code), "destroyed"));
  }
}

TEST_F(ServerWebSocketTest, PingsQuietPeersAndDropsDeadOnes) {
  Peer peer = open();
  const std::string ping = unmasked(WebSocketOpcode::ping, "");
  pass(29s);
  peer.receive();
  EXPECT_THAT(peer.received, IsEmpty());
  pass(1s);
  ASSERT_TRUE(peer.expect(ping));
  peer.send(client_frame(WebSocketOpcode::pong, ""));
  settle();
  pass(29s);
  pass(1s);
  ASSERT_TRUE(peer.expect(ping));
  pass(30s);
  ASSERT_TRUE(peer.expect(ping));
  pass(30s);
  EXPECT_TRUE(peer.expect_end());
  EXPECT_THAT(events, ElementsAre("close 1006", "destroyed"));
}

TEST_F(ServerWebSocketTest, CompressesLargeMessagesIfThePeerCan) {
  const std::string large(5000, 'c');
  {
    Peer peer = open();
    EXPECT_THAT(peer.taken, Not(HasSubstr("Extensions")));
    session->send_text(large);
    EXPECT_TRUE(peer.expect(unmasked(WebSocketOpcode::text, large)));
  }
  Peer peer = open("Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits\r\n");
  EXPECT_THAT(peer.taken, HasSubstr("Sec-WebSocket-Extensions: permessage-deflate; "
                                    "server_no_context_takeover; client_no_context_takeover\r\n"));
  std::string packed;
  deflate_message(large, packed);
  std::string expected;
  append_websocket_frame(expected, WebSocketOpcode::text, packed, true);
  session->send_text(large);
  session->send_text("small");
  EXPECT_TRUE(peer.expect(expected + unmasked(WebSocketOpcode::text, "small")));
  events.clear();
  peer.send(client_frame(WebSocketOpcode::text, packed, true));
  ASSERT_TRUE(until([&] { return !events.empty(); }));
  EXPECT_THAT(events, ElementsAre("text " + large));
}

TEST_F(ServerWebSocketTest, ReadsAllLinesOfExtensions) {
  const Peer peer = open(
      "Sec-WebSocket-Extensions: x-other; a=1\r\nSec-WebSocket-Extensions: permessage-deflate\r\n");
  EXPECT_THAT(peer.taken, HasSubstr("Sec-WebSocket-Extensions: permessage-deflate;"));
}

TEST_F(ServerWebSocketTest, TellsAWriterToWaitAndWhenToGoOn) {
  Peer peer = open();
  const Bytes block(unmasked(WebSocketOpcode::text, std::string(10'000, 'w')));
  for (int i = 0; session->send_frames(block); ++i) {
    session->flush();
    ASSERT_LT(i, 10'000);
  }
  EXPECT_THAT(events, IsEmpty());
  ASSERT_TRUE(until([&] {
    peer.receive();
    return !events.empty();
  }));
  EXPECT_THAT(events, ElementsAre("drain"));
}

TEST_F(ServerWebSocketTest, ReadsNoFurtherMessagesWhileAnswersAreUnread) {
  struct Echo final : WebSocketHandler {
    bool on_message(std::string_view text) override {
      ++*count;
      session->send_text(std::string(text) + std::string(1000, '.'));
      return true;
    }
    WebSocketSessionPtr session;
    std::size_t* count = nullptr;
  };
  std::size_t count = 0;
  handle = [&](const HttpRequest& request, const HttpExchangePtr& exchange) {
    auto handler = std::make_unique<Echo>();
    Echo& echo = *handler;
    echo.count = &count;
    echo.session = exchange->upgrade_websocket(request, {}, std::move(handler));
  };
  Peer peer = connect(65536);
  peer.send(get("/ws", kHandshake));
  ASSERT_TRUE(peer.expect("\r\n\r\n"));
  constexpr std::size_t kMessages = 20'000;
  std::string all;
  for (std::size_t i = 0; i < kMessages; ++i) {
    all += client_frame(WebSocketOpcode::text, std::to_string(i));
    if (i % 100 == 0) all += client_frame(WebSocketOpcode::ping, "?");
  }
  std::string_view rest = all;
  for (int idle = 0; idle < 100; ++idle) {
    const ssize_t sent = rest.empty() ? 0 : peer.try_send(rest);
    if (sent > 0) {
      rest.remove_prefix(static_cast<std::size_t>(sent));
      idle = 0;
    }
    settle();
  }
  pass(1ms);
  EXPECT_LT(count, kMessages / 2);
  EXPECT_LE(server->stats().queued_bytes, options.output.high_water + 4000);
  // A peer that reads slowly is not dropped, although its pongs wait too.
  for (int i = 0; i < 20; ++i) {
    pass(10s);
    for (int piece = 0; piece < 4; ++piece) peer.receive();
    settle();
  }
  ASSERT_FALSE(peer.ended);
  for (std::size_t i = 0; i < kMessages; ++i) {
    if (!rest.empty()) {
      const ssize_t sent = peer.try_send(rest);
      if (sent > 0) rest.remove_prefix(static_cast<std::size_t>(sent));
    }
    ASSERT_TRUE(
        peer.expect(unmasked(WebSocketOpcode::text, std::to_string(i) + std::string(1000, '.'))));
  }
  EXPECT_EQ(count, kMessages);
}

TEST_F(ServerWebSocketTest, AMessageMustNotTakeForEver) {
  Peer peer = open();
  // Each whole message comes with the beginning of the next, which is no reason to end.
  const std::string frame = client_frame(WebSocketOpcode::text, "hello");
  peer.send(frame.substr(0, 3));
  for (int i = 0; i < 10; ++i) {
    pass(10s);
    peer.send(frame.substr(3) + frame.substr(0, 3));
    settle();
  }
  EXPECT_FALSE(peer.ended);
  peer.received.clear();
  pass(options.request_timeout);
  EXPECT_TRUE(peer.expect(close_frame(1008, "The message took too long to arrive")));
}

TEST_F(ServerWebSocketTest, AFrameHeaderAloneReservesNothing) {
  MemoryBudget memory(std::size_t{1} << 20U);
  options.memory = &memory;
  Peer peer = open();
  const std::string frame = client_frame(WebSocketOpcode::text, std::string(3'000'000, 'x'));
  peer.send(frame.substr(0, 100));
  settle();
  EXPECT_EQ(memory.used(), 0U);
  peer.send(frame.substr(100, 2'000'000));
  EXPECT_TRUE(peer.expect(close_frame(1013, "The server is out of memory for buffers")));
  EXPECT_LE(memory.used(), memory.limit());
  peer.close();
  ASSERT_TRUE(until([&] { return server->stats().connections == 0; }));
  EXPECT_EQ(memory.used(), 0U);
}

TEST_F(ServerWebSocketTest, AMessageThatExpandsGivesWayMeanwhile) {
  const std::string long_text(4'000'000, ' ');
  std::string bomb;
  deflate_message(long_text, bomb);
  Peer heavy = open("Sec-WebSocket-Extensions: permessage-deflate\r\n");
  Peer light = open();
  heavy.send(client_frame(WebSocketOpcode::text, bomb, true) +
             client_frame(WebSocketOpcode::ping, "p") + masked_close(1000));
  for (int turns = 0; turns < 2; ++turns) loop.poll();
  light.send(client_frame(WebSocketOpcode::text, "light"));
  // What arrived before the end of the input is still handled.
  heavy.end();
  ASSERT_TRUE(until([&] { return events.size() >= 4; }));
  EXPECT_THAT(events, ElementsAre("text light", "text " + long_text, "close 1000", "destroyed"));
  EXPECT_TRUE(heavy.expect(unmasked(WebSocketOpcode::pong, "p") + close_frame(1000)));
}

TEST_F(ServerWebSocketTest, AMessageThatExpandsDrawsOnTheMemory) {
  MemoryBudget memory(std::size_t{1} << 20U);
  options.memory = &memory;
  std::string bomb;
  deflate_message(std::string(4'000'000, ' '), bomb);
  Peer peer = open("Sec-WebSocket-Extensions: permessage-deflate\r\n");
  peer.send(client_frame(WebSocketOpcode::text, bomb, true));
  std::size_t most = 0;
  ASSERT_TRUE(until([&] {
    most = std::max(most, memory.used());
    peer.receive();
    return !peer.received.empty();
  }));
  EXPECT_EQ(peer.received, close_frame(1013, "The server is out of memory for buffers"));
  EXPECT_GT(most, memory.limit() / 4);
  // The memory is released even before the peer has gone.
  EXPECT_EQ(memory.used(), 0U);
  EXPECT_THAT(events, ElementsAre("close 1013", "destroyed"));
}

TEST_F(ServerWebSocketTest, SaysGoodbyeWhenTheServerShutsDown) {
  Peer peer = open();
  bool done = false;
  server->shutdown({loop.clock().now() + 1h}, [&] { done = true; });
  ASSERT_TRUE(peer.expect(close_frame(1001, "the server is shutting down")));
  peer.send(masked_close(1001));
  ASSERT_TRUE(peer.expect_end());
  peer.close();
  EXPECT_TRUE(until([&] { return done; }));
  EXPECT_THAT(events, ElementsAre("close 1001", "destroyed"));
}

/// Sends many frames of one kind, then a message.
class BusyWebSocketTest : public ::testing::TestWithParam<WebSocketOpcode>, protected HttpHandler {
 protected:
  struct Listener final : WebSocketHandler {
    explicit Listener(bool& message_has_come) : has_come(message_has_come) {}
    bool on_message(std::string_view /*text*/) override { return has_come = true; }
    bool& has_come;
  };

  void on_request(const HttpRequest& request, HttpExchangePtr exchange) override {
    session = exchange->upgrade_websocket(request, {}, std::make_unique<Listener>(has_come));
  }

  ManualExecutor executor;
  HttpServerOptions options;
  WebSocketSessionPtr session;
  bool has_come = false;
};

TEST_P(BusyWebSocketTest, FramesGiveWayToOthers) {
  options.work = {.turn = 32U << 10U, .connection = 32U << 10U};
  HttpWorker worker(executor, nullptr, *this, options);
  const RefPtr<MemoryConnection> peer(new MemoryConnection(worker, options.output));
  ServerHttp::begin(*peer, worker);
  peer->write(get("/ws", kHandshake));
  executor.run();
  const bool is_fragment = GetParam() == WebSocketOpcode::continuation;
  std::string frames = is_fragment ? client_fragment(WebSocketOpcode::text) : std::string();
  while (frames.size() < 20'000) {
    frames += is_fragment ? client_fragment(GetParam()) : client_frame(GetParam(), {});
  }
  const std::string last = client_frame(is_fragment ? GetParam() : WebSocketOpcode::text, "last");
  peer->write(frames + last);
  EXPECT_FALSE(has_come);
  EXPECT_FALSE(worker.has_work_left());
  executor.run();
  EXPECT_TRUE(has_come);
  worker.drop_all();
  executor.run();
}

INSTANTIATE_TEST_SUITE_P(Kinds, BusyWebSocketTest,
                         ::testing::Values(WebSocketOpcode::ping, WebSocketOpcode::pong,
                                           WebSocketOpcode::continuation));

}  // namespace
}  // namespace sluice
