#include "server/dispatch/dispatcher.hpp"

#include <algorithm>
#include <cstddef>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <string_view>

#include "server/dispatch/server_test_support.hpp"

namespace sluice {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::string_view kServerInfo =
    R"("_meta":{"io.modelcontextprotocol/serverInfo":{"name":"test","version":"1"}})";
constexpr std::string_view kToolList =
    R"("tools":[{"name":"echo","description":"Says it again","inputSchema":{"type":"object"}},)"
    R"({"name":"later","description":"","inputSchema":{"type":"object"}}])";
constexpr std::string_view kMeta =
    R"("_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",)"
    R"("io.modelcontextprotocol/clientCapabilities":{})";

/// Members of a modern request's params.
std::string modern(std::string_view params = "", std::string_view meta = "") {
  std::string out(kMeta);
  if (!meta.empty()) out.append(",").append(meta);
  out.push_back('}');
  if (!params.empty()) out.append(",").append(params);
  return out;
}

/// How many of `byte` stand together in `text` at most.
std::size_t longest_run(std::string_view text, char byte) {
  std::size_t longest = 0;
  std::size_t run = 0;
  for (const char each : text) {
    run = each == byte ? run + 1 : 0;
    longest = std::max(longest, run);
  }
  return longest;
}

class DispatcherTest : public ::testing::Test {
 protected:
  /// Calls the tool `later` with a progress token. The call becomes the last of bench.calls.
  void call_later(std::string_view meta = R"("progressToken":"p")") {
    const std::string out = bench.request("tools/call", modern(R"("name":"later")", meta), caller);
    EXPECT_EQ(out, "");
    EXPECT_EQ(bench.outcome.kind, Outcome::Kind::pending);
    ASSERT_FALSE(bench.calls.empty());
  }

  ServerBench bench;
  RecordingCaller caller;
};

TEST_F(DispatcherTest, InitializeAgreesOnALegacyRevision) {
  for (const std::string_view asked : {"2025-11-25", "2026-07-28", "2024-01-01"}) {
    EXPECT_EQ(bench.request("initialize",
                            R"("protocolVersion":")" + std::string(asked) +
                                R"(","capabilities":{},"clientInfo":{"name":"c","version":"1"})",
                            caller),
              result_text(R"({"protocolVersion":"2025-11-25","capabilities":{"tools":{},)"
                          R"("streaming":true,"extensions":{"dev.sluice/streams":{}}},)"
                          R"("serverInfo":{"name":"test","version":"1"},)"
                          R"("instructions":"Be \"kind\""})"))
        << asked;
    EXPECT_EQ(bench.outcome.http_status, 200);
  }
  EXPECT_EQ(error_code(bench.request("initialize", "", caller)), -32602);
  EXPECT_EQ(error_code(bench.request("initialize", R"("protocolVersion":1)", caller)), -32602);
}

TEST_F(DispatcherTest, DiscoverIsModern) {
  EXPECT_EQ(
      bench.request("server/discover", modern(), caller),
      result_text(
          R"({"resultType":"complete","supportedVersions":["2026-07-28",)"
          R"("2025-11-25","2025-06-18","2025-03-26","2024-11-05"],"capabilities":{"tools":{},"extensions":)"
          R"({"dev.sluice/streams":{}}},"instructions":"Be \"kind\"",)"
          R"("ttlMs":60000,"cacheScope":"private",)" +
          std::string(kServerInfo) + "}"));
  EXPECT_EQ(error_code(bench.request("server/discover", "", caller)), -32601);
}

TEST_F(DispatcherTest, ArgumentsMustFollowTheToolsSchema) {
  bench.definition.tools.push_back(
      {.name = "strict",
       .description = "",
       .input_schema = R"({"type":"object","properties":{"items":{"type":"array","items":)"
                       R"({"type":"object","properties":{"to":{"type":"integer"}}}}},)"
                       R"("required":["items"]})",
       .handler = Tool::Immediate([](const json::object&) -> Result<ToolResult> {
         return ToolResult{.text = "reached"};
       })});
  bench.serve();
  const std::string right = R"("name":"strict","arguments":{"items":[{"to":1}]})";
  const std::string wrong = R"("name":"strict","arguments":{"items":[{"to":1},{"to":"x"}]})";
  EXPECT_THAT(bench.request("tools/call", modern(right), caller), HasSubstr("reached"));
  const std::string result = bench.request("tools/call", modern(wrong), caller);
  EXPECT_THAT(result, HasSubstr("arguments.items[1].to: expected integer, got string"));
  EXPECT_THAT(result, HasSubstr(R"("isError":true)"));
  EXPECT_EQ(bench.outcome.http_status, 200);
  EXPECT_THAT(bench.request("tools/call", modern(R"("name":"strict")"), caller),
              HasSubstr(R"("isError":true)"));
  // Before 2025-11-25 it is an error.
  bench.request("initialize", R"("protocolVersion":"2025-06-18","capabilities":{})", caller);
  EXPECT_EQ(error_code(bench.request("tools/call", wrong, caller)), -32602);
}

