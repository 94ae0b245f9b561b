#include "server/transport/http/message_body.hpp"

#include <algorithm>
#include <cstddef>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/dispatch/server_test_support.hpp"
#include "server/transport/http/endpoint_test_support.hpp"

namespace sluice {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr std::string_view kLines =
    "Content-Type: application/x-ndjson; charset=utf-8\r\n"
    "Accept: application/json, text/event-stream, application/x-ndjson\r\n";
constexpr std::string_view kEvents =
    "Content-Type: application/x-ndjson\r\nAccept: text/event-stream\r\n";

std::string ping_line(std::string_view id) {
  return ping(id) + "\n";
}
std::string pong(std::string_view id) {
  return R"({"jsonrpc":"2.0","id":)" + std::string(id) + R"(,"result":{}})";
}
std::string later(std::string_view id) {
  return R"({"jsonrpc":"2.0","id":)" + std::string(id) +
         R"(,"method":"tools/call","params":{"name":"later","_meta":{"progressToken":"p"}}})" +
         "\n";
}
std::string chunk(std::string_view text) {
  std::string framed(text);
  frame_chunk(framed);
  return framed;
}

class MessageBodyTest : public EndpointTest {
 protected:
  /// Begins a body that has no end yet.
  Peer begin(std::string_view headers) {
    Peer peer = connect_to_endpoint();
    peer.send("POST /mcp HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n" +
              std::string(headers) + "\r\n");
    return peer;
  }

