#include "net/client/websocket_client.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <optional>
#include <string>
#include <vector>

#include "net/client/client_test_support.hpp"
#include "net/websocket/websocket.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

/// What the server's end of the connection has received.
struct Frames final : WebSocketEvents {
  void on_message(WebSocketOpcode, std::string_view payload) override {
    log.push_back("message " + std::string(payload));
  }
  void on_ping(std::string_view payload) override { log.push_back("ping " + std::string(payload)); }
  void on_pong(std::string_view payload) override { log.push_back("pong " + std::string(payload)); }
  void on_close(int code, std::string_view reason) override {
    log.push_back("close " + std::to_string(code) + " " + std::string(reason));
  }
  std::vector<std::string> log;
};

class WebSocketClientTest : public ::testing::Test {
 protected:
  void connect(WebSocketClientOptions options = {}) {
    client.emplace(loop, server.url("/ws"), HttpHeaderList{{"Authorization", "Bearer k"}},
                   WebSocketClientCallbacks{
                       .on_open = [this] { opened = true; },
                       .on_message =
                           [this](WebSocketOpcode opcode, std::string_view payload) {
                             messages.push_back((opcode == WebSocketOpcode::text ? "t:" : "b:") +
                                                std::string(payload));
                           },
                       .on_end = [this](const Error& error) { ended = error; }},
                   std::move(options));
  }

  /// The reply that accepts the client's handshake.
  static std::string accept(const std::string& head) {
    static constexpr std::string_view kField = "Sec-WebSocket-Key: ";
    const std::size_t at = head.find(kField) + kField.size();
    return "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
           "Sec-WebSocket-Accept: " +
           websocket_accept_key(head.substr(at, head.find('\r', at) - at)) + "\r\n\r\n";
  }

  ScriptedServer::Peer& open(WebSocketClientOptions options = {}) {
    connect(std::move(options));
    auto& peer = server.peer(0);
    request = std::exchange(peer.received, {});
    peer.send(accept(request));
    EXPECT_TRUE(run_until(loop, [this] { return opened; }));
    return peer;
  }

  /// Waits until the server has received `count` frames. Returns what it has received.
  std::vector<std::string> received(ScriptedServer::Peer& peer, std::size_t count) {
    EXPECT_TRUE(run_until(loop, [&] {
      decoder.feed(peer.received, frames).value();
      peer.received.clear();
      return frames.log.size() >= count;
    }));
    return frames.log;
  }

  void wait_for_end() {
    EXPECT_TRUE(run_until(loop, [this] { return ended.has_value(); }));
  }

  EventLoop loop;
  ScriptedServer server{loop};
  std::optional<WebSocketClient> client;
  WebSocketDecoder decoder{WebSocketDecoder::Role::server, 1U << 20U, false};
  Frames frames;
  std::string request;
  std::vector<std::string> messages;
  std::optional<Error> ended;
  bool opened = false;
};

TEST_F(WebSocketClientTest, ShakesHandsAndExchangesMessages) {
  auto& peer = open();
  EXPECT_THAT(request,
              AllOf(StartsWith("GET /ws HTTP/1.1\r\n"), HasSubstr("\r\nUpgrade: websocket"),
                    HasSubstr("\r\nSec-WebSocket-Version: 13\r\n"),
                    HasSubstr("\r\nAuthorization: Bearer k\r\n")));
  EXPECT_TRUE(client->send_text("hello"));
  EXPECT_THAT(received(peer, 1), ElementsAre("message hello"));
  std::string out;
  append_websocket_frame(out, WebSocketOpcode::text, "a");
  append_websocket_frame(out, WebSocketOpcode::binary, "b");
  peer.send(out);
  ASSERT_TRUE(run_until(loop, [&] { return messages.size() == 2; }));
  EXPECT_THAT(messages, ElementsAre("t:a", "b:b"));
}

TEST_F(WebSocketClientTest, TakesFramesThatComeWithTheHandshake) {
  connect();
  auto& peer = server.peer(0);
  std::string out = accept(peer.received);
  append_websocket_frame(out, WebSocketOpcode::text, "early");
  peer.send(out);
  ASSERT_TRUE(run_until(loop, [&] { return !messages.empty(); }));
  EXPECT_TRUE(opened);
  EXPECT_THAT(messages, ElementsAre("t:early"));
}

