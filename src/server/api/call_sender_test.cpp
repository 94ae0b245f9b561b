// What a handler can ask about who sent its request: Call::client_info(), meta(), header() and
// session_state().

#include <atomic>
#include <chrono>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <memory>
#include <stdexcept>
#include <string>

#include "json/json.hpp"
#include "server/host/peer_test_support.hpp"
#include "sluice/server.hpp"
#include "sluice/testing.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

struct Count {
  std::atomic<int> calls = 0;
};

std::string said(const Call& call) {
  const std::optional<ClientInfo> info = call.client_info();
  return info ? info->name + " " + info->version + " " + info->title : "nothing";
}

/// A server whose tools tell what they know of their request.
Server telling_server() {
  Server server("test", "1", {.request_headers = {"X-Tenant", "X-Trace"}});
  server.tool("info", "", [](Call& call) { return said(call); });
  server.tool("info_later", "", [](Call& call) -> Task<std::string> {
    co_await call.sleep(1s);
    co_return said(call);
  });
  server.tool("info_on_worker", "", blocking([](Call& call) { return said(call); }));
  server.tool("meta", "", [](Call& call) -> Task<std::string> {
    const json::object& meta = call.meta();
    co_await call.sleep(1s);
    co_return to_json(meta);
  });
  server.tool("tenant", "", [](Call& call) -> Task<std::string> {
    co_await call.sleep(1ms);
    co_return std::string(call.header("x-tenant").value_or("none"));
  });
  server.tool("other", "", [](Call& call) -> std::string {
    try {
      call.header("Authorization");
    } catch (const std::logic_error& error) {
      return error.what();
    }
    return "";
  });
  server.tool("count", "", [](Call& call) -> std::string {
    const std::shared_ptr<Count> count = call.session_state<Count>();
    return count == nullptr ? "stateless" : std::to_string(++count->calls);
  });
  return server;
}

class CallSenderTest : public ::testing::TestWithParam<const char*> {
 protected:
  [[nodiscard]] static testing::ClientOptions options() {
    return {.revision = GetParam(),
            .client_info = {.name = "probe", .version = "2.5", .title = "Probe"},
            .headers = {{"x-tenant", "acme"}}};
  }

  Server server = telling_server();
};

TEST_P(CallSenderTest, TheClientSaysWhatItIs) {
  testing::Client client(server, options());
  EXPECT_EQ(client.call("info").text(), "probe 2.5 Probe");
  EXPECT_EQ(client.call("info_later").text(), "probe 2.5 Probe");
  EXPECT_EQ(client.call("info_on_worker").text(), "probe 2.5 Probe");
}

TEST_P(CallSenderTest, WhatTheClientSaysOfItselfIsCut) {
  testing::ClientOptions wanted = options();
  wanted.client_info.name = std::string(255, 'a') + "é";
  EXPECT_EQ(testing::Client(server, wanted).call("info").text(),
            std::string(255, 'a') + " 2.5 Probe");
}

TEST_P(CallSenderTest, MetaIsWhatTheRequestHas) {
  testing::Client client(server, options());
  const std::string meta =
      client
          .request("tools/call",
                   {{"name", "meta"}, {"_meta", {{"example.org/deep", {{"a", {1, 2}}}}}}})
          .text();
  EXPECT_THAT(meta, HasSubstr(R"("example.org/deep":{"a":[1,2]})"));
}

TEST_P(CallSenderTest, HeaderFieldsAreThoseThatTheServerNames) {
  testing::Client client(server, options());
  EXPECT_EQ(client.call("tenant").text(), "acme");
  EXPECT_THAT(client.call("other").text(),
              HasSubstr("ServerOptions::request_headers must name Authorization"));
  EXPECT_EQ(testing::Client(server, {.revision = GetParam()}).call("tenant").text(), "none");
}

TEST_P(CallSenderTest, AConnectionForManyMessagesIsASession) {
  testing::Client client(server, options());
  EXPECT_EQ(client.call("count").text(), "1");
  EXPECT_EQ(client.call("count").text(), "2");
  EXPECT_EQ(testing::Client(server, options()).call("count").text(), "1");
}

