#include "server/transport/http/session_endpoint.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <random>
#include <string>
#include <vector>

#include "server/dispatch/server_test_support.hpp"
#include "server/transport/http/endpoint_test_support.hpp"

namespace sluice {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr std::string_view kCallLater =
    R"({"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"later",)"
    R"("_meta":{"progressToken":"t"}}})";

class SessionEndpointTest : public EndpointTest {
 protected:
  static std::string last_event(std::string_view id) {
    return "Last-Event-ID: " + std::string(id) + "\r\n";
  }
  /// The id of the last event in `text`.
  static std::string event_id(std::string_view text) {
    const std::size_t at = text.rfind("id: ");
    if (at == std::string_view::npos) return {};
    return std::string(text.substr(at + 4, text.find('\n', at) - at - 4));
  }
  static std::string remove(const std::string& session) {
    return "DELETE /mcp HTTP/1.1\r\nHost: test\r\n" + session + "\r\n";
  }
};

TEST_F(SessionEndpointTest, ASessionIsNamedBoundToItsClientAndEndsWithDelete) {
  const std::string session = initialize();
  EXPECT_THAT(ask(post("/mcp", kPing, session)), StartsWith("HTTP/1.1 200"));
  const std::string unknown =
      ask(post("/mcp", kPing, "Mcp-Session-Id: 0123456789abcdef0123456789abcdef\r\n"));
  EXPECT_THAT(unknown, StartsWith("HTTP/1.1 404"));
  EXPECT_THAT(unknown, HasSubstr("begin another with initialize"));
  EXPECT_THAT(ask(remove(session), "\r\n\r\n"), StartsWith("HTTP/1.1 204"));
  EXPECT_THAT(ask(post("/mcp", kPing, session)), StartsWith("HTTP/1.1 404"));
  EXPECT_THAT(ask(remove(session)), StartsWith("HTTP/1.1 404"));
  EXPECT_THAT(ask(remove("")), StartsWith("HTTP/1.1 400"));
  EXPECT_EQ(sessions->size(), 0U);
}

TEST_F(SessionEndpointTest, TheSessionsRevisionIsTheOneSpoken) {
  const std::string session = initialize("2025-06-18");
  EXPECT_THAT(ask(post("/mcp", kPing, session + "MCP-Protocol-Version: 2025-06-18\r\n")),
              StartsWith("HTTP/1.1 200"));
  // A field that names another revision is no error and changes nothing: only 2025-03-26 has
  // batches.
  for (const std::string field :
       {"MCP-Protocol-Version: 2025-11-25\r\n", "MCP-Protocol-Version: 2025-03-26\r\n"}) {
    EXPECT_THAT(ask(post("/mcp", kPing, session + field)), StartsWith("HTTP/1.1 200"));
    EXPECT_THAT(ask(post("/mcp", "[" + std::string(kPing) + "]", session + field)),
                StartsWith("HTTP/1.1 400"));
  }
  for (const std::string field :
       {"MCP-Protocol-Version: 2025-11-26\r\n", "MCP-Protocol-Version: x\r\n"}) {
    const std::string response = R"({"jsonrpc":"2.0","id":1,"result":{}})";
    for (const std::string& reply :
         {ask(post("/mcp", kPing, session + field)), ask(post("/mcp", response, session + field)),
          ask(get("/mcp", "Accept: text/event-stream\r\n" + session + field)),
          ask(remove(session + field))}) {
      EXPECT_THAT(reply, StartsWith("HTTP/1.1 400"));
      EXPECT_THAT(reply, HasSubstr(R"("code":-32022)"));
      EXPECT_THAT(reply, HasSubstr(R"("data":{"supported":["2026-07-28",)"));
    }
  }
  for (const std::string& twice :
       {session + "MCP-Protocol-Version: 2025-06-18\r\nMCP-Protocol-Version: 2025-11-25\r\n",
        session + session}) {
    EXPECT_THAT(ask(post("/mcp", kPing, twice)), StartsWith("HTTP/1.1 400"));
    EXPECT_THAT(ask(remove(twice)), StartsWith("HTTP/1.1 400"));
  }
  EXPECT_EQ(sessions->size(), 1U);
}

