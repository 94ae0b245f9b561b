#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "net/client/client_test_support.hpp"
#include "net/client/http_client.hpp"
#include "net/client/websocket_client.hpp"
#include "net/http/status_codes.hpp"
#include "net/io/tls.hpp"
#include "net/websocket/websocket.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

/// The clients at a proxy, which the test plays.
class ProxiedClientsTest : public ::testing::Test {
 protected:
  struct Reply {
    int connected = 0;
    int status = 0;
    std::string body;
    bool complete = false;
    std::optional<Error> error;
    [[nodiscard]] bool ended() const { return complete || error.has_value(); }
  };

  /// Every scheme goes by the proxy, with these credentials ("user:password@") or without.
  std::shared_ptr<const ProxySettings> settings(const std::string& credentials = {}) {
    const std::string value = "http://" + credentials + "127.0.0.1:" + std::to_string(proxy.port);
    return std::make_shared<const ProxySettings>([&value](const char* name) {
      return std::string_view(name) == "all_proxy" ? value.c_str() : nullptr;
    });
  }
  HttpClient::Call get(HttpClient& client, Reply& into,
                       const std::string& url = "http://mcp.example/mcp") {
    return client.send(
        {.url = parse_url(url).value()},
        {.on_connected = [&into] { ++into.connected; },
         .on_head = [&into](const HttpReplyHead& head) { into.status = head.status; },
         .on_body = [&into](std::string_view bytes) { into.body.append(bytes); },
         .on_complete = [&into] { into.complete = true; },
         .on_failure = [&into](const Error& why) { into.error = why; }});
  }
  void finish(const Reply& awaited) {
    EXPECT_TRUE(run_until(loop, [&] { return awaited.ended(); }));
  }

  static constexpr std::string_view kOk = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

  EventLoop loop;
  ScriptedServer proxy{loop};
  Reply reply;
};

TEST_F(ProxiedClientsTest, APlainRequestNamesTheWholeUrl) {
  std::vector<std::string> seen;
  HttpClient client(loop, {.proxies = settings("mira:secret@"), .tap = [&](const HttpHead& head) {
                             for (const HeaderField& field : head.headers) {
                               seen.emplace_back(field.name);
                             }
                           }});
  const auto call = get(client, reply, "http://mcp.example:8080/mcp?a=b");
  auto& peer = proxy.peer(0);
  EXPECT_THAT(peer.received,
              AllOf(StartsWith("GET http://mcp.example:8080/mcp?a=b HTTP/1.1\r\n"
                               "Host: mcp.example:8080\r\n"),
                    HasSubstr("\r\nProxy-Authorization: Basic bWlyYTpzZWNyZXQ=\r\n")));
  peer.send(kOk);
  finish(reply);
  EXPECT_EQ(reply.body, "ok");
  EXPECT_THAT(seen, ElementsAre("Content-Length"));
}

TEST_F(ProxiedClientsTest, APlainConnectionIsKeptForItsServer) {
  HttpClient client(loop, {.proxies = settings()});
  const auto first = get(client, reply);
  proxy.peer(0).send(kOk);
  finish(reply);
  Reply same;
  const auto second = get(client, same);
  ASSERT_TRUE(run_until(loop, [&] { return proxy.peers[0]->received.ends_with("\r\n\r\n"); }));
  proxy.peers[0]->send(kOk);
  finish(same);
  Reply other;
  const auto third = get(client, other, "http://other.example/mcp");
  proxy.peer(1).send(kOk);
  finish(other);
  EXPECT_EQ(proxy.peers.size(), 2U);
  for (const Reply* const each : {&reply, &same, &other}) EXPECT_EQ(each->connected, 1);
}

TEST_F(ProxiedClientsTest, A407IsTheProxysError) {
  HttpClient client(loop, {.proxies = settings()});
  const auto call = get(client, reply);
  proxy.peer(0).send("HTTP/1.1 407 No\r\nProxy-Authenticate: Basic\r\nContent-Length: 0\r\n\r\n");
  finish(reply);
  ASSERT_TRUE(reply.error);
  EXPECT_EQ(reply.status, 0);
  EXPECT_EQ(reply.error->code, kBadGateway);
  EXPECT_THAT(reply.error->message,
              AllOf(HasSubstr("(all_proxy) wants a user name"), HasSubstr("The proxy 127.0.0.1:")));
}