INSTANTIATE_TEST_SUITE_P(Revisions, CallSenderTest,
                         ::testing::Values("2024-11-05", "2025-06-18", "2025-11-25", "2026-07-28"),
                         [](const auto& tested) {
                           std::string name = tested.param;
                           std::erase(name, '-');
                           return name;
                         });

TEST(CallSender, ATaskKnowsItsSender) {
  Server server = telling_server();
  std::string known;
  server.tool("task", "",
              [&known](Call& call) {
                known = said(call) + to_json(call.meta());
                return std::string();
              },
              {.tasks = TaskSupport::required});
  testing::Client client(server, {.client_info = {.name = "probe", .version = "1"}, .tasks = true});
  EXPECT_FALSE(client.call("task").failed());
  client.run();
  EXPECT_THAT(known, HasSubstr("probe 1"));
  EXPECT_THAT(known, HasSubstr("clientCapabilities"));
}

TEST(CallSender, ANameOfAHeaderFieldIsAToken) {
  EXPECT_THROW(Server("test", "1", {.request_headers = {"X Tenant"}}), std::invalid_argument);
  EXPECT_THROW(Server("test", "1", {.request_headers = {""}}), std::invalid_argument);
}

/// Sends a request to /mcp with more header lines, and returns the reply.
std::string posted(std::uint16_t port, const std::string& lines, const std::string& params,
                   const std::string& method = "tools/call") {
  const std::string body =
      R"({"jsonrpc":"2.0","method":")" + method + R"(","params":)" + params + R"(,"id":1})";
  Peer peer(port);
  peer.send("POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n" + lines +
            "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body);
  return peer.rest();
}

TEST(CallSender, OverHttpFieldsAreTheRequestsAndTheSessionIsTheOneThatItNames) {
  const auto serving = start(telling_server(), http{.port = 0}, ServeOptions{.threads = 1});
  ASSERT_TRUE(serving);
  const std::uint16_t port = serving->port();
  EXPECT_THAT(posted(port, "X-TENANT: acme\r\n", R"({"name":"tenant"})"), HasSubstr("acme"));
  EXPECT_THAT(posted(port, "X-Tenant: a\r\nX-Tenant: b\r\n", R"({"name":"tenant"})"),
              HasSubstr("none"));
  EXPECT_THAT(posted(port, "", R"({"name":"count"})"), HasSubstr("stateless"));
  const std::string begun = posted(
      port, "",
      R"({"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"n","version":"v"}})",
      "initialize");
  const std::string field = "Mcp-Session-Id: ";
  const std::size_t at = begun.find(field);
  ASSERT_NE(at, std::string::npos) << begun;
  const std::string session = begun.substr(at, begun.find("\r\n", at) + 2 - at);
  EXPECT_THAT(posted(port, session, R"({"name":"count"})"), HasSubstr("\"text\":\"1\""));
  EXPECT_THAT(posted(port, session, R"({"name":"count"})"), HasSubstr("\"text\":\"2\""));
  EXPECT_THAT(posted(port, session, R"({"name":"info"})"), HasSubstr("n v"));
}

TEST(CallSender, AWebSocketHasTheFieldsOfTheRequestThatOpenedIt) {
  const auto serving = start(telling_server(), http{.port = 0}, ServeOptions{.threads = 1});
  ASSERT_TRUE(serving);
  Peer peer(serving->port());
  peer.send(
      "GET /ws HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
      "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
      "X-Tenant: acme\r\n\r\n");
  peer.until("\r\n\r\n");
  const std::string body =
      R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"tenant"}})";
  ASSERT_LT(body.size(), 126U);
  // A masked text frame; the mask is zero.
  peer.send(std::string("\x81") + static_cast<char>(0x80U | body.size()) + std::string(4, '\0') +
            body);
  EXPECT_THAT(peer.until("acme"), HasSubstr("acme"));
}

}  // namespace
}  // namespace sluice