TEST_F(SessionEndpointTest, ACancelledCallOfAClientWithoutStreamsIsNoStream) {
  const std::string session = initialize("2025-11-25");
  Peer peer = connect_to_endpoint();
  peer.send(post("/mcp",
                 R"({"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"later"}})",
                 session + "Accept: application/json\r\n"));
  ASSERT_TRUE(until([&] { return !calls.empty(); }));
  ask(post("/mcp",
           R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}})",
           session),
      "\r\n\r\n");
  ASSERT_TRUE(peer.expect("\r\n\r\n"));
  EXPECT_THAT(peer.taken, StartsWith("HTTP/1.1 202 "));
  EXPECT_THAT(peer.taken, Not(HasSubstr("event-stream")));
}

TEST_F(SessionEndpointTest, WithoutSessionsEachRequestStandsByItself) {
  session_limits.max_sessions = 0;
  const std::string reply =
      ask(post("/mcp", R"({"jsonrpc":"2.0","id":0,"method":"initialize","params":{)"
                       R"("protocolVersion":"2025-11-25","capabilities":{}}})"));
  EXPECT_THAT(reply, Not(HasSubstr("Mcp-Session-Id")));
  EXPECT_THAT(ask(post("/mcp", kPing, "Mcp-Session-Id: whatever\r\n")), StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(ask(get("/mcp", "Accept: text/event-stream\r\n")), StartsWith("HTTP/1.1 405"));
  EXPECT_THAT(ask(remove("Mcp-Session-Id: whatever\r\n")), StartsWith("HTTP/1.1 405"));
  EXPECT_THAT(ask("OPTIONS /mcp HTTP/1.1\r\nHost: test\r\n\r\n", "\r\n\r\n"),
              HasSubstr("Allow: POST, OPTIONS\r\n"));
}

TEST_F(SessionEndpointTest, ALimitOfSessionsIsSaid) {
  session_limits.max_sessions = 1;
  const std::string session = initialize();
  Peer peer = connect_to_endpoint();
  peer.send(get("/mcp", session + "Accept: text/event-stream\r\n"));
  ASSERT_TRUE(peer.expect(": open\n\n"));
  const std::string another =
      post("/mcp", R"({"jsonrpc":"2.0","id":0,"method":"initialize","params":{)"
                   R"("protocolVersion":"2025-11-25","capabilities":{}}})");
  const std::string reply = ask(another);
  EXPECT_THAT(reply, StartsWith("HTTP/1.1 503"));
  EXPECT_THAT(reply, HasSubstr("-31010"));
  peer.close();
  EXPECT_TRUE(until([&] { return ask(another).starts_with("HTTP/1.1 200"); }));
  EXPECT_THAT(ask(post("/mcp", kPing, session)), StartsWith("HTTP/1.1 404"))
      << "nobody used it, so it has made room";
}

TEST_F(SessionEndpointTest, WhatAnEndedSessionHasNotReadGoesWithIt) {
  const std::string session = initialize();
  {
    Peer peer = connect_to_endpoint();
    peer.send(post("/mcp", kCallLater, session));
    ASSERT_TRUE(peer.expect("\ndata: \n\n"));
  }
  settle();
  calls[0]->complete({.text = "done"});
  calls.clear();
  settle();
  EXPECT_EQ(manager.counters().open, 1U);
  ask(remove(session), "\r\n\r\n");
  EXPECT_TRUE(until([&] { return manager.counters().open == 0; }));
}

TEST_F(SessionEndpointTest, ACallOutlivesItsConnectionAndIsResumed) {
  const std::string session = initialize();
  std::string seen;
  {
    Peer peer = connect_to_endpoint();
    peer.send(post("/mcp", kCallLater, session));
    // The first event has an id and no message.
    ASSERT_TRUE(peer.expect("\ndata: \n\n"));
    EXPECT_THAT(peer.taken, HasSubstr(".0\ndata: \n\n"));
    calls[0]->emit("one");
    ASSERT_TRUE(peer.expect("\"one\"}}\n\n"));
    seen = event_id(peer.taken);
    calls[0]->emit("lost");
    settle();
  }
  settle();
  EXPECT_FALSE(calls[0]->over());
  calls[0]->emit("meanwhile");
  Peer peer = connect_to_endpoint();
  peer.send(get("/mcp", session + last_event(seen)));
  ASSERT_TRUE(peer.expect("\"meanwhile\"}}\n\n"));
  EXPECT_THAT(peer.taken, HasSubstr("\"lost\"}}\n\n"));
  EXPECT_THAT(peer.taken, Not(HasSubstr("\"one\"")));
  calls[0]->complete({.text = "whole"});
  calls.clear();
  ASSERT_TRUE(peer.expect("0\r\n\r\n"));
  EXPECT_THAT(peer.taken,
              HasSubstr(R"("id":7,"result":{"content":[{"type":"text","text":"whole"}])"));
}

TEST_F(SessionEndpointTest, AnAnswerWaitsForAClientThatComesBackAfterIt) {
  const std::string session = initialize();
  std::string primed;
  {
    Peer peer = connect_to_endpoint();
    peer.send(post("/mcp", kCallLater, session));
    ASSERT_TRUE(peer.expect("\ndata: \n\n"));
    primed = event_id(peer.taken);
  }
  settle();
  calls[0]->complete({.text = "done"});
  calls.clear();
  Peer peer = connect_to_endpoint();
  peer.send(get("/mcp", session + last_event(primed)));
  ASSERT_TRUE(peer.expect("0\r\n\r\n"));
  EXPECT_THAT(peer.taken, HasSubstr("\"done\""));
}

TEST_F(SessionEndpointTest, EveryMessageComesOnceHoweverOftenTheClientIsCutOff) {
  constexpr int kCuts = 1000;
  std::mt19937 random(2026);
  const std::string session = initialize();
  auto peer = std::make_unique<Peer>(connect_to_endpoint());
  peer->send(post("/mcp", kCallLater, session));
  ASSERT_TRUE(peer->expect("\ndata: \n\n"));
  std::string last = event_id(peer->taken);
  int emitted = 0;
  int read = 0;
  for (int cut = 0; cut < kCuts; ++cut) {
    for (std::uint32_t n = random() % 4; n > 0; --n) {
      calls[0]->emit("message " + std::to_string(emitted++) + ";");
    }
    // Some of the messages arrive. The rest are lost with the connection.
    for (std::uint32_t n = random() % 5; n > 0 && read < emitted; --n) {
      ASSERT_TRUE(peer->expect("}}\n\n"));
      ASSERT_THAT(peer->taken, HasSubstr("\"message " + std::to_string(read) + ";\"")) << cut;
      ++read;
      last = event_id(peer->taken);
    }
    if (random() % 2 == 0) {
      peer->reset();
    } else {
      peer->close();
    }
    // Sometimes the client is back before the server has noticed that it left.
    if (random() % 2 == 0) settle();
    peer = std::make_unique<Peer>(connect_to_endpoint());
    peer->send(get("/mcp", session + last_event(last)));
    ASSERT_TRUE(peer->expect(": open\n\n")) << peer->received;
  }
  calls[0]->complete({.text = "end"});
  calls.clear();
  while (read < emitted) {
    ASSERT_TRUE(peer->expect("}}\n\n"));
    ASSERT_THAT(peer->taken, HasSubstr("\"message " + std::to_string(read) + ";\""));
    ++read;
  }
  ASSERT_TRUE(peer->expect("0\r\n\r\n"));
  EXPECT_THAT(peer->taken, HasSubstr("\"end\""));
  EXPECT_THAT(peer->taken, Not(HasSubstr("\"message ")));
}

TEST_F(SessionEndpointTest, AResponseOfAnyLengthWaitsForAClientThatWasCutOffWithinIt) {
  const std::string session = initialize();
  std::string primed;
  {
    Peer peer = connect_to_endpoint();
    peer.send(post("/mcp", kCallLater, session));
    ASSERT_TRUE(peer.expect("\ndata: \n\n"));
    primed = event_id(peer.taken);
    calls[0]->complete({.text = std::string(300 << 10, 'x')});
    calls.clear();
    ASSERT_TRUE(peer.expect("xxx"));
  }
  for (int times = 0; times < 2; ++times) {
    Peer peer = connect_to_endpoint();
    peer.send(get("/mcp", session + last_event(primed)));
    ASSERT_TRUE(peer.expect("0\r\n\r\n")) << peer.received;
    EXPECT_THAT(peer.taken, HasSubstr("\"result\""));
  }
}

TEST_F(SessionEndpointTest, AReaderIsGivenTheAnswerAlsoWhereNotAllBeforeItIsKept) {
  const std::string session = initialize();
  std::string primed;
  {
    Peer peer = connect_to_endpoint();
    peer.send(post("/mcp", kCallLater, session));
    ASSERT_TRUE(peer.expect("\ndata: \n\n"));
    primed = event_id(peer.taken);
    for (int i = 0; i < 40; ++i) {
      calls[0]->emit("message " + std::to_string(i) + ";" + std::string(4 << 10, 'x'));
      settle();
    }
    ASSERT_TRUE(peer.expect("message 39;"));
  }
  calls[0]->complete({.text = "the answer"});
  calls.clear();
  settle();
  Peer peer = connect_to_endpoint();
  peer.send(get("/mcp", session + last_event(primed)));
  ASSERT_TRUE(peer.expect("0\r\n\r\n")) << peer.received;
  EXPECT_THAT(peer.taken, StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(peer.taken, Not(HasSubstr("message 0;")));
  EXPECT_THAT(peer.taken, HasSubstr("message 39;"));
  EXPECT_THAT(peer.taken, HasSubstr("the answer"));
}

TEST_F(SessionEndpointTest, ACallThatGoesOnAloneCanBeCancelledAndEndsWithItsSession) {
  const std::string session = initialize();
  for (const bool by_delete : {false, true}) {
    Peer peer = connect_to_endpoint();
    peer.send(post("/mcp", kCallLater, session));
    ASSERT_TRUE(peer.expect("\ndata: \n\n"));
    peer.close();
    settle();
    ASSERT_FALSE(calls.back()->over());
    if (by_delete) {
      ask(remove(session), "\r\n\r\n");
    } else {
      ask(post("/mcp",
               R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}})",
               session),
          "\r\n\r\n");
    }
    EXPECT_TRUE(until([&] { return calls.back()->over(); }));
  }
}