TEST_F(WebSocketClientTest, NothingIsSentBeforeItIsOpen) {
  connect();
  EXPECT_FALSE(client->is_open());
  EXPECT_FALSE(client->send_text("x"));
}

TEST_F(WebSocketClientTest, AnswersPings) {
  auto& peer = open();
  std::string out;
  append_websocket_frame(out, WebSocketOpcode::ping, "p");
  peer.send(out);
  EXPECT_THAT(received(peer, 1), ElementsAre("pong p"));
}

TEST_F(WebSocketClientTest, ClosesWithTheHandshake) {
  auto& peer = open();
  client->close(1000, "bye");
  EXPECT_FALSE(client->is_open());
  EXPECT_THAT(received(peer, 1), ElementsAre("close 1000 bye"));
  EXPECT_FALSE(ended);
  std::string out;
  append_websocket_close(out, 1000, "");
  peer.send(out);
  wait_for_end();
  EXPECT_EQ(ended->code, 1000);
}

TEST_F(WebSocketClientTest, DoesNotWaitForeverForTheServersClose) {
  auto& peer = open();
  client->close(1000, "bye");
  received(peer, 1);
  wait_for_end();
  EXPECT_EQ(ended->code, 1000);
}

TEST_F(WebSocketClientTest, ReportsTheServersClose) {
  auto& peer = open();
  std::string out;
  append_websocket_close(out, 1012, "restarting");
  peer.send(out);
  wait_for_end();
  EXPECT_EQ(ended->code, 1012);
  EXPECT_EQ(ended->message, "restarting");
  EXPECT_THAT(received(peer, 1), ElementsAre("close 1012 "));
}

TEST_F(WebSocketClientTest, ReportsTheCodeOfACloseWithoutAReason) {
  auto& peer = open();
  std::string out;
  append_websocket_close(out, 1011, {});
  peer.send(out);
  wait_for_end();
  EXPECT_EQ(ended->message, "The server closed the WebSocket with code 1011");
}

TEST_F(WebSocketClientTest, ReportsALostConnection) {
  open().close();
  wait_for_end();
  EXPECT_EQ(ended->code, 502);
}

TEST_F(WebSocketClientTest, RefusesABrokenProtocol) {
  auto& peer = open();
  std::string out;
  append_websocket_frame(out, WebSocketOpcode::text, "masked", false, 7U);
  peer.send(out);
  wait_for_end();
  EXPECT_EQ(ended->code, 1002);
  EXPECT_THAT(received(peer, 1), ElementsAre(StartsWith("close 1002")));
}

TEST_F(WebSocketClientTest, RefusesAMessageThatIsTooLong) {
  auto& peer = open({.max_message = 10});
  std::string out;
  append_websocket_frame(out, WebSocketOpcode::text, "12345678901");
  peer.send(out);
  wait_for_end();
  EXPECT_EQ(ended->code, 1009);
}

TEST_F(WebSocketClientTest, ReportsTheStatusThatTheServerRefusesWith) {
  connect();
  server.peer(0).send("HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n");
  wait_for_end();
  EXPECT_EQ(ended->code, 401);
  EXPECT_THAT(ended->message, HasSubstr("401 Unauthorized"));
  EXPECT_FALSE(opened);
}

TEST_F(WebSocketClientTest, ChecksTheServersHandshake) {
  const std::vector<std::pair<std::string, std::string>> changes = {
      {"Sec-WebSocket-Accept: ", "Sec-WebSocket-Accept: x"},
      {"Upgrade: websocket", "Upgrade: h2c"},
      {"Connection: Upgrade", "Connection: close"},
      {"\r\n\r\n", "\r\nSec-WebSocket-Extensions: permessage-deflate\r\n\r\n"},
      {"\r\n\r\n", "\r\nSec-WebSocket-Protocol: mcp\r\n\r\n"},
      {"101 Switching Protocols", "200 OK"},
      {"HTTP/1.1", "JUNK"}};
  for (std::size_t i = 0; i < changes.size(); ++i) {
    ended.reset();
    connect();
    auto& peer = server.peer(i);
    std::string reply = accept(peer.received);
    reply.replace(reply.find(changes[i].first), changes[i].first.size(), changes[i].second);
    peer.send(reply);
    wait_for_end();
    EXPECT_EQ(ended->code, 502) << reply;
    EXPECT_FALSE(opened);
  }
}

