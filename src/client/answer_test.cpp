#include "client/answer.hpp"

#include <deque>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <set>
#include <string>
#include <vector>

#include "client/stream_answer.hpp"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr const char* kId = "abcdefghijklmnop";

/// A port that records what the machine asks for.
class FakePort final : public AnswerPort {
 public:
  void send(HttpCall call) override { sent.push_back(std::move(call)); }
  void send_aside(HttpCall call) override { aside.push_back(std::move(call)); }
  void open_websocket(std::string target) override { opened.push_back(std::move(target)); }
  void send_text(std::string text) override { texts.push_back(std::move(text)); }
  void close() override { ++closed; }
  void set_timer(Duration wait) override { timers.push_back(wait); }

  std::deque<HttpCall> sent;
  std::deque<HttpCall> aside;
  std::deque<std::string> opened;
  std::deque<std::string> texts;
  std::deque<Duration> timers;
  int closed = 0;
};

class FakeSink final : public AnswerSink {
 public:
  void on_delta(const AnswerDelta& delta) override {
    (delta.kind == AnswerDelta::Kind::text ? text : other).append(delta.text);
  }
  void on_retry(const Error& why, Duration /*wait*/) override { retries.push_back(why.message); }
  void on_end(const AnswerEnd& end) override { ends.push_back(end); }

  std::string text;
  std::string other;
  std::vector<std::string> retries;
  std::vector<AnswerEnd> ends;
};

json::object parsed(std::string_view text) {
  auto value = parse_json(text);
  if (!value || !value->is_object()) {
    ADD_FAILURE() << "not a JSON object: " << text;
    return {};
  }
  return value->get_object();
}

std::string chunk(int seq, std::string_view delta) {
  return to_json(json::object{{"seq", seq}, {"delta", delta}, {"end", false}});
}

constexpr const char* kLastMembers =
    R"("delta":"","end":true,"finish_reason":"stop",)"
    R"("usage":{"prompt_tokens":7,"cached_tokens":3,"completion_tokens":2},)"
    R"("timings":{"queue_ms":1,"prefill_ms":2.5,"decode_ms":40})";

std::string last_chunk(int seq) {
  return "{\"seq\":" + std::to_string(seq) + "," + kLastMembers + "}";
}

std::string started_reply(int id = 1) {
  return R"({"jsonrpc":"2.0","id":)" + std::to_string(id) + R"(,"result":{"stream_id":")" + kId +
         R"(","status":"streaming_started"}})";
}

class AnswerTest : public ::testing::Test {
 protected:
  void start(AnswerVia via) {
    AnswerRequest request;
    request.params = {{"prompt", "hi"}, {"temperature", 0}};
    request.backoff = {.first = std::chrono::milliseconds(10),
                       .longest = std::chrono::milliseconds(40),
                       .attempts = 3};
    machine = make_answer(via, std::move(request), port, sink);
    machine->start();
  }

  /// Takes the request that the machine sent last and returns its body as JSON.
  json::object take_request(HttpCall* call = nullptr) {
    if (port.sent.size() != 1) {
      ADD_FAILURE() << port.sent.size() << " requests in progress";
      return {};
    }
    const HttpCall taken = port.sent.front();
    port.sent.pop_front();
    if (call != nullptr) *call = taken;
    return taken.body.empty() ? json::object() : parsed(taken.body);
  }

  json::object take_text() {
    if (port.texts.empty()) {
      ADD_FAILURE() << "nothing sent on the WebSocket";
      return {};
    }
    const std::string text = port.texts.front();
    port.texts.pop_front();
    return parsed(text);
  }

  void reply(std::string_view body, int status = 200) {
    machine->on_head(status, "application/json");
    // Deliver the body in two pieces, as a network may.
    machine->on_body(body.substr(0, body.size() / 2));
    machine->on_body(body.substr(body.size() / 2));
    machine->on_complete();
  }

  void begin_events() { machine->on_head(200, "text/event-stream"); }
  void event(int seq, std::string_view data) {
    machine->on_body("id: " + std::to_string(seq) + "\ndata: " + std::string(data) + "\n\n");
  }