  MemoryBudget memory{1U << 20U};  // for tests with little memory
};

TEST_F(MessageBodyTest, MessagesAreAnsweredWhileItArrives) {
  Peer peer = begin(kLines);
  peer.send(chunk(ping_line("1") + "\r\n" + ping_line("2").substr(0, 20)));
  ASSERT_TRUE(peer.expect(pong("1") + "\n"));
  EXPECT_THAT(peer.taken, HasSubstr("Content-Type: application/x-ndjson\r\n"));
  peer.send(chunk(ping_line("2").substr(20) + later("3")));
  ASSERT_TRUE(peer.expect(pong("2") + "\n"));
  ASSERT_TRUE(until([&] { return !calls.empty(); }));
  calls[0]->emit("half");
  ASSERT_TRUE(peer.expect("\"half\"}}\n"));
  // A quick answer does not wait for a slow one, and the last line needs no line end.
  const std::string last = ping_line("4");
  peer.send(chunk(last.substr(0, last.size() - 1)) + "0\r\n\r\n");
  ASSERT_TRUE(peer.expect(pong("4") + "\n"));
  calls[0]->complete({.text = "whole"});
  ASSERT_TRUE(peer.expect("0\r\n\r\n"));
  EXPECT_THAT(peer.taken, HasSubstr("{\"jsonrpc\":\"2.0\",\"id\":3,"));
  EXPECT_TRUE(peer.expect_end());
}

TEST_F(MessageBodyTest, OrWithEvents) {
  const std::string reply =
      ask(post("/mcp", ping_line("1") + ping_line("2"), kEvents), "0\r\n\r\n");
  EXPECT_THAT(reply, HasSubstr("Content-Type: text/event-stream\r\n"));
  EXPECT_THAT(reply, HasSubstr("data: " + pong("1") + "\n\n"));
  EXPECT_THAT(reply, HasSubstr("data: " + pong("2") + "\n\n"));
  EXPECT_THAT(ask(post("/mcp", ping_line("1"),
                       "Content-Type: application/x-ndjson\r\nAccept: application/json\r\n")),
              StartsWith("HTTP/1.1 406 "));
  EXPECT_THAT(ask(post("/mcp", ping_line("1"),
                       "Content-Type: application/x-ndjson\r\nAccept: text/event-stream\r\n"
                       "Accept: application/x-ndjson\r\n"),
                  "0\r\n\r\n"),
              HasSubstr("Content-Type: application/x-ndjson\r\n"));
}

TEST_F(MessageBodyTest, ThatAsksForNothingIsAccepted) {
  EXPECT_THAT(ask(post("/mcp",
                       R"({"jsonrpc":"2.0","method":"notifications/initialized"})"
                       "\n",
                       kLines),
                  "\r\n\r\n"),
              StartsWith("HTTP/1.1 202 "));
  EXPECT_THAT(ask(post("/mcp", "", kLines), "\r\n\r\n"), StartsWith("HTTP/1.1 202 "));
}

TEST_F(MessageBodyTest, AWrongLineIsAnsweredAndTheNextOneRead) {
  const std::string reply =
      ask(post("/mcp",
               "{\n[" + ping_line("1").substr(0, ping_line("1").size() - 1) + "]\n" +
                   R"({"jsonrpc":"2.0","id":2,"method":"initialize","params":)"
                   R"({"protocolVersion":"2025-06-18","capabilities":{}}})"
                   "\n" +
                   R"({"jsonrpc":"2.0","id":3,"method":"server/discover","params":{"_meta":{)"
                   R"("io.modelcontextprotocol/protocolVersion":"2026-07-28",)"
                   R"("io.modelcontextprotocol/clientCapabilities":{}}}})"
                   "\n" +
                   ping_line("4"),
               kLines),
          "0\r\n\r\n");
  EXPECT_THAT(reply, HasSubstr("-32700"));
  EXPECT_THAT(reply, HasSubstr("send each of its messages as a line"));
  EXPECT_THAT(reply, HasSubstr("send initialize in a POST of its own"));
  EXPECT_THAT(reply, HasSubstr("supportedVersions"));
  EXPECT_THAT(reply, HasSubstr(pong("4")));
  EXPECT_THAT(reply, Not(HasSubstr(pong("1"))));
  EXPECT_EQ(sessions->size(), 0U);
}

TEST_F(MessageBodyTest, FieldsThatAreThereMirrorEachMessage) {
  const auto read = [](std::string_view id, std::string_view uri) {
    return R"({"jsonrpc":"2.0","id":)" + std::string(id) +
           R"(,"method":"resources/read","params":{"uri":")" + std::string(uri) +
           R"(","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",)"
           R"("io.modelcontextprotocol/clientCapabilities":{}}}})"
           "\n";
  };
  const auto answers = [&](std::string_view fields) {
    return ask(post("/mcp", read("1", "test://a") + read("2", "test://b"),
                    std::string(kLines) + std::string(fields)),
               "0\r\n\r\n");
  };
  constexpr std::string_view kMismatch = R"("code":-32020)";
  EXPECT_THAT(answers(""), Not(HasSubstr(kMismatch)));
  EXPECT_THAT(answers("MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: resources/read\r\n"),
              Not(HasSubstr(kMismatch)));
  for (const std::string_view fields :
       {"Mcp-Method: ping\r\n", "MCP-Protocol-Version: 2025-11-25\r\n",
        "Mcp-Method: resources/read\r\nMcp-Method: ping\r\n"}) {
    EXPECT_THAT(answers(fields), ::testing::ContainsRegex("\"id\":1,[^\n]*-32020")) << fields;
    EXPECT_THAT(answers(fields), ::testing::ContainsRegex("\"id\":2,[^\n]*-32020")) << fields;
  }
  const std::string one = answers("Mcp-Name: test://a\r\n");
  EXPECT_THAT(one, Not(::testing::ContainsRegex("\"id\":1,[^\n]*-32020")));
  EXPECT_THAT(one, ::testing::ContainsRegex("\"id\":2,[^\n]*-32020"));
}