TEST_F(SessionEndpointTest, ACallWhoseClientStaysAwayIsCancelled) {
  session_limits.resume_window = std::chrono::milliseconds(20);
  const std::string session = initialize();
  Peer peer = connect_to_endpoint();
  peer.send(post("/mcp", kCallLater, session));
  ASSERT_TRUE(peer.expect("\ndata: \n\n"));
  const std::string primed = event_id(peer.taken);
  peer.close();
  // If the client is back in time, the call continues, however often the server checks for it.
  Peer back = connect_to_endpoint();
  back.send(get("/mcp", session + last_event(primed)));
  ASSERT_TRUE(back.expect(": open\n\n"));
  bool looked = false;
  loop.schedule_at(loop.clock().now() + std::chrono::milliseconds(100), [&] { looked = true; });
  ASSERT_TRUE(until([&] { return looked; }));
  EXPECT_FALSE(calls[0]->over());
  back.close();
  EXPECT_TRUE(until([&] { return calls[0]->over(); }));
}

TEST_F(SessionEndpointTest, BeforeThePrimingEventAReplyCanBePlainJson) {
  const std::string session = initialize("2025-06-18");
  Peer peer = connect_to_endpoint();
  peer.send(post("/mcp", kCallLater, session));
  ASSERT_TRUE(until([&] { return !calls.empty(); }));
  calls[0]->complete({.text = "plain"});
  ASSERT_TRUE(peer.expect("}}"));
  EXPECT_THAT(peer.taken, HasSubstr("Content-Type: application/json"));
}

