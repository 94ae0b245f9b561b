// Where an HTTP server has what, and the program's own pages.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "server/host/peer_test_support.hpp"
#include "sluice/authenticator.hpp"
#include "sluice/server.hpp"

namespace sluice {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

const std::string kPingText = R"({"jsonrpc":"2.0","id":1,"method":"ping"})";

class RoutesTest : public ::testing::Test {
 protected:
  void serve(http place, ServerOptions options = {}) {
    place.port = 0;
    auto started =
        start(Server("test", "1", std::move(options)), place, ServeOptions{.threads = 1});
    ASSERT_TRUE(started) << started.error().message;
    serving.emplace(*std::move(started));
  }
  /// The whole reply to a request.
  std::string reply(const std::string& request, const std::string& lines = "",
                    const std::string& body = "") {
    Peer peer(serving->port());
    peer.send(request + " HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n" + lines);
    if (!body.empty()) peer.send("Content-Length: " + std::to_string(body.size()) + "\r\n");
    peer.send("\r\n" + body);
    return peer.rest();
  }
  static std::string refusal(http place) {
    place.port = 0;
    const auto refused = start(Server("test", "1"), place, ServeOptions{.threads = 1});
    return refused ? std::string() : refused.error().message;
  }
  static Route page(const std::string& path) {
    return {.path = path, .answer = [](const RouteRequest&) { return RouteReply{.body = "page"}; }};
  }