TEST_F(ProxiedClientsTest, WhatSquidAnswersItselfIsNoReply) {
  HttpClient client(loop, {.proxies = settings()});
  const auto call = get(client, reply);
  proxy.peer(0).send(
      "HTTP/1.1 403 Forbidden\r\nX-Squid-Error: ERR_ACCESS_DENIED 0\r\nContent-Length: 0\r\n\r\n");
  finish(reply);
  ASSERT_TRUE(reply.error);
  EXPECT_EQ(reply.status, 0);
  EXPECT_EQ(reply.error->code, kBadGateway);
  EXPECT_THAT(reply.error->message,
              EndsWith("(all_proxy) itself answers with HTTP 403 Forbidden, ERR_ACCESS_DENIED"));
}

TEST_F(ProxiedClientsTest, WithoutAProxyA407IsTheServers) {
  HttpClient client(loop, {.proxies = settings()});
  // The loopback is never reached by a proxy, so the proxy is the server here.
  const auto call = get(client, reply, proxy.url("/mcp").to_string());
  auto& peer = proxy.peer(0);
  EXPECT_THAT(peer.received, StartsWith("GET /mcp HTTP/1.1\r\n"));
  peer.send("HTTP/1.1 407 No\r\nContent-Length: 0\r\n\r\n");
  finish(reply);
  EXPECT_EQ(reply.status, kProxyAuthenticationRequired);
}

TEST_F(ProxiedClientsTest, HttpsHasATunnelWithTheServersName) {
  HttpClient client(loop,
                    {.proxies = settings("mira:secret@"), .tls = TlsContext::client().value()});
  const auto call = get(client, reply, "https://mcp.example/mcp");
  auto& peer = proxy.peer(0);
  EXPECT_THAT(peer.received,
              AllOf(StartsWith("CONNECT mcp.example:443 HTTP/1.1\r\n"),
                    EndsWith("\r\nProxy-Authorization: Basic bWlyYTpzZWNyZXQ=\r\n\r\n")));
  peer.received.clear();
  peer.send("HTTP/1.1 200 Connection established\r\n\r\n");
  // The ClientHello has the name in the clear, and nothing of the request.
  ASSERT_TRUE(run_until(loop, [&] { return peer.received.contains("mcp.example"); }));
  EXPECT_THAT(peer.received, AllOf(StartsWith("\x16\x03"), Not(HasSubstr("/mcp"))));
  peer.close();
  finish(reply);
  ASSERT_TRUE(reply.error);
  EXPECT_THAT(reply.error->message, StartsWith("The connection to mcp.example failed: "));
  EXPECT_EQ(reply.connected, 0) << "TLS was never established";
}

TEST_F(ProxiedClientsTest, ARefusedTunnelIsNoReply) {
  HttpClient client(loop, {.proxies = settings(), .tls = TlsContext::client().value()});
  const auto call = get(client, reply, "https://mcp.example/mcp");
  proxy.peer(0).send("HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n");
  finish(reply);
  ASSERT_TRUE(reply.error);
  EXPECT_EQ(reply.error->code, kBadGateway);
  EXPECT_THAT(reply.error->message, HasSubstr("does not connect to mcp.example:443"));
  Reply closed;
  const auto again = get(client, closed, "https://mcp.example/mcp");
  proxy.peer(1).close();
  finish(closed);
  ASSERT_TRUE(closed.error);
  EXPECT_THAT(closed.error->message, AllOf(HasSubstr("The connection to the proxy 127.0.0.1:"),
                                           HasSubstr("was closed during the handshake")));
}