  static std::string pushed(std::string_view chunk_text, std::string_view id = kId) {
    return R"({"jsonrpc":"2.0","method":"run","params":{"stream_id":")" + std::string(id) + "\"," +
           std::string(chunk_text.substr(1)) + "}";
  }

  const AnswerEnd& only_end() {
    static const AnswerEnd kNone;
    EXPECT_THAT(sink.ends, SizeIs(1));
    return sink.ends.empty() ? kNone : sink.ends.front();
  }

  void expect_complete_with_numbers() {
    const AnswerEnd& end = only_end();
    EXPECT_EQ(end.outcome, AnswerEnd::Outcome::complete);
    EXPECT_EQ(end.finish_reason, "stop");
    EXPECT_EQ(end.prompt_tokens, 7);
    EXPECT_EQ(end.cached_tokens, 3);
    EXPECT_EQ(end.completion_tokens, 2);
    EXPECT_EQ(end.prefill_ms, 2.5);
    EXPECT_EQ(end.decode_ms, 40);
  }

  FakePort port;
  FakeSink sink;
  std::unique_ptr<AnswerMachine> machine;
};

std::string poll_reply(std::initializer_list<std::string> chunks) {
  std::string list;
  for (const std::string& each : chunks) list += (list.empty() ? "" : ",") + each;
  return R"({"jsonrpc":"2.0","id":2,"result":{"stream_id":"x","chunks":[)" + list +
         R"(],"has_more":true}})";
}

TEST_F(AnswerTest, PollStartsAcknowledgesAndEnds) {
  start(AnswerVia::poll);
  HttpCall call;
  const json::object run = take_request(&call);
  EXPECT_EQ(call.method, "POST");
  EXPECT_EQ(call.target, "/mcp");
  EXPECT_EQ(run.at("method"), "run");
  EXPECT_EQ(run.at("params"),
            (json::value{{"prompt", "hi"}, {"temperature", 0}, {"stream", true}}));

  reply(started_reply());
  EXPECT_EQ(take_request().at("params"),
            (json::value{{"stream_id", kId}, {"from_seq", 0}, {"wait_ms", 25000}}));
  reply(poll_reply({chunk(0, "Hel"), chunk(1, "lo")}));
  EXPECT_EQ(take_request().at("params").at("from_seq"), 2);
  reply(poll_reply({}));
  EXPECT_EQ(take_request().at("params").at("from_seq"), 2);
  reply(poll_reply({chunk(2, "!"), last_chunk(3)}));
  EXPECT_THAT(port.sent, IsEmpty());
  EXPECT_EQ(sink.text, "Hello!");
  expect_complete_with_numbers();
}

TEST_F(AnswerTest, PollAsksAgainForALostReply) {
  start(AnswerVia::poll);
  take_request();
  reply(started_reply());
  take_request();
  reply(poll_reply({chunk(0, "a")}));
  take_request();
  machine->on_head(200, "application/json");
  machine->on_body(R"({"jsonrpc":"2.0","id":3,"res)");
  machine->on_lost({0, "connection reset"});
  EXPECT_THAT(sink.retries, ElementsAre("connection reset"));
  ASSERT_THAT(port.timers, SizeIs(1));
  EXPECT_THAT(port.sent, IsEmpty());
  machine->on_timer();
  EXPECT_EQ(take_request().at("params").at("from_seq"), 1);
  reply("busy", 503);
  ASSERT_THAT(port.timers, SizeIs(2));
  EXPECT_GE(port.timers[1], std::chrono::milliseconds(10));
  machine->on_timer();
  take_request();
  reply(poll_reply({chunk(1, "b"), last_chunk(2)}));
  EXPECT_EQ(sink.text, "ab");
  expect_complete_with_numbers();
}

TEST_F(AnswerTest, GivesUpAfterTheAttemptsAndCountsThemAnewAfterSuccess) {
  start(AnswerVia::poll);
  take_request();
  reply(started_reply());
  for (int i = 0; i < 2; ++i) {
    machine->on_lost({0, "reset"});
    machine->on_timer();
  }
  port.sent.clear();
  reply(poll_reply({chunk(0, "a")}));
  for (int i = 0; i < 3; ++i) {
    EXPECT_THAT(sink.ends, IsEmpty());
    machine->on_lost({0, "reset"});
    machine->on_timer();
  }
  machine->on_lost({0, "reset"});
  EXPECT_EQ(only_end().outcome, AnswerEnd::Outcome::unreachable);
  EXPECT_EQ(only_end().error.message, "reset");
  machine->on_timer();
  EXPECT_THAT(sink.ends, SizeIs(1));
}

