#include "server/transport/http/sse_session_endpoint.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <string_view>

#include "server/dispatch/server_test_support.hpp"
#include "server/transport/http/endpoint_test_support.hpp"

namespace sluice {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr std::string_view kAccepted = "202 Accepted\r\nContent-Length: 0\r\n";

class SseSessionEndpointTest : public EndpointTest {
 protected:
  /// Opens a session's event stream, and sets `target` to where its messages are posted.
  Peer open(std::string_view headers = "") {
    Peer peer = connect_to_endpoint();
    peer.send(get("/sse", headers));
    EXPECT_TRUE(peer.expect("event: endpoint\ndata: "));
    EXPECT_THAT(peer.taken, HasSubstr("Content-Type: text/event-stream\r\n"));
    EXPECT_TRUE(peer.expect("\n\n"));
    // The target is relative to /sse, so that a path in front of both does no harm.
    target = "/" + peer.taken.substr(0, peer.taken.size() - 2);
    return peer;
  }
  std::string target;
};

TEST_F(SseSessionEndpointTest, AnswersWhatIsPostedOnItsStream) {
  definition.resources.push_back(resource_at("test://a"));
  Peer events = open();
  EXPECT_THAT(target, ::testing::MatchesRegex("/messages\\?sessionId=[a-z0-9]{32}"));
  ask(post(target, kPing), kAccepted);
  EXPECT_TRUE(events.expect("data: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n\n"));
  ask(post(target, "{"), kAccepted);
  EXPECT_TRUE(events.expect("\"code\":-32700"));
  ask(post(target, R"({"jsonrpc":"2.0","id":2,"method":"initialize","params":)"
                   R"({"protocolVersion":"2024-11-05","capabilities":{}}})"),
      kAccepted);
  EXPECT_TRUE(events.expect(R"("protocolVersion":"2024-11-05")"));
  // The connection is the session, as on every connection of messages.
  ask(post(target, R"({"jsonrpc":"2.0","id":3,"method":"resources/subscribe",)"
                   R"("params":{"uri":"test://a"}})"),
      kAccepted);
  EXPECT_TRUE(events.expect("\"id\":3"));
  changes->publish({Change::Kind::resource, "test://a"});
  EXPECT_TRUE(events.expect("notifications/resources/updated"));
  ask(post(target, R"({"jsonrpc":"2.0","id":4,"method":"tools/call","params":)"
                   R"({"name":"later","_meta":{"progressToken":"p"}}})"),
      kAccepted);
  ASSERT_TRUE(until([&] { return !calls.empty(); }));
  calls[0]->emit("half");
  calls[0]->complete({.text = "whole"});
  EXPECT_TRUE(events.expect("\"progressToken\":\"p\",\"progress\":1}}\n\ndata: "));
  EXPECT_TRUE(events.expect("\"whole\""));
  ask(post(target, R"({"jsonrpc":"2.0","id":5,"method":"run","params":{"stream":true}})"),
      kAccepted);
  EXPECT_TRUE(events.expect("streaming_started"));
  runs[0]->append(ChunkKind::text, "pushed");
  EXPECT_TRUE(events.expect("\"delta\":\"pushed\""));
}

TEST_F(SseSessionEndpointTest, ALongRequestIsCancelledWhileItIsParsed) {
  Peer events = open();
  ask(post(target, R"({"jsonrpc":"2.0","id":0,"method":"initialize","params":)"
                   R"({"protocolVersion":"2024-11-05","capabilities":{}}})"),
      kAccepted);
  const std::string call = R"("method":"tools/call","params":{"name":"later"}})";
  ask(post(target, R"({"jsonrpc":"2.0","id":1,)" + call), kAccepted);
  ASSERT_TRUE(until([&] { return calls.size() == 1; }));
  auto other = hold_up_parsing(*calls[0]);
  Peer poster = connect_to_endpoint();
  poster.send(post(
      target, "{" + std::string(LongMessages::kLong, ' ') + R"("jsonrpc":"2.0","id":2,)" + call));
  settle();
  ask(post(target,
           R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}})"),
      kAccepted);
  other = nullptr;
  EXPECT_TRUE(poster.expect(kAccepted));
  settle();
  EXPECT_EQ(calls.size(), 1U) << "it was not begun";
}

TEST_F(SseSessionEndpointTest, PostsWaitForAClientThatDoesNotReadItsStream) {
  Peer events = open();
  const std::string id(4000, 'i');
  const std::string ping = R"({"jsonrpc":"2.0","id":")" + id + R"(","method":"ping"})";
  Peer poster = connect_to_endpoint();
  int accepted = 0;
  // Sends until a post waits: the stream has no room.
  for (; accepted < 10'000; ++accepted) {
    poster.send(post(target, ping));
    settle();
    poster.receive();
    if (poster.received.empty()) break;
    ASSERT_TRUE(poster.expect("\r\n\r\n"));
  }
  ASSERT_LT(accepted, 10'000);
  for (int i = 0; i <= accepted; ++i) ASSERT_TRUE(events.expect(id)) << i;
  EXPECT_TRUE(poster.expect("\r\n\r\n")) << "the one that waited";
}

TEST_F(SseSessionEndpointTest, ASessionEndsWithItsStream) {
  Peer events = open();
  EXPECT_EQ(sessions->size(), 1U);
  ask(post(target, R"({"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"later"}})"),
      kAccepted);
  ASSERT_TRUE(until([&] { return !calls.empty(); }));
  events.close();
  EXPECT_TRUE(until([&] { return calls[0]->over(); }));
  EXPECT_EQ(sessions->size(), 0U);
  EXPECT_THAT(ask(post(target, kPing)), StartsWith("HTTP/1.1 404 "));
}