TEST_F(MessageBodyTest, IsReadNoFasterThanItIsAnswered) {
  Peer peer = begin(kLines);
  std::string many;
  for (std::size_t i = 0; i < MessageBody::kMaxOpen + 2; ++i) many += later(std::to_string(i));
  // This also holds for the lines that are left when the body has ended.
  peer.send(chunk(many) + "0\r\n\r\n");
  ASSERT_TRUE(until([&] { return calls.size() == MessageBody::kMaxOpen; }));
  settle();
  EXPECT_EQ(calls.size(), MessageBody::kMaxOpen);
  calls[0]->complete({.text = "done"});
  ASSERT_TRUE(until([&] { return calls.size() == MessageBody::kMaxOpen + 1; }));
  for (std::size_t i = 1; i < calls.size(); ++i) calls[i]->complete({.text = "done"});
  ASSERT_TRUE(until([&] { return calls.size() == MessageBody::kMaxOpen + 2; }));
  calls.back()->complete({.text = "done"});
  EXPECT_TRUE(peer.expect("0\r\n\r\n"));
}

TEST_F(MessageBodyTest, ResponsesAreReadBehindRequestsThatWait) {
  const std::string session = initialize("2025-06-18", R"({"roots":{}})");
  Peer peer = begin(std::string(kLines) + session);
  std::string many;
  for (std::size_t i = 0; i < MessageBody::kMaxOpen; ++i) many += later(std::to_string(i));
  peer.send(chunk(many + ping_line("\"a\"") + later("\"b\"") + later("\"c\"") +
                  R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":)"
                  R"({"requestId":"b"}})"
                  "\n"));
  ASSERT_TRUE(until([&] { return calls.size() == MessageBody::kMaxOpen; }));
  bool is_answered = false;
  calls[0]->ask({{"roots", "roots/list", {}}},
                [&](const Result<std::vector<json::value>>&) { is_answered = true; });
  ASSERT_TRUE(peer.expect(R"("method":"roots/list"})"));
  EXPECT_THAT(peer.taken, Not(HasSubstr(pong("\"a\""))));
  const std::size_t at = peer.taken.rfind("\"id\":") + 5;
  const std::string id = peer.taken.substr(at, peer.taken.find(',', at) - at);
  peer.send(chunk(R"({"jsonrpc":"2.0","id":)" + id + R"(,"result":{"roots":[]}})" + "\n"));
  ASSERT_TRUE(until([&] { return is_answered; }));
  // What waits keeps its order.
  calls[0]->complete({.text = "done"});
  ASSERT_TRUE(peer.expect(pong("\"a\"")));
  calls[1]->complete({.text = "done"});
  // A request that is cancelled while it waits is not begun.
  ASSERT_TRUE(until([&] { return calls.size() == MessageBody::kMaxOpen + 1; }));
  for (const auto& call : calls) call->complete({.text = "done"});
  peer.send("0\r\n\r\n");
  EXPECT_TRUE(peer.expect("0\r\n\r\n"));
  EXPECT_THAT(peer.taken, HasSubstr("\"id\":\"c\","));
  EXPECT_THAT(peer.taken, Not(HasSubstr("\"id\":\"b\",")));
}

TEST_F(MessageBodyTest, ResponsesAreReadBehindAnyNumberOfRequests) {
  const std::string session = initialize("2025-06-18", R"({"roots":{}})");
  Peer peer = begin(std::string(kLines) + session);
  std::string many;
  for (std::size_t i = 0; i < MessageBody::kMaxOpen; ++i) many += later(std::to_string(i));
  for (std::size_t i = 0; i < MessageBody::kMaxHeld; ++i) many += ping_line("\"held\"");
  peer.send(chunk(many + ping_line("\"more\"") +
                  R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":)"
                  R"({"requestId":1}})"
                  "\n"));
  ASSERT_TRUE(until([&] { return calls.size() == MessageBody::kMaxOpen; }));
  settle();
  EXPECT_FALSE(calls[1]->over()) << "no more is read while nobody waits for it";
  bool is_answered = false;
  calls[0]->ask({{"roots", "roots/list", {}}},
                [&](const Result<std::vector<json::value>>&) { is_answered = true; });
  ASSERT_TRUE(peer.expect(R"("method":"roots/list"})"));
  const std::size_t at = peer.taken.rfind("\"id\":") + 5;
  const std::string id = peer.taken.substr(at, peer.taken.find(',', at) - at);
  ASSERT_TRUE(peer.expect(R"({"jsonrpc":"2.0","id":"more","error":{"code":-31000)"));
  ASSERT_TRUE(until([&] { return calls[1]->over(); }));
  peer.send(chunk(R"({"jsonrpc":"2.0","id":)" + id + R"(,"result":{"roots":[]}})" + "\n"));
  ASSERT_TRUE(until([&] { return is_answered; }));
  for (const auto& call : calls) call->complete({.text = "done"});
  peer.send("0\r\n\r\n");
  EXPECT_TRUE(peer.expect("0\r\n\r\n"));
}

