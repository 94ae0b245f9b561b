#include "client/link/websocket_link.hpp"

#include <chrono>
#include <functional>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "client/link/line_link.hpp"
#include "net/client/client_test_support.hpp"
#include "net/websocket/websocket.hpp"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class WebSocketLinkTest : public ::testing::Test, protected ServerLink::Owner {
 protected:
  void on_message(std::string_view text) override {
    heard.emplace_back(text);
    if (when_heard) when_heard();
  }
  bool on_reply(const RequestId& /*id*/, std::string_view /*text*/) override { return true; }
  void on_unreadable(std::string_view /*text*/, const Error& why) override {
    unreadable.push_back(why.message);
  }
  void on_unanswered(const RequestId& /*id*/, const Error& /*why*/) override {}
  void on_session_over(const RequestId& /*id*/) override {}
  [[nodiscard]] bool awaits(const RequestId& /*id*/) const override { return false; }
  void on_lost(const Error& why) override { lost = why; }

  void open(WebSocketClientOptions socket = {}) {
    link = std::make_unique<WebSocketLink>(
        loop, WebSocketLinkOptions{.url = server.url("/ws"), .socket = std::move(socket)});
    link->open(*this);
  }
  /// Accepts the handshake of the n-th connection.
  ScriptedServer::Peer& accept(std::size_t n) {
    ScriptedServer::Peer& peer = server.peer(n);
    const std::string head = std::exchange(peer.received, {});
    static constexpr std::string_view kField = "Sec-WebSocket-Key: ";
    const std::size_t at = head.find(kField) + kField.size();
    peer.send(
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        "Sec-WebSocket-Accept: " +
        websocket_accept_key(head.substr(at, head.find('\r', at) - at)) + "\r\n\r\n");
    return peer;
  }
  static std::string frame(WebSocketOpcode kind, std::string_view text) {
    std::string out;
    append_websocket_frame(out, kind, text);
    return out;
  }
  /// The messages that the peer has received, once there are `count`.
  std::vector<std::string> received(ScriptedServer::Peer& peer, std::size_t count) {
    struct Texts final : WebSocketEvents {
      void on_message(WebSocketOpcode, std::string_view text) override { all.emplace_back(text); }
      void on_ping(std::string_view) override {}
      void on_pong(std::string_view) override {}
      void on_close(int, std::string_view) override {}
      std::vector<std::string> all;
    } texts;
    WebSocketDecoder decoder{WebSocketDecoder::Role::server, 1U << 20U, false};
    EXPECT_TRUE(run_until(loop, [&] {
      decoder.feed(peer.received, texts).value();
      peer.received.clear();
      return texts.all.size() >= count;
    }));
    return texts.all;
  }

  EventLoop loop;
  ScriptedServer server{loop};
  std::unique_ptr<WebSocketLink> link;
  std::vector<std::string> heard;
  std::function<void()> when_heard;
  std::vector<std::string> unreadable;
  std::optional<Error> lost;
};

TEST_F(WebSocketLinkTest, WhatIsSentEarlyWaitsForTheHandshake) {
  open();
  ASSERT_TRUE(link->send({.text = "one"}));
  ASSERT_TRUE(link->send({.text = "two"}));
  ScriptedServer::Peer& peer = accept(0);
  EXPECT_THAT(received(peer, 2), ElementsAre("one", "two"));
  ASSERT_TRUE(link->send({.text = "three"}));
  EXPECT_THAT(received(peer, 1), ElementsAre("three"));
  peer.send(frame(WebSocketOpcode::binary, "no message") + frame(WebSocketOpcode::text, "hello"));
  ASSERT_TRUE(run_until(loop, [this] { return !heard.empty(); }));
  EXPECT_THAT(heard, ElementsAre("hello"));
  EXPECT_THAT(unreadable, ElementsAre("it is binary, and messages are text"));
}