TEST_F(AnswerTest, NoConnectionAtTheStartIsTheEnd) {
  for (const AnswerVia via : {AnswerVia::poll, AnswerVia::sse, AnswerVia::ws, AnswerVia::mcp}) {
    sink.ends.clear();
    start(via);
    machine->on_lost({0, "connection refused"});
    EXPECT_EQ(only_end().outcome, AnswerEnd::Outcome::unreachable) << to_string(via);
    EXPECT_THAT(port.timers, IsEmpty()) << to_string(via);
  }
}

TEST_F(AnswerTest, PollReportsTheServersError) {
  start(AnswerVia::poll);
  take_request();
  reply(R"({"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"bad","data":{"a":1}}})", 400);
  EXPECT_EQ(only_end().outcome, AnswerEnd::Outcome::failed);
  EXPECT_EQ(only_end().error.code, -32602);
  EXPECT_EQ(only_end().error.message, "bad");
  EXPECT_EQ(only_end().error.data, R"({"a":1})");
}

TEST_F(AnswerTest, AReplyThatIsNoJsonRpcIsReportedWithItsStatus) {
  start(AnswerVia::poll);
  take_request();
  reply("<html>not here</html>", 404);
  EXPECT_EQ(only_end().outcome, AnswerEnd::Outcome::failed);
  EXPECT_THAT(only_end().error.message, HasSubstr("404"));
}

TEST_F(AnswerTest, AnErrorInTheStreamEndsItAfterWhatCameBefore) {
  start(AnswerVia::poll);
  take_request();
  reply(started_reply());
  take_request();
  reply(
      poll_reply({chunk(0, "half"),
                  R"({"seq":1,"delta":"","end":true,"error":{"code":-31000,"message":"gone"}})"}));
  EXPECT_EQ(sink.text, "half");
  EXPECT_EQ(only_end().outcome, AnswerEnd::Outcome::failed);
  EXPECT_EQ(only_end().error.message, "gone");
}

TEST_F(AnswerTest, AMissingChunkIsAnErrorAndAnOldOneIsSkipped) {
  start(AnswerVia::poll);
  take_request();
  reply(started_reply());
  take_request();
  reply(poll_reply({chunk(0, "a"), chunk(1, "b")}));
  take_request();
  reply(poll_reply({chunk(1, "b"), chunk(2, "c"), chunk(4, "e")}));
  EXPECT_EQ(sink.text, "abc");
  EXPECT_EQ(only_end().outcome, AnswerEnd::Outcome::failed);
  EXPECT_THAT(only_end().error.message, HasSubstr("expected seq 3, got 4"));
}

TEST_F(AnswerTest, CancelAbortsAndWaitsForTheEnd) {
  start(AnswerVia::poll);
  take_request();
  reply(started_reply());
  take_request();
  machine->cancel();
  machine->cancel();
  ASSERT_THAT(port.aside, SizeIs(1));
  const json::object abort = parsed(port.aside.front().body);
  EXPECT_EQ(abort.at("method"), "abort");
  EXPECT_EQ(abort.at("params"), (json::value{{"stream_id", kId}}));
  reply(poll_reply({chunk(0, "some"),
                    R"({"seq":1,"delta":"","end":true,"finish_reason":"cancelled",)"
                    R"("usage":{"prompt_tokens":1,"cached_tokens":0,"completion_tokens":5}})"}));
  EXPECT_EQ(only_end().outcome, AnswerEnd::Outcome::cancelled);
  EXPECT_EQ(only_end().completion_tokens, 5);
}

TEST_F(AnswerTest, CancelBeforeTheIdIsKnownAbortsOnceItIs) {
  start(AnswerVia::sse);
  machine->cancel();
  EXPECT_THAT(port.aside, IsEmpty());
  take_request();
  reply(started_reply());
  EXPECT_THAT(port.aside, SizeIs(1));
}

TEST_F(AnswerTest, ACancelledAnswerIsNotTriedAgain) {
  start(AnswerVia::poll);
  take_request();
  reply(started_reply());
  machine->cancel();
  machine->on_lost({0, "reset"});
  EXPECT_EQ(only_end().outcome, AnswerEnd::Outcome::cancelled);
  EXPECT_THAT(port.timers, IsEmpty());
}