TEST_F(MessageBodyTest, CancellationsOvertakeRequestsThatWait) {
  Peer peer = begin(std::string(kLines) + initialize("2025-06-18", "{}"));
  std::string many;
  for (std::size_t i = 0; i < MessageBody::kMaxOpen; ++i) many += later(std::to_string(i));
  peer.send(chunk(many + ping_line("\"a\"") +
                  R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":)"
                  R"({"requestId":7}})"
                  "\n"));
  EXPECT_TRUE(peer.expect(pong("\"a\"")));
  EXPECT_TRUE(calls[7]->over());
}

TEST_F(MessageBodyTest, ARequestThatWaitsIsCancelledFromElsewhere) {
  const std::string session = initialize("2025-06-18", "{}");
  Peer peer = begin(std::string(kLines) + session);
  std::string many;
  for (std::size_t i = 0; i < MessageBody::kMaxOpen; ++i) many += later(std::to_string(i));
  peer.send(chunk(many + later("\"a\"") + ping_line("\"b\"")) + "0\r\n\r\n");
  ASSERT_TRUE(until([&] { return calls.size() == MessageBody::kMaxOpen; }));
  settle();
  cancel("\"a\"", session);
  settle();
  calls[0]->complete({.text = "done"});
  EXPECT_TRUE(peer.expect(pong("\"b\"")));
  EXPECT_EQ(calls.size(), MessageBody::kMaxOpen) << "it was not begun";
  for (const auto& call : calls) call->complete({.text = "done"});
  EXPECT_TRUE(peer.expect("0\r\n\r\n"));
  EXPECT_THAT(peer.taken, Not(HasSubstr("\"id\":\"a\"")));
}

TEST_F(MessageBodyTest, ALongRequestThatHasWaitedIsCancelledWhileItIsParsed) {
  const std::string session = initialize("2025-06-18", "{}");
  Peer peer = begin(std::string(kLines) + session);
  const std::string padding(LongMessages::kLong, ' ');
  std::string many;
  for (std::size_t i = 0; i < MessageBody::kMaxOpen; ++i) many += later(std::to_string(i));
  peer.send(chunk(many + "{" + padding + later("\"a\"").substr(1) + ping_line("\"b\"")) +
            "0\r\n\r\n");
  ASSERT_TRUE(until([&] { return calls.size() == MessageBody::kMaxOpen; }));
  settle();
  auto other = hold_up_parsing(*calls[0]);
  calls[0]->complete({.text = "done"});
  settle();
  cancel("\"a\"", session);
  other = nullptr;
  EXPECT_TRUE(peer.expect(pong("\"b\"")));
  EXPECT_EQ(calls.size(), MessageBody::kMaxOpen) << "it was not begun";
  for (const auto& call : calls) call->complete({.text = "done"});
  EXPECT_TRUE(peer.expect("0\r\n\r\n"));
  EXPECT_THAT(peer.taken, Not(HasSubstr("\"id\":\"a\"")));
}