TEST_F(WebSocketLinkTest, WaitsForTheClosingHandshake) {
  open();
  ScriptedServer::Peer& peer = accept(0);
  ASSERT_TRUE(link->send({.text = "one"}));
  EXPECT_THAT(received(peer, 1), ElementsAre("one"));
  ASSERT_TRUE(link->send({.text = "two"}));
  bool is_closed = false;
  link->close([this, &is_closed] {
    is_closed = true;
    link = nullptr;
  });
  EXPECT_FALSE(is_closed);
  EXPECT_THAT(received(peer, 1), ElementsAre("two"));
  peer.close();
  EXPECT_TRUE(run_until(loop, [&is_closed] { return is_closed; }));
  EXPECT_FALSE(lost);
}

TEST_F(WebSocketLinkTest, ManyMessagesLeaveTimeForOthers) {
  open();
  ScriptedServer::Peer& peer = accept(0);
  constexpr std::size_t kMessages = 6000;
  std::string all;
  for (std::size_t i = 0; i < kMessages; ++i) all += frame(WebSocketOpcode::text, "y");
  when_heard = [] {
    const auto until = std::chrono::steady_clock::now() + std::chrono::microseconds(10);
    while (std::chrono::steady_clock::now() < until) {
    }
  };
  peer.send(all);
  ASSERT_TRUE(run_until(loop, [this] { return !heard.empty(); }));
  EXPECT_LT(heard.size(), kMessages / 2) << "in one turn";
  ASSERT_TRUE(run_until(loop, [this] { return heard.size() == kMessages; }));
}

TEST_F(WebSocketLinkTest, AMessageMayBeAsLongAsOverOtherLinks) {
  const WebSocketLinkOptions options;
  EXPECT_EQ(options.socket.max_message, LineLinkLimits().max_message);
  open({.max_message = 10});
  accept(0).send(frame(WebSocketOpcode::text, "12345678901"));
  ASSERT_TRUE(run_until(loop, [this] { return lost.has_value(); }));
  EXPECT_EQ(lost->message, "A message is longer than 10 bytes");
}

TEST_F(WebSocketLinkTest, ARefusalKeepsItsStatus) {
  open();
  server.peer(0).send("HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n");
  ASSERT_TRUE(run_until(loop, [this] { return lost.has_value(); }));
  EXPECT_EQ(lost->code, 401);
  EXPECT_FALSE(link->send({.text = "more"}));
}

TEST_F(WebSocketLinkTest, OpensAnewWhenItIsOver) {
  open();
  EXPECT_TRUE(link->reopen()) << "it is being opened";
  ASSERT_TRUE(link->send({.text = "lost"}));
  server.peer(0).close();
  ASSERT_TRUE(run_until(loop, [this] { return lost.has_value(); }));
  EXPECT_EQ(lost->code, kLostConnection);
  EXPECT_TRUE(link->reopen());
  ASSERT_TRUE(link->send({.text = "new"}));
  EXPECT_THAT(received(accept(1), 1), ElementsAre("new"));
  EXPECT_THAT(heard, IsEmpty());
}

TEST_F(WebSocketLinkTest, WhatWaitsIsBounded) {
  open({.max_queued = 100});
  ASSERT_TRUE(link->send({.text = std::string(200, 'x')})) << "one message may be longer";
  const Result<void> refused = link->send({.text = "y"});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, kBusy);
}

TEST_F(WebSocketLinkTest, TheMemoryOfAMessageIsKeptUntilItHasLeft) {
  open();
  const auto early = std::make_shared<int>(0);
  ASSERT_TRUE(link->send({.text = "early", .memory = early}));
  EXPECT_EQ(early.use_count(), 2);
  ScriptedServer::Peer& peer = accept(0);
  EXPECT_THAT(received(peer, 1), ElementsAre("early"));
  EXPECT_EQ(early.use_count(), 1);
  const auto late = std::make_shared<int>(0);
  ASSERT_TRUE(link->send({.text = std::string(16'000'000, 'x'), .memory = late}));
  EXPECT_EQ(late.use_count(), 2) << "the socket does not take it at once";
  EXPECT_TRUE(run_until(loop, [&] {
    peer.received.clear();
    return late.use_count() == 1;
  }));
}

}  // namespace
}  // namespace sluice