TEST_F(SessionEndpointTest, TheClientIsAskedOnTheStreamOfItsRequest) {
  const std::string session = initialize("2025-11-25", R"({"elicitation":{}})");
  Peer peer = connect_to_endpoint();
  peer.send(post("/mcp", kCallLater, session));
  ASSERT_TRUE(until([&] { return !calls.empty(); }));
  std::string heard;
  const json::value no_fields = {{"type", "object"}, {"properties", json::object()}};
  calls[0]->ask(
      {{"name", "elicitation/create", {{"message", "Who?"}, {"requestedSchema", no_fields}}}},
      [&](Result<std::vector<json::value>> answers) {
        ASSERT_TRUE(answers);
        heard = to_json((*answers)[0]);
      });
  ASSERT_TRUE(
      peer.expect(R"("method":"elicitation/create","params":{"message":"Who?","requestedSchema":)"
                  R"({"type":"object","properties":{}}}})"));
  EXPECT_THAT(
      ask(post("/mcp", R"({"jsonrpc":"2.0","id":1,"result":{"action":"accept"}})", initialize()),
          "\r\n\r\n"),
      StartsWith("HTTP/1.1 202"));
  settle();
  EXPECT_EQ(heard, "") << "another session's answer";
  const std::size_t at = peer.taken.rfind("\"id\":") + 5;
  const std::string id = peer.taken.substr(at, peer.taken.find(',', at) - at);
  EXPECT_THAT(
      ask(post("/mcp", R"({"jsonrpc":"2.0","id":)" + id + R"(,"result":{"action":"decline"}})",
               session),
          "\r\n\r\n"),
      StartsWith("HTTP/1.1 202"));
  EXPECT_TRUE(until([&] { return heard == R"({"action":"decline"})"; }));
}