TEST_F(AnswerTest, SseReadsTheStreamAndResumesBehindTheLastEvent) {
  start(AnswerVia::sse);
  take_request();
  reply(started_reply());
  HttpCall call;
  take_request(&call);
  EXPECT_EQ(call.method, "GET");
  EXPECT_EQ(call.target, std::string("/streams/") + kId);
  EXPECT_THAT(call.headers, ElementsAre(std::pair("Accept", "text/event-stream")));
  begin_events();
  event(0, chunk(0, "a"));
  event(1, chunk(1, "b"));
  machine->on_body("retry: 30\n");
  machine->on_complete();  // ends before the last chunk
  ASSERT_THAT(port.timers, SizeIs(1));
  EXPECT_GE(port.timers[0], std::chrono::milliseconds(15));
  machine->on_timer();
  take_request(&call);
  EXPECT_THAT(call.headers, ::testing::Contains(std::pair("Last-Event-ID", "1")));
  begin_events();
  event(1, chunk(1, "b"));
  event(2, chunk(2, "c"));
  event(3, last_chunk(3));
  EXPECT_EQ(sink.text, "abc");
  expect_complete_with_numbers();
}

TEST_F(AnswerTest, SseTakesChunksWrappedAsNotifications) {
  start(AnswerVia::sse);
  take_request();
  reply(started_reply());
  take_request();
  begin_events();
  event(0, pushed(chunk(0, "a")));
  event(1, pushed(last_chunk(1)));
  EXPECT_EQ(sink.text, "a");
  expect_complete_with_numbers();
}

TEST_F(AnswerTest, SseReportsAStreamThatIsGone) {
  start(AnswerVia::sse);
  take_request();
  reply(started_reply());
  take_request();
  reply(R"({"jsonrpc":"2.0","error":{"code":-32005,"message":"expired"}})", 410);
  EXPECT_EQ(only_end().outcome, AnswerEnd::Outcome::failed);
  EXPECT_EQ(only_end().error.code, -32005);
}

TEST_F(AnswerTest, WsReceivesPushesAndAcknowledgesThem) {
  start(AnswerVia::ws);
  ASSERT_THAT(port.opened, ElementsAre("/ws"));
  machine->on_open();
  const json::object run = take_text();
  EXPECT_EQ(run.at("method"), "run");
  EXPECT_EQ(run.at("params").at("stream"), true);
  EXPECT_EQ(run.at("params").at("window"), 1024);
  machine->on_message(started_reply());
  machine->on_message(pushed(chunk(0, "not ours"), "ponmlkjihgfedcba"));
  for (int i = 0; i < 256; ++i) machine->on_message(pushed(chunk(i, "x")));
  ASSERT_THAT(port.texts, SizeIs(1));
  const json::object ack = take_text();
  EXPECT_EQ(ack.at("method"), "ack");
  EXPECT_EQ(ack.at("params"), (json::value{{"stream_id", kId}, {"seq", 256}}));
  machine->on_message(R"({"jsonrpc":"2.0","id":2,"error":{"code":-32006,"message":"late"}})");
  machine->on_message(pushed(last_chunk(256)));
  EXPECT_EQ(sink.text, std::string(256, 'x'));
  expect_complete_with_numbers();
}

TEST_F(AnswerTest, WsAcknowledgesInAPauseForAServerThatKeepsFewChunks) {
  start(AnswerVia::ws);
  machine->on_open();
  take_text();
  machine->on_message(started_reply());
  machine->on_message(pushed(chunk(0, "a")));
  machine->on_message(pushed(chunk(1, "b")));
  EXPECT_THAT(port.timers, SizeIs(1));
  machine->on_timer();  // no pause: a chunk came after the first one
  EXPECT_THAT(port.texts, IsEmpty());
  EXPECT_THAT(port.timers, SizeIs(2));
  machine->on_message(pushed(chunk(2, "c")));
  machine->on_message(pushed(chunk(3, "d")));
  machine->on_timer();
  EXPECT_THAT(port.timers, SizeIs(3));
  machine->on_timer();
  EXPECT_EQ(take_text().at("params"), (json::value{{"stream_id", kId}, {"seq", 4}}));
  EXPECT_THAT(port.timers, SizeIs(3));
  machine->on_message(pushed(chunk(4, "e")));
  EXPECT_THAT(port.timers, SizeIs(4));
  machine->on_lost({1006, "lost"});
  machine->on_timer();
  EXPECT_THAT(port.opened, SizeIs(2));
}