TEST_F(SseSessionEndpointTest, WhatIsNotHandledWhenItsSessionEndsIsNotFound) {
  bool waits = false;
  definition.middleware.push_back([&](Request& request) -> Task<> {
    waits = true;
    co_await request.sleep(std::chrono::minutes(1));
    co_await request.next();
  });
  Peer events = open();
  Peer poster = connect_to_endpoint();
  poster.send(post(target, R"({"jsonrpc":"2.0","id":1,"method":"initialize","params":)"
                           R"({"protocolVersion":"2025-03-26","capabilities":{}}})"));
  ASSERT_TRUE(until([&] { return waits; }));
  events.close();
  EXPECT_TRUE(poster.expect("Session not found")) << poster.received;
  EXPECT_THAT(poster.taken, StartsWith("HTTP/1.1 404 "));
}

TEST_F(SseSessionEndpointTest, ASessionIsItsPrincipalsOnly) {
  require({{"ann", "secret of ann"}, {"bob", "secret of bob"}});
  const std::string ann = "Authorization: Bearer secret of ann\r\n";
  EXPECT_THAT(ask(get("/sse")), StartsWith("HTTP/1.1 401 "));
  Peer events = open(ann);
  EXPECT_THAT(ask(post(target, kPing)), StartsWith("HTTP/1.1 401 "));
  EXPECT_THAT(ask(post(target, kPing, "X-API-Key: secret of bob\r\n")),
              StartsWith("HTTP/1.1 404 "));
  ask(post(target, kPing, ann), kAccepted);
  EXPECT_TRUE(events.expect("\"id\":1"));
  // POST /mcp does not know this session.
  EXPECT_THAT(ask(post("/mcp", kPing,
                       ann + "Mcp-Session-Id: " + target.substr(target.find('=') + 1) + "\r\n")),
              StartsWith("HTTP/1.1 404 "));
}

TEST_F(SseSessionEndpointTest, SaysWhatIsWrong) {
  EXPECT_THAT(ask(post("/messages", kPing)), StartsWith("HTTP/1.1 400 "));
  EXPECT_THAT(ask(post("/messages?sessionId=", kPing)), StartsWith("HTTP/1.1 404 "));
  EXPECT_THAT(ask(post("/messages?sessionId=x", kPing, "Content-Type: text/html\r\n")),
              StartsWith("HTTP/1.1 415 "));
  EXPECT_THAT(ask(get("/sse", "Accept: application/json\r\n")), StartsWith("HTTP/1.1 406 "));
  EXPECT_THAT(ask(get("/sse", "Origin: https://evil.example\r\n")), StartsWith("HTTP/1.1 403 "));
  EXPECT_EQ(sessions->size(), 0U);
  open("Accept: application/json\r\nAccept: text/event-stream\r\n");
}

TEST_F(SseSessionEndpointTest, TheLimitsOfSessionsHold) {
  session_limits.per_client = 1;
  Peer events = open();
  EXPECT_THAT(ask(get("/sse")), HasSubstr("-31010"));
  events.close();
  EXPECT_TRUE(until([&] { return sessions->size() == 0; }));
  Peer next = open();
}

TEST_F(SseSessionEndpointTest, WhoHasSeveralEndsOneForWhoHasNone) {
  session_limits.max_sessions = 2;
  Peer first = open();
  Peer second = open();
  const auto of_another = sessions->create("another", newest_revision(Era::legacy), {});
  ASSERT_TRUE(of_another);
  EXPECT_TRUE(first.expect("0\r\n\r\n"));
  EXPECT_THAT(ask(post(target, kPing), kAccepted), StartsWith("HTTP/1.1 202 "));
  EXPECT_EQ(sessions->size(), 2U);
}

TEST_F(SseSessionEndpointTest, ThereAreNoneWhereThereAreNoSessions) {
  session_limits.max_sessions = 0;
  EXPECT_THAT(ask(get("/sse")), StartsWith("HTTP/1.1 405 "));
  EXPECT_THAT(ask(post("/messages?sessionId=x", kPing)),
              AllOf(StartsWith("HTTP/1.1 405 "), HasSubstr("There are no sessions here")));
}

TEST_F(SseSessionEndpointTest, AtTheEndOfTheServerWhatIsUnderWayIsAnsweredFirst) {
  Peer events = open();
  ask(post(target, R"({"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"later"}})"),
      kAccepted);
  ASSERT_TRUE(until([&] { return !calls.empty(); }));
  changes->close();
  settle();
  events.receive();
  EXPECT_THAT(events.received, Not(HasSubstr("0\r\n\r\n")));
  calls[0]->complete({.text = "whole"});
  EXPECT_TRUE(events.expect("\"whole\""));
  EXPECT_TRUE(events.expect("0\r\n\r\n"));
  EXPECT_EQ(sessions->size(), 0U);
}

TEST_F(SseSessionEndpointTest, APageMayReadEveryReply) {
  const std::string page = "Origin: https://app.example\r\n";
  Peer events = connect_to_endpoint();
  events.send(get("/sse", page));
  ASSERT_TRUE(events.expect("event: endpoint\ndata: "));
  EXPECT_THAT(events.taken, HasSubstr("Access-Control-Allow-Origin: https://app.example\r\n"));
  ASSERT_TRUE(events.expect("\n\n"));
  target = events.taken.substr(0, events.taken.size() - 2);
  EXPECT_THAT(ask(post(target, kPing, page), "\r\n\r\n"),
              HasSubstr("Access-Control-Allow-Origin: https://app.example\r\n"));
}

}  // namespace
}  // namespace sluice