  std::optional<Serving> serving;
};

TEST_F(RoutesTest, McpMayBeElsewhere) {
  serve({.path = "/api/v1"});
  EXPECT_THAT(serving->url(), ::testing::EndsWith("/api/v1"));
  EXPECT_THAT(reply("POST /api/v1", "", kPingText), HasSubstr(R"("result":{})"));
  const std::string there = reply("POST /mcp", "", kPingText);
  EXPECT_THAT(there, StartsWith("HTTP/1.1 404"));
  EXPECT_THAT(there, HasSubstr("Nothing is here; there are /api/v1, /streams/{stream_id}, /ws"));
}

TEST_F(RoutesTest, WhatIsSwitchedOffIsNotThere) {
  serve({.websocket = false, .sse = false}, {.stream_methods = false});
  for (const std::string path : {"/ws", "/sse", "/streams/abcdefghijklmnop"}) {
    EXPECT_THAT(reply("GET " + path), StartsWith("HTTP/1.1 404")) << path;
  }
  EXPECT_THAT(reply("POST /messages?sessionId=x", "", kPingText), StartsWith("HTTP/1.1 404"));
  EXPECT_THAT(reply("POST /mcp", "", R"({"jsonrpc":"2.0","id":1,"method":"streams"})"),
              HasSubstr("Method not found"));
  const std::string begun = reply(
      "POST /mcp", "",
      R"({"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25"}})");
  EXPECT_THAT(begun, HasSubstr(R"("extensions":{})"));
  EXPECT_THAT(begun, Not(HasSubstr("streaming")));
}

TEST_F(RoutesTest, StreamMethodsAreAnnouncedOtherwise) {
  serve({});
  EXPECT_THAT(reply("POST /mcp", "", R"({"jsonrpc":"2.0","id":1,"method":"streams"})"),
              HasSubstr(R"("result")"));
  EXPECT_THAT(
      reply(
          "POST /mcp", "",
          R"({"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25"}})"),
      HasSubstr(R"("streaming":true,"extensions":{"dev.sluice/streams":{}})"));
}

TEST_F(RoutesTest, AProgramHasPagesOfItsOwn) {
  serve({.routes = {page("/"),
                    {.method = "POST", .path = "/echo", .answer = [](const RouteRequest& request) {
                       return RouteReply{
                           .status = 201,
                           .content_type = "application/x-test",
                           .body = std::string(request.body) + " " +
                                   std::string(request.head.field("X-Test").value_or("")) + " " +
                                   request.principal.id,
                           .headers = {{"X-Reply", "yes"}}};
                     }}}});
  EXPECT_THAT(reply("GET /"), HasSubstr("\r\n\r\npage"));
  const std::string head = reply("HEAD /");
  EXPECT_THAT(head, StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(head, ::testing::EndsWith("\r\n\r\n"));
  const std::string echo = reply("POST /echo", "X-Test: field\r\n", "body");
  EXPECT_THAT(echo, StartsWith("HTTP/1.1 201"));
  EXPECT_THAT(echo, HasSubstr("Content-Type: application/x-test\r\n"));
  EXPECT_THAT(echo, HasSubstr("X-Reply: yes\r\n"));
  EXPECT_THAT(echo, ::testing::EndsWith("body field 127.0.0.1"));
  const std::string wrong = reply("DELETE /echo");
  EXPECT_THAT(wrong, StartsWith("HTTP/1.1 405"));
  EXPECT_THAT(wrong, HasSubstr("Allow: POST, OPTIONS"));
}

TEST_F(RoutesTest, OwnPagesNeedCredentialsUnlessTheyAreOpen) {
  Route open{.path = "/open",
             .answer =
                 [](const RouteRequest& request) {
                   return RouteReply{.body = "for " + request.principal.id};
                 },
             .is_open = true};
  serve({.keys = {{"ann", "0123456789abcdef"}}, .routes = {page("/closed"), open}});
  EXPECT_THAT(reply("GET /closed"), StartsWith("HTTP/1.1 401"));
  EXPECT_THAT(reply("GET /closed", "Authorization: Bearer 0123456789abcdef\r\n"),
              StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(reply("GET /open"), HasSubstr("for 127.0.0.1"));
  EXPECT_THAT(reply("GET /open", "Authorization: Bearer unknown_unknown_\r\n"),
              HasSubstr("for 127.0.0.1"));
  EXPECT_THAT(reply("GET /open", "Authorization: Bearer 0123456789abcdef\r\n"),
              HasSubstr("for key:ann"));
  EXPECT_THAT(reply("GET /open", "Origin: https://evil.example\r\n"), StartsWith("HTTP/1.1 403"));
}

TEST_F(RoutesTest, WhoIsLostIsToldOfWhatEverybodyMaySee) {
  Route open = page("/m");
  open.is_open = true;
  const std::vector<Route> routes{page("/closed"), open};
  serve({.routes = routes});
  EXPECT_THAT(reply("GET /none"), HasSubstr("/closed, /m\""));
  serve({.keys = {{"ann", "0123456789abcdef"}}, .routes = routes});
  EXPECT_THAT(reply("GET /none"), AllOf(HasSubstr(", /m\""), Not(HasSubstr("/closed"))));
}

TEST_F(RoutesTest, AReplyThatCannotBeSentIsAnInternalError) {
  const auto replying = [](const std::string& path, RouteReply made) {
    return Route{.path = path, .answer = [made](const RouteRequest&) { return made; }};
  };
  serve({.routes = {replying("/status", {.status = 99}),
                    replying("/type", {.content_type = "a\r\nb"}),
                    replying("/name", {.headers = {{"a b", "c"}}}),
                    replying("/value", {.headers = {{"a", "b\r\nSet-Cookie: c"}}}),
                    replying("/control", {.headers = {{"a", "b\x01"}}}),
                    replying("/delete", {.headers = {{"a", "b\x7f"}}}),
                    replying("/length", {.headers = {{"content-length", "2"}}}),
                    replying("/framing", {.headers = {{"Transfer-Encoding", "chunked"}}}),
                    replying("/types", {.headers = {{"Content-Type", "text/html"}}}),
                    replying("/origin", {.headers = {{"Access-Control-Allow-Origin", "*"}}}),
                    replying("/204", {.status = 204, .body = "body"}),
                    replying("/205", {.status = 205, .body = "body"}),
                    replying("/304", {.status = 304, .body = "body"}),
                    {.path = "/throws", .answer = [](const RouteRequest&) -> RouteReply {
                       throw std::runtime_error("secret");
                     }}}});
  for (const std::string path :
       {"/status", "/type", "/name", "/value", "/control", "/delete", "/length", "/framing",
        "/types", "/origin", "/204", "/205", "/304", "/throws"}) {
    const std::string got = reply("GET " + path);
    EXPECT_THAT(got, StartsWith("HTTP/1.1 500")) << path;
    EXPECT_THAT(got, Not(HasSubstr("secret")));
    EXPECT_THAT(got, Not(HasSubstr("Set-Cookie")));
  }
}

TEST_F(RoutesTest, AReplyWithoutContentHasNoLengthAndNoType) {
  const auto replying = [](const std::string& path, int status) {
    return Route{.path = path, .answer = [status](const RouteRequest&) {
                   return RouteReply{.status = status, .headers = {{"ETag", "\"a\""}}};
                 }};
  };
  serve({.routes = {replying("/204", 204), replying("/304", 304)}});
  for (const std::string status : {"204", "304"}) {
    const std::string got = reply("GET /" + status);
    EXPECT_THAT(got, StartsWith("HTTP/1.1 " + status));
    EXPECT_THAT(got, HasSubstr("ETag: \"a\"\r\n"));
    EXPECT_THAT(got, Not(HasSubstr("Content-")));
  }
}

TEST_F(RoutesTest, AFailedRouteIsNamedInTheLog) {
  serve({.routes = {{.path = "/broken", .answer = [](const RouteRequest&) -> RouteReply {
                       throw std::runtime_error("because");
                     }}}});
  ::testing::internal::CaptureStderr();
  reply("GET /broken");
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(log, HasSubstr("a Route failed path=/broken exception=because"));
}

TEST_F(RoutesTest, PathsThatCannotBeServedAreRefused) {
  EXPECT_EQ(
      refusal({.path = "mcp"}),
      "The path 'mcp' cannot be served: it must begin with '/', and have only characters of a "
      "URI's path");
  EXPECT_THAT(refusal({.path = "/m?p"}), HasSubstr("must begin with '/'"));
  EXPECT_EQ(refusal({.path = "/ws"}), "The path '/ws' cannot be served: something else is there");
  EXPECT_EQ(refusal({.path = "/ws", .websocket = false}), "");
  EXPECT_THAT(refusal({.path = "/streams/x"}), HasSubstr("something else is there"));
  const Server without_streams("test", "1", {.stream_methods = false});
  EXPECT_TRUE(start(without_streams, http{.port = 0, .routes = {page("/streams/x")}},
                    ServeOptions{.threads = 1}));
  EXPECT_THAT(refusal({.routes = {page("/mcp")}}), HasSubstr("something else is there"));
  EXPECT_THAT(refusal({.routes = {page("/a"), page("/a")}}), HasSubstr("something else is there"));
  EXPECT_THAT(refusal({.routes = {{.path = "/a"}}}), HasSubstr("its Route has no answer"));
  Route traced = page("/a");
  traced.method = "TRACE";
  EXPECT_THAT(refusal({.routes = {traced}}), HasSubstr("its method must be GET"));
}

}  // namespace
}  // namespace sluice