TEST_F(AnswerTest, WsAcknowledgesInTimeOnceItKnowsThatTheServerKeepsFewChunks) {
  start(AnswerVia::ws);
  machine->on_open();
  take_text();
  machine->on_message(started_reply());
  for (int i = 0; i < 8; ++i) machine->on_message(pushed(chunk(i, "x")));
  machine->on_timer();
  machine->on_timer();
  EXPECT_EQ(take_text().at("params"), (json::value{{"stream_id", kId}, {"seq", 8}}));
  for (int i = 8; i < 12; ++i) machine->on_message(pushed(chunk(i, "x")));
  EXPECT_EQ(take_text().at("params"), (json::value{{"stream_id", kId}, {"seq", 12}}));
  machine->on_message(pushed(chunk(12, "x")));
  machine->on_timer();
  machine->on_timer();
  EXPECT_EQ(take_text().at("params"), (json::value{{"stream_id", kId}, {"seq", 13}}));
  machine->on_message(pushed(chunk(13, "x")));
  EXPECT_EQ(take_text().at("params"), (json::value{{"stream_id", kId}, {"seq", 14}}));
}

TEST_F(AnswerTest, WsSubscribesAgainFromTheNextChunk) {
  start(AnswerVia::ws);
  machine->on_open();
  take_text();
  machine->on_message(started_reply());
  machine->on_message(pushed(chunk(0, "a")));
  machine->on_lost({1006, "lost"});
  machine->on_timer();
  EXPECT_THAT(port.opened, SizeIs(2));
  machine->on_open();
  const json::object subscribe = take_text();
  EXPECT_EQ(subscribe.at("method"), "subscribe");
  EXPECT_EQ(subscribe.at("params"),
            (json::value{{"stream_id", kId}, {"from_seq", 1}, {"window", 1024}}));
  machine->on_message(R"({"jsonrpc":"2.0","id":2,"result":{"status":"subscribed"}})");
  machine->on_message(pushed(chunk(1, "b")));
  machine->on_message(pushed(last_chunk(2)));
  EXPECT_EQ(sink.text, "ab");
  expect_complete_with_numbers();
}

TEST_F(AnswerTest, WsAbortsOnTheSocketIfItIsOpenAndBesideItIfNot) {
  start(AnswerVia::ws);
  machine->on_open();
  take_text();
  machine->on_message(started_reply());
  machine->cancel();
  EXPECT_EQ(take_text().at("method"), "abort");
  EXPECT_THAT(port.aside, IsEmpty());

  sink.ends.clear();
  start(AnswerVia::ws);
  machine->on_open();
  take_text();
  machine->on_message(started_reply());
  machine->on_lost({1006, "lost"});
  machine->cancel();
  EXPECT_THAT(port.texts, IsEmpty());
  EXPECT_THAT(port.aside, SizeIs(1));
}

TEST_F(AnswerTest, WsTakesARefusedHandshakeForAnAnswer) {
  start(AnswerVia::ws);
  machine->on_lost({401, "401 Unauthorized"});
  EXPECT_EQ(only_end().outcome, AnswerEnd::Outcome::failed);
  EXPECT_EQ(only_end().error.code, 401);
}

TEST_F(AnswerTest, AQuestionThatIsTooLargeIsNoLostConnection) {
  for (const AnswerVia via : {AnswerVia::poll, AnswerVia::sse, AnswerVia::mcp}) {
    sink.ends.clear();
    start(via);
    take_request();
    reply("", 413);
    EXPECT_EQ(only_end().outcome, AnswerEnd::Outcome::failed);
    EXPECT_THAT(only_end().error.message, HasSubstr("--max-body"));
  }
  sink.ends.clear();
  start(AnswerVia::ws);
  machine->on_open();
  machine->on_lost({1009, "too big"});
  EXPECT_EQ(only_end().outcome, AnswerEnd::Outcome::failed);
  EXPECT_THAT(only_end().error.message, HasSubstr("--max-body"));
}

TEST_F(AnswerTest, WsReportsErrorsOfItsOwnRequestsAndOfNone) {
  start(AnswerVia::ws);
  machine->on_open();
  machine->on_message(R"({"jsonrpc":"2.0","id":1,"error":{"code":-31000,"message":"full"}})");
  EXPECT_EQ(only_end().error.message, "full");

  sink.ends.clear();
  start(AnswerVia::ws);
  machine->on_open();
  machine->on_message(R"({"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"what"}})");
  EXPECT_EQ(only_end().error.code, -32700);
}