TEST_F(MessageBodyTest, ALongRequestIsCancelledWhileItIsParsed) {
  const std::string session = initialize("2025-06-18", "{}");
  Peer peer = begin(std::string(kLines) + session);
  peer.send(chunk(later("1")));
  ASSERT_TRUE(until([&] { return calls.size() == 1; }));
  auto other = hold_up_parsing(*calls[0]);
  const std::string padding(LongMessages::kLong, ' ');
  peer.send(chunk("{" + padding + later("\"a\"").substr(1) + ping_line("\"b\"")) + "0\r\n\r\n");
  settle();
  cancel("\"a\"", session);
  other = nullptr;
  EXPECT_TRUE(peer.expect(pong("\"b\"")));
  EXPECT_EQ(calls.size(), 1U) << "it was not begun";
  calls[0]->complete({.text = "done"});
  EXPECT_TRUE(peer.expect("0\r\n\r\n"));
  EXPECT_THAT(peer.taken, Not(HasSubstr("\"id\":\"a\"")));
}

TEST_F(MessageBodyTest, ALongArrayIsAnsweredAsAShortOne) {
  const std::string padding(LongMessages::kLong, ' ');
  EXPECT_THAT(ask(post("/mcp", "[" + padding + "]\n" + ping_line("1"), kLines), "0\r\n\r\n"),
              AllOf(HasSubstr("send each of its messages as a line"), HasSubstr(pong("1"))));
}

TEST_F(MessageBodyTest, ManyLinesGiveWayToOthers) {
  std::size_t handled = 0;
  definition.tools.push_back({.name = "count",
                              .description = "",
                              .input_schema = R"({"type":"object"})",
                              .handler = Tool::Immediate([&](const json::object&) {
                                ++handled;
                                return Result<ToolResult>(ToolResult{.text = ""});
                              })});
  Peer peer = begin(kLines);
  std::string many;
  for (int i = 0; i < 1000; ++i) {
    many += R"({"jsonrpc":"2.0","id":)" + std::to_string(i) +
            R"(,"method":"tools/call","params":{"name":"count"}})" + "\n";
  }
  peer.send(chunk(many) + "0\r\n\r\n");
  std::size_t most = 0;
  ASSERT_TRUE(until([&, before = std::size_t{0}]() mutable {
    most = std::max(most, handled - std::exchange(before, handled));
    peer.receive();
    return peer.received.ends_with("0\r\n\r\n");
  }));
  EXPECT_EQ(handled, 1000U);
  // A turn of the loop runs posted tasks a few times, before and after it looks at the sockets.
  EXPECT_LE(most, 8 * MessageBody::kMaxTurn);
}

TEST_F(MessageBodyTest, ALineHasATimeAndABodyHasNone) {
  Peer peer = begin(kLines);
  const Duration step = options.request_timeout / 3;
  // Each line begins in one chunk and ends in the next.
  const std::string line = ping_line("1");
  peer.send(chunk(line.substr(0, 9)));
  for (int i = 0; i < 12; ++i) {
    pass(step);
    peer.send(chunk(line.substr(9) + line.substr(0, 9)));
    ASSERT_TRUE(peer.expect(pong("1") + "\n")) << i;
  }
  // More bytes alone do not extend the time.
  for (int i = 0; i < 2; ++i) {
    pass(step);
    peer.send(chunk(" "));
    settle();
  }
  EXPECT_FALSE(peer.ended);
  pass(step);
  EXPECT_TRUE(peer.expect_end());
}

TEST_F(MessageBodyTest, WhatWaitsForAnswersIsNotLate) {
  Peer peer = begin(kLines);
  std::string many;
  for (std::size_t i = 0; i < MessageBody::kMaxOpen; ++i) many += later(std::to_string(i));
  for (std::size_t i = 0; i < MessageBody::kMaxHeld; ++i) many += ping_line("\"x\"");
  peer.send(chunk(many + ping_line("1").substr(0, 9)));
  ASSERT_TRUE(until([&] { return calls.size() == MessageBody::kMaxOpen; }));
  pass(2 * options.request_timeout);
  for (const auto& call : calls) call->complete({.text = "done"});
  settle();
  pass(options.request_timeout / 2);
  peer.send(chunk(ping_line("1").substr(9)));
  EXPECT_TRUE(peer.expect(pong("1") + "\n"));
}