// Checking these arguments takes 2.3 million steps, half of what is allowed.
TEST_F(DispatcherTest, ArgumentsThatTakeLongToCheckAreCheckedBesideTheLoop) {
  Tool slow = bench.definition.tools[1];
  slow.name = "slow";
  slow.input_schema = R"({"type":"object","properties":{"a":{"pattern":"[a-z]{900}0$"}}})";
  slow.task_support = TaskSupport::optional;
  Tool at_once = slow;
  at_once.name = "at_once";
  at_once.handler = Tool::Immediate(
      [](const json::object&) -> Result<ToolResult> { return ToolResult{.text = "reached"}; });
  bench.definition.tools.insert(bench.definition.tools.end(), {slow, at_once});
  bench.serve();
  const auto call = [&](std::string_view tool, std::string_view end, std::string_view more = "") {
    return R"("name":")" + std::string(tool) + R"(","arguments":{"a":")" +
           std::string(10'000, 'a').append(end) + "\"}" + std::string(more);
  };
  const auto answer = [&](const std::string& params) {
    EXPECT_EQ(bench.request("tools/call", params, caller), "");
    EXPECT_EQ(bench.outcome.kind, Outcome::Kind::pending);
    EXPECT_TRUE(caller.channel().replies.empty());
    bench.run_all();
    return caller.channel().replies.empty() ? "" : caller.channel().replies.back();
  };
  EXPECT_THAT(answer(modern(call("at_once", "0"))), HasSubstr("reached"));
  const std::string refused = answer(modern(call("at_once", "1")));
  EXPECT_THAT(refused, HasSubstr("arguments.a: expected a match of"));
  EXPECT_THAT(refused, HasSubstr(R"("isError":true)"));
  const std::string too_long = std::string(10'000, 'a') + "0";
  EXPECT_THAT(answer(modern(call("at_once", too_long))),
              HasSubstr("it takes more than 4000000 steps"));
  EXPECT_EQ(answer(modern(call("slow", "0"))), "");
  ASSERT_EQ(bench.calls.size(), 1U);
  bench.calls[0]->complete({.text = "done"});
  EXPECT_THAT(caller.channel().replies.back(), HasSubstr("done"));
  // If the caller leaves in the meantime, the handler does not run.
  bench.request("tools/call", modern(call("slow", "0")), caller);
  caller.channel().close();
  bench.run_all();
  EXPECT_EQ(bench.calls.size(), 1U);

  bench.request("initialize", R"("protocolVersion":"2025-06-18","capabilities":{})", caller);
  EXPECT_EQ(error_code(answer(call("slow", "1"))), -32602);
  bench.request("initialize", R"("protocolVersion":"2025-11-25","capabilities":{})", caller);
  EXPECT_THAT(bench.request("tools/call", call("slow", "0", R"(,"task":{})"), caller),
              HasSubstr(R"("status":"working")"));
  bench.run_all();
  EXPECT_EQ(bench.calls.size(), 2U);
}

TEST_F(DispatcherTest, ResultsMustFollowTheOutputSchema) {
  std::string structured;
  bool is_error = false;
  bench.definition.tools.push_back(
      {.name = "sum",
       .description = "",
       .input_schema = R"({"type":"object"})",
       .handler = Tool::Immediate([&](const json::object&) -> Result<ToolResult> {
         return ToolResult{.structured_text = structured, .is_error = is_error};
       }),
       .output_schema = R"({"type":"object","properties":{"sum":{"type":"integer"}},)"
                        R"("required":["sum"]})"});
  bench.serve();
  const std::string call = modern(R"("name":"sum")");
  structured = R"({"sum":3})";
  EXPECT_THAT(
      bench.request("tools/call", call, caller),
      AllOf(HasSubstr(R"("structuredContent":{"sum":3})"), HasSubstr(R"("text":"{\"sum\":3}")")));
  ::testing::internal::CaptureStderr();
  for (const std::string_view wrong : {"", "{", "{}", "[]", R"({"sum":"secret"})"}) {
    structured = wrong;
    const std::string answer = bench.request("tools/call", call, caller);
    EXPECT_EQ(error_code(answer), -32603) << wrong;
    EXPECT_THAT(answer,
                AllOf(HasSubstr("'sum'"), Not(HasSubstr("secret")), Not(HasSubstr("integer"))));
  }
  // Logged only once in a while.
  const std::string logged = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(logged, HasSubstr("tool=sum"));
  EXPECT_EQ(std::ranges::count(logged, '\n'), 1) << logged;
  is_error = true;
  EXPECT_THAT(bench.request("tools/call", call, caller), HasSubstr(R"("isError":true)"));
}

TEST_F(DispatcherTest, StructuredValuesAreModern) {
  bench.definition.tools.push_back(
      {.name = "names",
       .description = "",
       .input_schema = R"({"type":"object"})",
       .handler = Tool::Immediate([](const json::object&) -> Result<ToolResult> {
         return ToolResult{.structured_text = R"(["a"])"};
       }),
       .output_schema = R"({"type":"array","items":{"type":"string"}})"});
  bench.serve();
  EXPECT_THAT(bench.request("tools/list", modern(), caller), HasSubstr("outputSchema"));
  EXPECT_THAT(bench.request("tools/call", modern(R"("name":"names")"), caller),
              HasSubstr(R"("structuredContent":["a"])"));
  EXPECT_THAT(bench.request("tools/list", "", caller), Not(HasSubstr("outputSchema")));
  EXPECT_THAT(bench.request("tools/call", R"("name":"names")", caller),
              AllOf(Not(HasSubstr("structuredContent")), HasSubstr(R"("text":"[\"a\"]")")));
}

TEST_F(DispatcherTest, ASchemaThatIsNoneIsRefusedAtTheStart) {
  for (const char* schema :
       {"{", R"({"type":"object","minLength":-1})", "{}", "true", R"({"type":"string"})",
        R"({"type":"object","properties":{"a":{"type":"number","x-mcp-header":"A"}}})"}) {
    bench.definition.tools.back().input_schema = schema;
    const auto compiled = ToolSchemas::compile(bench.definition);
    ASSERT_FALSE(compiled);
    EXPECT_THAT(compiled.error().message, HasSubstr(bench.definition.tools.back().name));
  }
}

TEST_F(DispatcherTest, ToolsAreListedInEachErasForm) {
  EXPECT_EQ(bench.request("tools/list", "", caller),
            result_text("{" + std::string(kToolList) + "}"));
  EXPECT_EQ(
      bench.request("tools/list", modern(), caller),
      result_text(R"({"resultType":"complete",)" + std::string(kToolList) +
                  R"(,"ttlMs":60000,"cacheScope":"private",)" + std::string(kServerInfo) + "}"));
}

TEST_F(DispatcherTest, PingIsLegacy) {
  EXPECT_EQ(bench.request("ping", "", caller), result_text("{}"));
  EXPECT_EQ(error_code(bench.request("ping", modern(), caller)), -32601);
}

TEST_F(DispatcherTest, ImmediateToolsAnswerAtOnce) {
  EXPECT_EQ(
      bench.request("tools/call", R"("name":"echo","arguments":{"text":"a\n"})", caller),
      result_text(R"({"content":[{"type":"text","text":"a\n"}],"structuredContent":{"n":1}})"));
  EXPECT_EQ(bench.request("tools/call",
                          modern(R"("name":"echo","arguments":{"text":"a","wrong":1})"), caller),
            result_text(R"({"resultType":"complete","content":[{"type":"text","text":"a"}],)"
                        R"("structuredContent":{"n":1},"isError":true,)" +
                        std::string(kServerInfo) + "}"));
  EXPECT_EQ(bench.outcome.kind, Outcome::Kind::answered);
  EXPECT_EQ(bench.outcome.http_status, 200);
  EXPECT_TRUE(caller.channels.empty());
}

TEST_F(DispatcherTest, BadToolCallsAreInvalidParams) {
  for (const std::string_view params :
       {"", R"("name":7)", R"("name":"nobody")", R"("name":"echo","arguments":[])",
        R"("name":"echo","arguments":null)", R"("name":"echo","arguments":{})", R"("name":"echo")",
        R"("name":"echo","arguments":{"text":1})"}) {
    EXPECT_EQ(error_code(bench.request("tools/call", params, caller)), -32602) << params;
    EXPECT_EQ(error_code(bench.request("tools/call", modern(params), caller)), -32602) << params;
    EXPECT_EQ(bench.outcome.http_status, 200) << params;
  }
}

TEST_F(DispatcherTest, UnknownMethodsShowInTheStatusOfTheModernEra) {
  EXPECT_EQ(error_code(bench.request("tools/dance", "", caller)), -32601);
  EXPECT_EQ(bench.outcome.http_status, 200);
  EXPECT_EQ(error_code(bench.request("tools/dance", modern(), caller)), -32601);
  EXPECT_EQ(bench.outcome.http_status, 404);
}

TEST_F(DispatcherTest, WhatIsNotUnderstoodIsABadRequest) {
  EXPECT_EQ(error_code(bench.request(
                "tools/list", R"("_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"})",
                caller)),
            -32602);
  EXPECT_EQ(bench.outcome.http_status, 400);
  EXPECT_EQ(
      error_code(bench.request(
          "tools/list", R"("_meta":{"io.modelcontextprotocol/protocolVersion":"3"})", caller)),
      -32022);
  EXPECT_EQ(bench.outcome.http_status, 400);
  const MirroredHeaders headers{
      .protocol_version = "2026-07-28", .method = "tools/call", .name = {}};
  EXPECT_EQ(error_code(bench.send(
                R"({"jsonrpc":"2.0","id":1,"method":"tools/list","params":{)" + modern() + "}}",
                caller, &headers)),
            -32020);
  EXPECT_EQ(bench.outcome.http_status, 400);
  const MirroredHeaders version_only{.protocol_version = "2026-07-28", .method = {}, .name = {}};
  EXPECT_EQ(error_code(bench.send(R"({"jsonrpc":"2.0","id":1,"method":"tools/list"})", caller,
                                  &version_only)),
            -32602);
  EXPECT_EQ(bench.outcome.http_status, 400);

  EXPECT_EQ(error_code(bench.send("{", caller)), -32700);
  EXPECT_EQ(bench.outcome.http_status, 400);
  EXPECT_EQ(error_code(bench.send("[]", caller)), -32600);
  EXPECT_EQ(bench.outcome.http_status, 400);
}

TEST_F(DispatcherTest, NotificationsAndResponsesAreAccepted) {
  for (const std::string_view text :
       {R"({"jsonrpc":"2.0","method":"notifications/initialized"})",
        R"({"jsonrpc":"2.0","method":"tools/call","params":{"name":"later"}})",
        R"({"jsonrpc":"2.0","method":"run","params":{"prompt":"a"}})",
        R"({"jsonrpc":"2.0","method":"initialize"})", R"({"jsonrpc":"2.0","id":1,"result":{}})"}) {
    EXPECT_EQ(bench.send(text, caller), "") << text;
    EXPECT_EQ(bench.outcome.kind, Outcome::Kind::accepted) << text;
  }
  EXPECT_TRUE(bench.calls.empty());
  EXPECT_TRUE(bench.runs.empty());
}

TEST_F(DispatcherTest, DeferredToolsAnswerThroughTheChannel) {
  call_later("");
  ASSERT_EQ(caller.ids, std::vector<RequestId>{"1"});
  EXPECT_TRUE(bench.calls[0]->emit("unseen"));
  bench.run_all();
  EXPECT_EQ(caller.channel().written, "");
  bench.calls[0]->complete({.text = "done"});
  ASSERT_EQ(caller.channel().replies.size(), 1U);
  EXPECT_EQ(caller.channel().status, 200);
  EXPECT_EQ(caller.channel().replies[0],
            result_text(R"({"resultType":"complete","content":[{"type":"text","text":"done"}],)" +
                        std::string(kServerInfo) + "}"));
  EXPECT_FALSE(caller.channel().waits_for_close());
  // Only the first answer counts.
  bench.calls[0]->complete({.text = "again"});
  bench.calls[0]->fail({-32603, "again", {}});
  EXPECT_EQ(caller.channel().replies.size(), 1U);
}

TEST_F(DispatcherTest, DeferredToolsMayFail) {
  call_later();
  bench.calls[0]->fail({kLimitReached, "full", {}});
  ASSERT_EQ(caller.channel().replies.size(), 1U);
  EXPECT_EQ(caller.channel().replies[0],
            R"({"jsonrpc":"2.0","id":1,"error":{"code":-31010,"message":"full"}})");
  EXPECT_EQ(bench.request("tools/call", R"("name":"later","arguments":{"refuse":1})", caller), "");
  ASSERT_EQ(caller.channel().replies.size(), 1U);
  EXPECT_EQ(error_code(caller.channel().replies[0]), -32602);
}

TEST_F(DispatcherTest, ProgressComesBeforeTheResult) {
  call_later();
  PendingRequest& call = *bench.calls[0];
  call.emit("a");
  call.emit("b\n");
  bench.run_all();
  const auto progress = [](int number, std::string_view text) {
    return R"(data: {"jsonrpc":"2.0","method":"notifications/progress","params":)"
           R"({"progressToken":"p","progress":)" +
           std::to_string(number) + R"(,"message":")" + std::string(text) + "\"}}\n\n";
  };
  std::string expected = progress(1, "a") + progress(2, "b\\n");
  EXPECT_EQ(caller.channel().written, expected);
  call.emit("c");
  call.complete({.text = "abc"});
  bench.run_all();
  expected += progress(3, "c") + "data: " +
              result_text(R"({"resultType":"complete","content":[{"type":"text","text":"abc"}],)" +
                          std::string(kServerInfo) + "}") +
              "\n\n";
  EXPECT_EQ(caller.channel().written, expected);
  EXPECT_EQ(caller.channel().finishes, 1);
  EXPECT_TRUE(caller.channel().replies.empty());
  bench.calls.clear();
  EXPECT_EQ(bench.managers[0]->counters().open, 0U);
}

TEST_F(DispatcherTest, CallersThatTakeNoEventsGetOnlyTheResult) {
  caller.streams = false;
  call_later();
  EXPECT_TRUE(bench.calls[0]->emit("a"));
  bench.calls[0]->complete({.text = "a"});
  bench.run_all();
  EXPECT_EQ(caller.channel().written, "");
  EXPECT_EQ(caller.channel().replies.size(), 1U);
}

TEST_F(DispatcherTest, ProgressWaitsForASlowCaller) {
  call_later();
  caller.channel().writable = false;
  CountingStreamProducer producer;
  PendingRequest& call = *bench.calls[0];
  call.set_producer(&producer);
  call.emit("first");
  bench.run_all();
  const std::string first = caller.channel().written;
  EXPECT_NE(first.find("first"), std::string::npos);

  std::size_t emitted = 0;
  while (call.emit(std::string(1000, 'x'))) {
    ASSERT_LT(++emitted, 100000U);
    bench.run_all();
  }
  EXPECT_EQ(caller.channel().written, first);
  EXPECT_EQ(producer.writable_calls, 0);
  caller.channel().drain();
  bench.run_all();
  EXPECT_GT(caller.channel().written.size(), emitted * 1000);
  EXPECT_EQ(producer.writable_calls, 1);
  call.complete({.text = "end"});
  bench.run_all();
  EXPECT_EQ(caller.channel().finishes, 1);
}

TEST_F(DispatcherTest, TheCallersGoingAwayCancelsTheCall) {
  for (const bool after_progress : {false, true}) {
    call_later();
    const std::shared_ptr<PendingRequest> call = bench.calls.back();
    CountingStreamProducer producer;
    call->set_producer(&producer);
    if (after_progress) {
      call->emit("a");
      bench.run_all();
    }
    EXPECT_FALSE(call->over());
    caller.channel().close();
    EXPECT_TRUE(call->over());
    EXPECT_EQ(producer.cancels, 1);
    const std::string written = caller.channel().written;
    EXPECT_TRUE(call->emit("b"));
    call->complete({.text = "late"});
    bench.run_all();
    EXPECT_EQ(caller.channel().written, written);
    EXPECT_TRUE(caller.channel().replies.empty());
    EXPECT_EQ(bench.managers[0]->counters().open, 0U);
  }
}

TEST_F(DispatcherTest, AResultThatIsOnItsWayIsLostWithTheCaller) {
  call_later();
  caller.channel().writable = false;
  bench.calls[0]->emit("a");
  bench.run_all();
  bench.calls[0]->complete({.text = "a"});
  bench.calls.clear();
  EXPECT_EQ(bench.managers[0]->counters().open, 1U);
  caller.channel().close();
  bench.run_all();
  EXPECT_EQ(bench.managers[0]->counters().open, 0U);
}

TEST_F(DispatcherTest, ACallThatIsDroppedUnansweredIsAnswered) {
  for (const bool after_progress : {false, true}) {
    call_later();
    if (after_progress) bench.calls.back()->emit("a");
    bench.calls.clear();
    bench.run_all();
    if (after_progress) {
      EXPECT_THAT(caller.channel().written, HasSubstr(R"("error":{"code":-32603)"));
      EXPECT_EQ(caller.channel().finishes, 1);
    } else {
      ASSERT_EQ(caller.channel().replies.size(), 1U);
      EXPECT_EQ(error_code(caller.channel().replies[0]), -32603);
    }
  }
  EXPECT_EQ(bench.managers[0]->counters().open, 0U);
  EXPECT_EQ(bench.quota.in_use(), 0U);
}

/// If the connection is already gone, a channel says so as soon as a close task is set.
TEST_F(DispatcherTest, AnAnswerMayFindItsCallerGone) {
  call_later();
  bench.calls[0]->emit("a");
  bench.run_all();
  caller.channel().vanish();
  bench.calls[0]->complete({.text = "late"});
  bench.run_all();
  EXPECT_EQ(bench.managers[0]->counters().open, 0U);
}

TEST_F(DispatcherTest, AServerThatStopsAnswersWhatIsUnderWay) {
  call_later();
  CountingStreamProducer producer;
  bench.calls[0]->set_producer(&producer);
  call_later();
  bench.calls[1]->emit("a");
  bench.dispatcher->end_calls({kBusy, "The server is shutting down", {}});
  bench.run_all();
  EXPECT_EQ(producer.cancels, 1);
  ASSERT_EQ(caller.channels[0]->replies.size(), 1U);
  EXPECT_EQ(error_code(caller.channels[0]->replies[0]), kBusy);
  EXPECT_THAT(caller.channels[1]->written, HasSubstr(R"("error":{"code":-31000)"));
  EXPECT_EQ(bench.quota.in_use(), 0U);
  // A call may outlive the loop that it belongs to.
  call_later();
  bench.dispatcher.reset();
  EXPECT_TRUE(bench.calls[2]->over());
}

TEST_F(DispatcherTest, ACallMayFollowAStream) {
  const std::shared_ptr<ChunkStream> stream = bench.start(0);
  call_later();
  bench.calls[0]->follow(std::string(stream->id()));
  stream->append(ChunkKind::text, "a\"");
  bench.run_all();
  EXPECT_NE(caller.channel().written.find(R"("progress":1,"message":"a\"")"), std::string::npos);
  stream->append(ChunkKind::text, "b");
  stream->finish(R"("status":"finished","finish_reason":"stop","usage":{"output_tokens":2})");
  bench.run_all();
  EXPECT_NE(caller.channel().written.find(
                R"("content":[{"type":"text","text":"a\"b"}],)"
                R"("structuredContent":{"finish_reason":"stop","usage":{"output_tokens":2}})"),
            std::string::npos)
      << caller.channel().written;
  EXPECT_EQ(caller.channel().finishes, 1);

  call_later();
  bench.calls.back()->follow("0123456789abcdef");
  ASSERT_EQ(caller.channel().replies.size(), 1U);
  EXPECT_EQ(error_code(caller.channel().replies[0]), -32001);
}

TEST_F(DispatcherTest, ALongBacklogIsFollowedInSeveralTurns) {
  const std::shared_ptr<ChunkStream> stream = bench.start(0);
  for (int i = 0; i < 40; ++i) stream->append(ChunkKind::text, std::string(10'000, 'x'));
  stream->finish(R"("status":"finished","finish_reason":"stop")");
  bench.run_all();
  call_later();
  bench.calls[0]->follow(std::string(stream->id()));
  EXPECT_FALSE(bench.calls[0]->over());
  call_later();
  bench.calls[1]->follow(std::string(stream->id()));
  EXPECT_EQ(caller.channel().written, "") << "there is no work left in this turn";
  bench.run_all();
  for (const auto& call : bench.calls) EXPECT_TRUE(call->over());
  EXPECT_EQ(longest_run(caller.channel().written, 'x'), 400'000U);
}

TEST_F(DispatcherTest, TheTextOfAFollowedStreamDrawsOnItsClientsMemory) {
  const std::shared_ptr<ChunkStream> stream = bench.start(0);
  call_later();
  bench.calls.back()->follow(std::string(stream->id()));
  const std::size_t before = bench.policy.budget.used();
  stream->append(ChunkKind::text, std::string(100'000, 'x'));
  bench.run_all();
  EXPECT_GT(bench.policy.budget.used(), before + 99'000);
  // Others hold all the rest of the memory.
  const std::size_t rest = bench.policy.budget.limit() - bench.policy.budget.used() - 150'000;
  ASSERT_TRUE(bench.policy.budget.try_acquire(rest));
  stream->append(ChunkKind::text, "more");
  bench.run_all();
  EXPECT_THAT(caller.channel().written,
              ::testing::HasSubstr("the whole text of this call's result"));
  EXPECT_TRUE(bench.calls.back()->over());
  bench.policy.budget.release(rest);
  bench.calls.clear();
  stream->discard();
  bench.run_all();
  EXPECT_EQ(bench.policy.budget.used(), 0U);
}

TEST_F(DispatcherTest, ACallThatIsRefusedRunsNoHandler) {
  const std::string params = modern(R"("name":"later")", R"("progressToken":"p")");
  const std::size_t most = bench.quota.limit();
  for (std::size_t i = 0; i < most; ++i) {
    call_later();
    // Whatever the call does later, it is not refused for lack of a place.
    EXPECT_TRUE(bench.calls.back()->emit("a"));
  }
  EXPECT_EQ(error_code(bench.request("tools/call", params, caller)), kLimitReached);
  EXPECT_EQ(bench.calls.size(), most);
  EXPECT_EQ(caller.channels.size(), most);
  RecordingCaller other("bob");
  EXPECT_EQ(bench.request("tools/call", params, other), "");
  // A call that is answered, cancelled or dropped makes room for another.
  bench.calls[0]->complete({.text = "done"});
  call_later();
  caller.channels[1]->close();
  call_later();
  EXPECT_EQ(error_code(bench.request("tools/call", params, caller)), kLimitReached);
}

TEST_F(DispatcherTest, CallsAreNoStreamsOfTheirCaller) {
  call_later();
  bench.calls[0]->emit("a");
  bench.run_all();
  EXPECT_EQ(bench.managers[0]->counters().open, 1U);
  bench.request("streams", "", caller);
  bench.run_all();
  ASSERT_EQ(caller.channel().replies.size(), 1U);
  EXPECT_THAT(caller.channel().replies[0], HasSubstr(R"("streams":[])"));
  // Nor do the stream methods find them by an id.
  for (const char* method : {"run", "abort", "is_running", "ack"}) {
    EXPECT_EQ(error_code(bench.request(
                  method, R"("stream_id":"0123456789abcdef","from_seq":0,"seq":0)", caller)),
              -32001)
        << method;
  }
}

TEST_F(DispatcherTest, DeferredCallsAreRefusedWhenThereIsNoRoomOrTimeForThem) {
  caller.full = true;
  EXPECT_EQ(error_code(bench.request("tools/call", R"("name":"later")", caller)), kBusy);
  caller.full = false;
  bench.services[0]->drain();
  EXPECT_EQ(error_code(bench.request("tools/call", R"("name":"later")", caller)), kBusy);
  EXPECT_EQ(error_code(bench.request("run", R"("prompt":"a")", caller)), kBusy);
  EXPECT_TRUE(bench.calls.empty());
  EXPECT_EQ(error_code(bench.request("tools/list", "", caller)), 0);
}

TEST_F(DispatcherTest, NoSessionBeginsDuringAShutdown) {
  bench.services[0]->drain();
  const std::string reply =
      bench.request("initialize", R"("protocolVersion":"2025-11-25","capabilities":{})", caller);
  EXPECT_EQ(error_code(reply), kBusy);
  EXPECT_EQ(bench.outcome.http_status, 503);
  EXPECT_EQ(caller.agreed, nullptr);
}

}  // namespace
}  // namespace sluice