TEST_F(SessionEndpointTest, AClientIsNotAskedForWhatItHasNotDeclared) {
  const std::string session = initialize("2025-11-25", R"({"roots":{}})");
  Peer peer = connect_to_endpoint();
  peer.send(post("/mcp", kCallLater, session));
  ASSERT_TRUE(until([&] { return !calls.empty(); }));
  std::optional<Error> error;
  calls[0]->ask({{"model", "sampling/createMessage", {}}},
                [&](const Result<std::vector<json::value>>& answers) { error = answers.error(); });
  ASSERT_TRUE(error);
  EXPECT_THAT(error->message, HasSubstr(R"({"sampling":{}})"));
}

TEST_F(SessionEndpointTest, TheStandaloneStreamHasOneReader) {
  const std::string session = initialize();
  Peer first = connect_to_endpoint();
  first.send(get("/mcp", session + "Accept: text/event-stream\r\n"));
  ASSERT_TRUE(first.expect(": open\n\n"));
  EXPECT_THAT(first.taken, HasSubstr("Content-Type: text/event-stream"));
  Peer second = connect_to_endpoint();
  second.send(get("/mcp", session + "Accept: text/event-stream\r\n"));
  ASSERT_TRUE(second.expect(": open\n\n"));
  EXPECT_TRUE(first.expect("0\r\n\r\n"));
}

TEST_F(SessionEndpointTest, TheStandaloneStreamGoesWithItsSession) {
  const std::string session = initialize();
  Peer peer = connect_to_endpoint();
  peer.send(get("/mcp", session + "Accept: text/event-stream\r\n"));
  ASSERT_TRUE(peer.expect(": open\n\n"));
  EXPECT_EQ(manager.counters().open, 1U);
  ask(remove(session), "\r\n\r\n");
  EXPECT_TRUE(peer.expect("0\r\n\r\n"));
  EXPECT_TRUE(until([&] { return manager.counters().open == 0; }));
  EXPECT_EQ(manager.counters().active, 0U);
}

TEST_F(SessionEndpointTest, AShutdownWaitsForNoReaderOfAStandaloneStreamThatHasNone) {
  const std::string left = initialize();
  const std::string followed = initialize();
  {
    Peer peer = connect_to_endpoint();
    peer.send(get("/mcp", left + "Accept: text/event-stream\r\n"));
    ASSERT_TRUE(peer.expect(": open\n\n"));
  }
  Peer peer = connect_to_endpoint();
  peer.send(get("/mcp", followed + "Accept: text/event-stream\r\n"));
  ASSERT_TRUE(peer.expect(": open\n\n"));
  settle();
  changes->close();
  EXPECT_TRUE(peer.expect("0\r\n\r\n"));
  settle();
  EXPECT_EQ(manager.counters().active, 0U);
  EXPECT_EQ(manager.counters().unread, 0U);
}