TEST_F(AnswerTest, AReaderThatLosesItsStreamSaysWhy) {
  constexpr const char* kError = R"("error":{"code":-32006,"message":"too slow"})";
  start(AnswerVia::ws);
  machine->on_open();
  machine->on_message(started_reply());
  machine->on_message(pushed(std::string(R"({"delta":"","end":true,)") + kError + "}"));
  EXPECT_EQ(only_end().error.message, "too slow");

  sink.ends.clear();
  start(AnswerVia::sse);
  take_request();
  reply(started_reply());
  take_request();
  begin_events();
  machine->on_body("event: error\ndata: {\"jsonrpc\":\"2.0\"," + std::string(kError) + "}\n\n");
  EXPECT_EQ(only_end().error.message, "too slow");
}

TEST_F(AnswerTest, McpSpeaksTheModernRevisionAndReadsProgress) {
  start(AnswerVia::mcp);
  HttpCall call;
  const json::object request = take_request(&call);
  EXPECT_THAT(call.headers,
              ::testing::IsSupersetOf(
                  {std::pair("MCP-Protocol-Version", "2026-07-28"),
                   std::pair("Mcp-Method", "tools/call"), std::pair("Mcp-Name", "generate"),
                   std::pair("Accept", "application/json, text/event-stream")}));
  const json::value& params = request.at("params");
  EXPECT_EQ(params.at("name"), "generate");
  EXPECT_EQ(params.at("arguments"), (json::value{{"prompt", "hi"}, {"temperature", 0}}));
  EXPECT_EQ(params.at("_meta").at("io.modelcontextprotocol/protocolVersion"), "2026-07-28");
  EXPECT_TRUE(params.at("_meta").at("io.modelcontextprotocol/clientCapabilities").is_object());

  begin_events();
  event(0, R"({"jsonrpc":"2.0","method":"notifications/progress",)"
           R"("params":{"progressToken":1,"progress":1,"message":"Hel"}})");
  event(1, R"({"jsonrpc":"2.0","method":"notifications/progress",)"
           R"("params":{"progressToken":2,"progress":1,"message":"not ours"}})");
  event(2, R"({"jsonrpc":"2.0","method":"notifications/progress",)"
           R"("params":{"progressToken":1,"progress":2,"message":"lo"}})");
  event(3, R"({"jsonrpc":"2.0","id":1,"result":{"resultType":"complete",)"
           R"("content":[{"type":"text","text":"Hello"}],"structuredContent":{"x":1,)" +
               std::string(kLastMembers) + "}}}");
  EXPECT_EQ(sink.text, "Hello");
  expect_complete_with_numbers();
}

TEST_F(AnswerTest, McpTakesAPlainReply) {
  start(AnswerVia::mcp);
  take_request();
  reply(R"({"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"whole"}]}})");
  EXPECT_EQ(sink.text, "whole");
  EXPECT_EQ(only_end().outcome, AnswerEnd::Outcome::complete);
}

TEST_F(AnswerTest, McpPassesCallsOn) {
  start(AnswerVia::mcp);
  take_request();
  reply(R"({"jsonrpc":"2.0","id":1,"result":{"content":[],"structuredContent":)"
        R"({"finish_reason":"tool_calls","tool_calls":[{"name":"a"},{"name":"b"}]}}})");
  EXPECT_EQ(sink.other, R"({"name":"a"}{"name":"b"})");
  EXPECT_EQ(only_end().finish_reason, "tool_calls");
}

TEST_F(AnswerTest, McpReportsToolAndProtocolErrors) {
  start(AnswerVia::mcp);
  take_request();
  reply(R"({"jsonrpc":"2.0","id":1,"result":{"isError":true,)"
        R"("content":[{"type":"text","text":"no model"}]}})");
  EXPECT_EQ(only_end().outcome, AnswerEnd::Outcome::failed);
  EXPECT_EQ(only_end().error.message, "no model");

  sink.ends.clear();
  start(AnswerVia::mcp);
  take_request();
  begin_events();
  event(0, R"({"jsonrpc":"2.0","id":1,"error":{"code":-31000,"message":"shutting down"}})");
  EXPECT_EQ(only_end().error.message, "shutting down");
}