TEST_F(WebSocketClientTest, PingsAnIdleServerAndGivesUpASilentOne) {
  auto& peer = open({.idle_timeout = 40ms});
  EXPECT_THAT(received(peer, 1), ElementsAre("ping "));
  wait_for_end();
  EXPECT_EQ(ended->code, 504);
}

TEST_F(WebSocketClientTest, AServerThatAnswersPingsIsKept) {
  auto& peer = open({.idle_timeout = 40ms});
  std::string pong;
  append_websocket_frame(pong, WebSocketOpcode::pong, "");
  for (std::size_t i = 1; i <= 3; ++i) {
    received(peer, i);
    peer.send(pong);
  }
  EXPECT_FALSE(ended);
}

TEST_F(WebSocketClientTest, GivesUpAServerThatDoesNotShakeHands) {
  connect({.connect_timeout = 30ms});
  wait_for_end();
  EXPECT_EQ(ended->code, 504);
}

TEST_F(WebSocketClientTest, RefusesToQueueWithoutBound) {
  open({.max_queued = 1U << 20U});
  const std::string text(1U << 20U, 'x');
  int sent = 0;
  while (client->send_text(text)) ASSERT_LT(++sent, 100);
  EXPECT_TRUE(client->is_open());
}

TEST_F(WebSocketClientTest, SaysGoodbyeWhenItIsDestroyed) {
  auto& peer = open();
  client.reset();
  EXPECT_THAT(received(peer, 1), ElementsAre("close 1001 "));
  EXPECT_TRUE(run_until(loop, [&] { return peer.gone; }));
  EXPECT_FALSE(ended);
}

TEST_F(WebSocketClientTest, MayBeDestroyedFromItsCallbacks) {
  EventLoop& own = loop;
  for (const int where : {0, 1, 2}) {
    std::optional<WebSocketClient> socket;
    int after = 0;
    bool dropped = false;
    const auto drop = [&](int here) {
      if (dropped) ++after;
      if (where == here) {
        dropped = true;
        socket.reset();
      }
    };
    const std::size_t n = server.peers.size();
    socket.emplace(
        own, server.url(), HttpHeaderList{},
        WebSocketClientCallbacks{.on_open = [&] { drop(0); },
                                 .on_message = [&](WebSocketOpcode, std::string_view) { drop(1); },
                                 .on_end = [&](const Error&) { drop(2); }});
    auto& peer = server.peer(n);
    std::string out = accept(peer.received);
    append_websocket_frame(out, WebSocketOpcode::text, "a");
    append_websocket_frame(out, WebSocketOpcode::text, "b");
    append_websocket_close(out, 1000, "");
    peer.send(out);
    EXPECT_TRUE(run_until(own, [&] { return dropped && peer.gone; }));
    EXPECT_EQ(after, 0) << where;
  }
}

TEST_F(WebSocketClientTest, SaysWhyItCannotConnect) {
  server.acceptor = nullptr;
  const Url url{.scheme = "ws", .host = "127.0.0.1", .port = 1, .target = "/"};
  client.emplace(loop, url, HttpHeaderList{},
                 WebSocketClientCallbacks{.on_end = [this](const Error& error) { ended = error; }});
  EXPECT_FALSE(ended);
  wait_for_end();
  EXPECT_EQ(ended->code, 502);
}

TEST_F(WebSocketClientTest, WhilePausedItReadsNothingAndDoesNotTakeTheServerForGone) {
  auto& peer = open({.idle_timeout = 10ms});
  client->pause(true);
  std::string frame;
  append_websocket_frame(frame, WebSocketOpcode::text, "hello");
  peer.send(frame);
  const auto later = std::chrono::steady_clock::now() + 40ms;
  run_until(loop, [&] { return std::chrono::steady_clock::now() > later; });
  EXPECT_THAT(messages, ::testing::IsEmpty());
  EXPECT_FALSE(ended);
  client->pause(false);
  EXPECT_TRUE(run_until(loop, [this] { return !messages.empty(); }));
  EXPECT_THAT(messages, ElementsAre("t:hello"));
}

}  // namespace
}  // namespace sluice