TEST_F(SessionEndpointTest, ChangesComeOnTheStandaloneStreamOfWhoeverAskedForThem) {
  definition.announces_changes = true;
  definition.resources.push_back(resource_at("test://a"));
  const std::string session = initialize();
  ask(post("/mcp",
           R"({"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"test://a"}})",
           session));
  EXPECT_THAT(ask(post("/mcp",
                       R"({"jsonrpc":"2.0","id":1,"method":"resources/subscribe",)"
                       R"("params":{"uri":"test://unknown"}})",
                       session)),
              HasSubstr("-32002"));
  std::string last;
  {
    Peer peer = connect_to_endpoint();
    peer.send(get("/mcp", session + "Accept: text/event-stream\r\n"));
    ASSERT_TRUE(peer.expect(": open\n\n"));
    changes->publish({Change::Kind::resource, "test://b"});
    changes->publish({Change::Kind::resource, "test://a"});
    ASSERT_TRUE(peer.expect("}\n\n"));
    EXPECT_THAT(peer.taken,
                HasSubstr(R"({"jsonrpc":"2.0","method":"notifications/resources/updated",)"
                          R"("params":{"uri":"test://a"}})"));
    last = event_id(peer.taken);
  }
  settle();
  changes->publish({Change::Kind::tools});
  settle();
  // A client that comes back gets what it has missed, with or without the id of the last event.
  for (const std::string& resume : {last_event(last), std::string()}) {
    Peer peer = connect_to_endpoint();
    peer.send(get("/mcp", session + resume + "Accept: text/event-stream\r\n"));
    ASSERT_TRUE(peer.expect(": open\n\n"));
    if (resume.empty()) changes->publish({Change::Kind::prompts});
    ASSERT_TRUE(peer.expect("}\n\n"));
    EXPECT_THAT(peer.taken, HasSubstr(resume.empty() ? "notifications/prompts/list_changed"
                                                     : "notifications/tools/list_changed"));
  }
}

TEST_F(SessionEndpointTest, GetSaysWhatIsWrong) {
  const std::string session = initialize();
  const std::string events = "Accept: text/event-stream\r\n";
  EXPECT_THAT(ask(get("/mcp", events)), StartsWith("HTTP/1.1 400"));
  EXPECT_THAT(ask(get("/mcp", session + "Accept: application/json\r\n")),
              StartsWith("HTTP/1.1 406"));
  EXPECT_THAT(ask(get("/mcp", session + "Accept: text/html\r\n" + events + last_event("17"))),
              StartsWith("HTTP/1.1 400"));
  EXPECT_THAT(ask(get("/mcp", session + events + last_event("0123456789abcdef.3"))),
              StartsWith("HTTP/1.1 410"));
  // A session cannot read the stream of another one.
  const std::string other = initialize();
  Peer peer = connect_to_endpoint();
  peer.send(post("/mcp", kCallLater, other));
  ASSERT_TRUE(peer.expect("\ndata: \n\n"));
  EXPECT_THAT(ask(get("/mcp", session + events + last_event(event_id(peer.taken)))),
              StartsWith("HTTP/1.1 410"));
  EXPECT_THAT(
      ask(get("/mcp", other + events + last_event(event_id(peer.taken).substr(0, 16) + ".99"))),
      StartsWith("HTTP/1.1 400"));
}

TEST_F(SessionEndpointTest, AConnectionIsClosedAndTakenUpAgain) {
  const std::string session = initialize();
  Peer peer = connect_to_endpoint();
  peer.send(post("/mcp", kCallLater, session));
  ASSERT_TRUE(until([&] { return !calls.empty(); }));
  calls[0]->disconnect(std::chrono::milliseconds(500));
  ASSERT_TRUE(peer.expect("0\r\n\r\n"));
  EXPECT_THAT(peer.taken, HasSubstr("retry: 500\n\n"));
  const std::string primed = event_id(peer.taken);
  calls[0]->complete({.text = "later"});
  calls.clear();
  peer.send(get("/mcp", session + last_event(primed)));
  ASSERT_TRUE(peer.expect("0\r\n\r\n"))
      << primed << " got " << peer.received << " ended " << peer.ended;
  EXPECT_THAT(peer.taken, HasSubstr("\"later\""));
  // Nothing follows the answer.
  peer.send(get("/mcp", session + last_event(event_id(peer.taken))));
  ASSERT_TRUE(peer.expect("0\r\n\r\n"));
  EXPECT_THAT(peer.taken, StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(peer.taken, Not(HasSubstr("data: ")));
}

}  // namespace
}  // namespace sluice