TEST_F(AnswerTest, McpCancelClosesTheReply) {
  start(AnswerVia::mcp);
  take_request();
  begin_events();
  machine->cancel();
  EXPECT_EQ(port.closed, 1);
  EXPECT_EQ(only_end().outcome, AnswerEnd::Outcome::cancelled);
}

TEST_F(AnswerTest, McpDoesNotResume) {
  start(AnswerVia::mcp);
  take_request();
  begin_events();
  machine->on_complete();
  EXPECT_EQ(only_end().outcome, AnswerEnd::Outcome::unreachable);
  EXPECT_THAT(port.timers, IsEmpty());
}

TEST_F(AnswerTest, ReasoningAndToolCallsAreToldApart) {
  start(AnswerVia::poll);
  take_request();
  reply(started_reply());
  take_request();
  reply(poll_reply({R"({"seq":0,"delta":"","reasoning":"hm","end":false})",
                    R"({"seq":1,"delta":"","tool_call":{},"end":false})", chunk(2, "yes"),
                    last_chunk(3)}));
  EXPECT_EQ(sink.other, "hm{}");
  EXPECT_EQ(sink.text, "yes");
}

TEST_F(AnswerTest, RubbishEndsTheAnswerAndNothingElse) {
  for (const auto* body : {"", "[]", "{}", "{\"result\":5}", R"({"result":{}})",
                           R"({"result":{"stream_id":5}})", "\xff"}) {
    sink.ends.clear();
    port.sent.clear();
    start(AnswerVia::poll);
    take_request();
    reply(body);
    EXPECT_EQ(only_end().outcome, AnswerEnd::Outcome::failed) << body;
  }
  for (const auto* body :
       {R"({"result":{}})", R"({"result":{"chunks":{}}})", R"({"result":{"chunks":[5]}})",
        R"({"result":{"chunks":[{}]}})", R"({"result":{"chunks":[{"seq":-1}]}})",
        R"({"result":{"chunks":[{"seq":"0"}]}})"}) {
    sink.ends.clear();
    port.sent.clear();
    start(AnswerVia::poll);
    take_request();
    reply(started_reply());
    take_request();
    reply(body);
    EXPECT_EQ(only_end().outcome, AnswerEnd::Outcome::failed) << body;
  }
  for (const auto* text : {"", "5", "{\"id\":1,\"result\":5}", "{\"id\":1}"}) {
    sink.ends.clear();
    start(AnswerVia::ws);
    machine->on_open();
    machine->on_message(text);
    EXPECT_EQ(only_end().outcome, AnswerEnd::Outcome::failed) << text;
  }
}

TEST(AnswerViaNames, ReadBack) {
  for (const AnswerVia via : {AnswerVia::poll, AnswerVia::sse, AnswerVia::ws, AnswerVia::mcp}) {
    EXPECT_EQ(parse_answer_via(to_string(via)), via);
  }
  EXPECT_EQ(parse_answer_via("carrier pigeon"), std::nullopt);
}

TEST(Backoff, DoublesUpToTheLongestAndThenGivesUp) {
  using namespace std::chrono_literals;
  Backoff backoff({.first = 100ms, .longest = 300ms, .attempts = 4});
  for (const Duration full : {Duration(100ms), Duration(200ms), Duration(300ms), Duration(300ms)}) {
    const auto wait = backoff.next();
    ASSERT_TRUE(wait);
    EXPECT_GE(*wait, full / 2);
    EXPECT_LE(*wait, full);
  }
  EXPECT_EQ(backoff.next(), std::nullopt);
  backoff.reset();
  EXPECT_LE(*backoff.next(), Duration(100ms));
}

TEST(Backoff, ClientsThatWereLostTogetherComeBackOneByOne) {
  using namespace std::chrono_literals;
  std::set<Duration> waits;
  for (int client = 0; client < 64; ++client) {
    waits.insert(Backoff({.first = 100ms, .longest = 300ms, .attempts = 4}).next().value());
  }
  EXPECT_GT(waits.size(), 32U);
  // In both halves of what is allowed: by chance it would fail once in 2^63 runs.
  EXPECT_LT(*waits.begin(), 75ms);
  EXPECT_GT(*waits.rbegin(), 75ms);
}

}  // namespace
}  // namespace sluice