TEST_F(ProxiedClientsTest, ATunnelCountsInTheTimeToConnect) {
  HttpClient client(
      loop, {.proxies = settings(), .tls = TlsContext::client().value(), .connect_timeout = 20ms});
  const auto call = get(client, reply, "https://mcp.example/mcp");
  proxy.peer(0);
  finish(reply);
  ASSERT_TRUE(reply.error);
  EXPECT_EQ(reply.error->code, kGatewayTimeout);
  EXPECT_THAT(reply.error->message, AllOf(HasSubstr("Cannot connect to the proxy 127.0.0.1:"),
                                          HasSubstr("no answer in time")));
}

TEST_F(ProxiedClientsTest, AProxyThatIsNotThereIsNamed) {
  proxy.acceptor = nullptr;
  HttpClient client(loop, {.proxies = settings("mira:secret@")});
  const auto call = get(client, reply);
  finish(reply);
  ASSERT_TRUE(reply.error);
  EXPECT_EQ(reply.error->code, kBadGateway);
  EXPECT_THAT(reply.error->message, AllOf(HasSubstr("Cannot connect to the proxy 127.0.0.1:"),
                                          HasSubstr("(all_proxy)"), Not(HasSubstr("secret"))));
}

TEST_F(ProxiedClientsTest, SettingsThatCannotBeUsedAreNoRequest) {
  const auto broken = std::make_shared<const ProxySettings>([](const char* name) {
    return std::string_view(name) == "all_proxy" ? "socks5://cache" : nullptr;
  });
  HttpClient client(loop, {.proxies = broken});
  const auto call = get(client, reply);
  finish(reply);
  ASSERT_TRUE(reply.error);
  EXPECT_EQ(reply.error->code, kBadRequest);
  EXPECT_THAT(reply.error->message, HasSubstr("all_proxy"));
  std::optional<Error> end;
  const WebSocketClient socket(loop, parse_url("ws://mcp.example/ws").value(), {},
                               {.on_end = [&](const Error& why) { end = why; }},
                               {.proxies = broken});
  EXPECT_TRUE(run_until(loop, [&] { return end.has_value(); }));
  EXPECT_EQ(end->code, kBadRequest);
}

TEST_F(ProxiedClientsTest, OnlyTheAddressInAUrlIsJudged) {
  std::size_t judged = 0;
  HttpClient client(loop, {.proxies = settings(), .may_connect = [&](const Endpoint&) {
                             ++judged;
                             return false;
                           }});
  const auto named = get(client, reply);
  proxy.peer(0).send(kOk);
  finish(reply);
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(judged, 0U);
  for (const std::string host : {"10.0.0.1", "10.1", "[fd00::1]"}) {
    Reply refused;
    const auto literal = get(client, refused, "http://" + host + "/mcp");
    finish(refused);
    ASSERT_TRUE(refused.error) << host;
    EXPECT_EQ(refused.error->code, kBadRequest);
  }
  EXPECT_EQ(judged, 3U);
  EXPECT_EQ(proxy.peers.size(), 1U);
}

TEST_F(ProxiedClientsTest, AWebSocketHasATunnelWithoutTlsToo) {
  bool is_open = false;
  WebSocketClient socket(loop, parse_url("ws://mcp.example/ws").value(), {},
                         {.on_open = [&] { is_open = true; }}, {.proxies = settings()});
  auto& peer = proxy.peer(0);
  EXPECT_THAT(peer.received, StartsWith("CONNECT mcp.example:80 HTTP/1.1\r\n"));
  peer.received.clear();
  peer.send("HTTP/1.1 200 OK\r\n\r\n");
  ASSERT_TRUE(run_until(loop, [&] { return peer.received.ends_with("\r\n\r\n"); }));
  EXPECT_THAT(peer.received, StartsWith("GET /ws HTTP/1.1\r\nHost: mcp.example\r\n"));
  const auto at = peer.received.find("Sec-WebSocket-Key: ") + 19;
  peer.send(
      "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
      "Sec-WebSocket-Accept: " +
      websocket_accept_key(peer.received.substr(at, 24)) + "\r\n\r\n");
  EXPECT_TRUE(run_until(loop, [&] { return is_open; }));
}

}  // namespace
}  // namespace sluice