TEST_F(MessageBodyTest, ThatExceedsTheMemoryIsBrokenOffAndEndsItsCalls) {
  options.memory = &memory;
  const std::string line(450'000, '{');
  for (int i = 0; i < 4; ++i) {
    Peer peer = begin(kLines);
    peer.send(chunk(later("1")));
    ASSERT_TRUE(until([&] { return !calls.empty(); }));
    peer.send(chunk(line));
    settle();
    // If earlier bodies still held memory, there would be none for this one.
    EXPECT_FALSE(peer.ended) << i;
    EXPECT_FALSE(calls[0]->over());
    peer.send(chunk(line));
    EXPECT_TRUE(peer.expect_end());
    EXPECT_TRUE(until([&] { return calls[0]->over(); }));
    calls.clear();
  }
}

TEST_F(MessageBodyTest, ThatFindsNoMemoryBeforeItsReplyHasBegunIsRefused) {
  options.memory = &memory;
  Peer peer = begin(kLines);
  peer.send(chunk(std::string(450'000, '{')));
  settle();
  peer.send(chunk(std::string(450'000, '{')));
  EXPECT_TRUE(peer.expect("http.max_total_buffers"));
  EXPECT_THAT(peer.taken, AllOf(StartsWith("HTTP/1.1 503"), HasSubstr("-31000")));
  EXPECT_TRUE(peer.expect_end());
}

TEST_F(MessageBodyTest, TheHeadThatItKeepsTakesMemory) {
  options.memory = &memory;
  options.max_header_bytes = 200'000;
  Peer peer = begin(std::string(kLines) + "X-Long: " + std::string(100'000, 'x') + "\r\n");
  peer.send(chunk(ping_line("1")));
  ASSERT_TRUE(peer.expect(pong("1") + "\n"));
  EXPECT_GE(memory.used(), 100'000U);
}

TEST_F(MessageBodyTest, AnAnswerToALongLineThatFindsNoRoomIsRefusedByItsId) {
  definition.tools.push_back(
      {.name = "answer",
       .description = "",
       .input_schema = R"({"type":"object"})",
       .handler = Tool::Immediate([](const json::object&) -> Result<ToolResult> {
         return ToolResult{.text = std::string(40'000, 'x')};
       })});
  options.memory = &memory;
  options.output = {.high_water = 4096, .low_water = 1024};
  connect_to_endpoint();
  Peer peer(*this, port, 4096);
  peer.send("POST /mcp HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n" +
            std::string(kLines) + "\r\n" + chunk(later("1")));
  ASSERT_TRUE(until([&] { return !calls.empty(); }));
  // Of one client's long messages one is there at a time.
  std::unique_ptr<LongMessage> other =
      service->long_messages.parse(ping("9"), [] {}, calls[0]->principal().id);
  peer.send(chunk(R"({"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"answer",)"
                  R"("arguments":{"a":")" +
                  std::string(LongMessages::kLong, 'x') + "\"}}}\n"));
  settle();
  while (calls[0]->emit(std::string(1000, 'x'))) settle();
  const std::size_t rest = memory.limit() - memory.used() - 30'000;
  ASSERT_TRUE(memory.try_acquire(rest));
  other = nullptr;
  settle();
  memory.release(rest);
  calls[0]->complete({.text = "done"});
  peer.send("0\r\n\r\n");
  ASSERT_TRUE(peer.expect("\r\n0\r\n\r\n"));
  EXPECT_THAT(peer.taken, HasSubstr(R"({"jsonrpc":"2.0","id":2,"error":{"code":-31000)"));
}

TEST_F(MessageBodyTest, AShutdownEndsItBehindItsLastWholeLine) {
  Peer quiet = begin(kLines);
  quiet.send(chunk(ping_line("1")));
  ASSERT_TRUE(quiet.expect(pong("1") + "\n"));
  Peer peer = begin(kLines);
  peer.send(chunk(ping_line("2") + later("3") + ping_line("4").substr(0, 20)));
  ASSERT_TRUE(peer.expect(pong("2") + "\n"));
  ASSERT_TRUE(until([&] { return !calls.empty(); }));
  server->shutdown({loop.clock().now() + std::chrono::hours(1)});
  EXPECT_TRUE(quiet.expect("\r\n0\r\n\r\n"));
  EXPECT_TRUE(quiet.expect_end());
  peer.send(chunk(ping_line("4").substr(20)));
  settle();
  EXPECT_FALSE(peer.ended);
  calls[0]->complete({.text = "whole"});
  ASSERT_TRUE(peer.expect("\r\n0\r\n\r\n"));
  EXPECT_THAT(peer.taken, HasSubstr("\"whole\""));
  EXPECT_THAT(peer.taken, Not(HasSubstr(pong("4"))));
  EXPECT_TRUE(peer.expect_end());
}

TEST_F(MessageBodyTest, ItsRequestsBelongToItsSession) {
  const std::string session = initialize();
  Peer peer = begin(std::string(kLines) + session);
  peer.send(chunk(later("1") + later("2")));
  ASSERT_TRUE(until([&] { return calls.size() == 2; }));
  peer.send(chunk(R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}})"
                  "\n"));
  EXPECT_TRUE(until([&] { return calls[0]->over(); }));
  EXPECT_FALSE(calls[1]->over());
  peer.close();
  EXPECT_TRUE(until([&] { return calls[1]->over(); }));
  EXPECT_THAT(ask(post("/mcp", ping_line("1"),
                       std::string(kLines) + "Mcp-Session-Id: 0123456789abcdef\r\n")),
              AllOf(StartsWith("HTTP/1.1 404 "), HasSubstr("Session not found")));
}

TEST_F(MessageBodyTest, NeedsAKeyIfThereAreAny) {
  require({{"ann", "secret"}});
  Peer peer = begin(kLines);
  EXPECT_TRUE(peer.expect("HTTP/1.1 401 "));
  EXPECT_TRUE(peer.expect("}}"));
}

TEST_F(MessageBodyTest, EndsWithTheKeyOfItsCaller) {
  require({{"ann", "key-of-ann"}, {"bob", "key-of-bob"}});
  const std::string bobs = std::string(kLines) + "X-API-Key: key-of-bob\r\n";
  Peer ann = begin(std::string(kLines) + "X-API-Key: key-of-ann\r\n");
  Peer bob = begin(bobs);
  bob.send(chunk(later("1")));
  ASSERT_TRUE(until([&] { return !calls.empty(); }));
  calls[0]->emit("half");
  ASSERT_TRUE(bob.expect("\"half\"}}\n"));
  Peer late = begin(bobs);
  settle();
  policy->replace_authenticator(
      std::make_shared<ApiKeys>(std::vector<std::pair<std::string, std::string>>{
          {"ann", "key-of-ann"}, {"eve", "key-of-bob"}}));
  ann.send(chunk(ping_line("2")));
  EXPECT_TRUE(ann.expect(pong("2") + "\n"));
  bob.send(chunk(later("3")));
  EXPECT_TRUE(bob.expect_end());
  EXPECT_TRUE(until([&] { return calls[0]->over(); }));
  EXPECT_EQ(calls.size(), 1U);
  late.send(chunk(ping_line("4")));
  EXPECT_TRUE(late.expect("not valid any more"));
  EXPECT_THAT(late.taken, StartsWith("HTTP/1.1 401 "));
}

}  // namespace
}  // namespace sluice
