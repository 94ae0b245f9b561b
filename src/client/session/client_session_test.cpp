#include "client/session/client_session.hpp"

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

#include "client/session/client_session_test_support.hpp"
#include "protocol/error_codes.hpp"
#include "rpc/error_codes.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;

using test::ClientSessionTest;

TEST_F(ClientSessionTest, AnswersGoToTheirRequestsBehindTheirProgress) {
  open_modern();
  call();
  call();
  EXPECT_THAT(take(), HasSubstr(R"("progressToken":2)"));
  EXPECT_EQ(last.name, "tool");
  EXPECT_EQ(last.method, "tools/call");
  EXPECT_EQ(last.id, "2");
  take();
  receive(R"({"jsonrpc":"2.0","method":"notifications/progress","params":)"
          R"({"progressToken":3,"progress":1}})");
  receive(R"({"jsonrpc":"2.0","id":3,"result":{"a":1}})");
  receive(R"({"jsonrpc":"2.0","id":"2","result":{"a":"of another"}})");
  receive(R"({"jsonrpc":"2.0","id":3,"result":{"a":"again"}})");
  receive(R"({"jsonrpc":"2.0","method":"notifications/progress","params":)"
          R"({"progressToken":3,"progress":2}})");
  receive(R"({"jsonrpc":"2.0","id":2,"error":{"code":-5,"message":"no"}})");
  EXPECT_THAT(said, ElementsAre("progress 1", R"({"a":1})", "-5 no"));
  EXPECT_EQ(session->unanswered(), 0U);
  EXPECT_EQ(loop.timers(), 0U);
}

TEST_F(ClientSessionTest, AnswersMayComeInABatchWhereThereAreBatches) {
  options.revision = "2025-03-26";
  open();
  reply(R"("result":{"protocolVersion":"2025-03-26","capabilities":{}})");
  call();
  call();
  receive(R"([{"jsonrpc":"2.0","id":3,"result":{"a":1}},7,{"jsonrpc":"2.0","id":2,"result":{}}])");
  EXPECT_THAT(said, ElementsAre(R"({"a":1})", "{}"));
}

TEST_F(ClientSessionTest, WhatIsNoAnswerEndsItsRequest) {
  open_modern();
  call();
  receive(R"({"jsonrpc":"1.0","id":2,"result":{}})");
  call();
  receive(R"({"jsonrpc":"2.0","id":3,"result":"text"})");
  call();
  receive("{");
  receive("[]");
  receive(R"({"jsonrpc":"2.0","id":77777777777777777777,"result":{}})");
  EXPECT_THAT(said, ElementsAre(StartsWith("-32603 The server's answer cannot be read: "),
                                "-32603 The server's answer has no object as its result"));
  EXPECT_EQ(session->unanswered(), 1U);
  // Even of what is no JSON, it is known what it was to answer.
  receive("{\"jsonrpc\":\"2.0\",\"id\":4,\"result\":{\"a\":\"\xff\"}}");
  EXPECT_THAT(said.back(), AllOf(HasSubstr("cannot be read"), HasSubstr("UTF-8")));
  EXPECT_EQ(session->unanswered(), 0U);
}

TEST_F(ClientSessionTest, WhatCouldNotBeReadMayExplainASilence) {
  open_modern();
  receive("not yet");
  call({.idle_timeout = 10s});
  loop.advance(5s);
  call({.idle_timeout = 10s});
  wire.owner->on_unreadable("", {-1, "it is too long", {}});
  loop.advance(10s);
  call({.idle_timeout = 10s});
  loop.advance(10s);
  const std::string silence = "-31001 No answer to tools/call: the server was silent too long";
  const std::string reason = "; the server has sent a message that cannot be read: it is too long";
  EXPECT_THAT(said, ElementsAre(silence + reason, silence + reason, silence));
}

TEST_F(ClientSessionTest, AReplyAnswersNoRequestButItsOwn) {
  open_modern();
  call();
  call();
  EXPECT_FALSE(wire.owner->on_reply("2", R"({"jsonrpc":"2.0","id":3,"result":{}})"));
  EXPECT_FALSE(wire.owner->on_reply("", R"({"jsonrpc":"2.0","id":3,"result":{}})"));
  EXPECT_TRUE(wire.owner->on_reply("2", R"({"id":3,"result":"of another version"})"));
  EXPECT_THAT(said, IsEmpty());
  EXPECT_TRUE(wire.owner->on_reply("2",
                                   R"({"jsonrpc":"2.0","method":"notifications/progress","params":)"
                                   R"({"progressToken":3,"progress":1}})"));
  EXPECT_TRUE(wire.owner->on_reply("3", R"({"jsonrpc":"2.0","id":3,"result":{"n":3}})"));
  EXPECT_TRUE(wire.owner->on_reply("2", R"({"jsonrpc":"2.0","id":2,"result":{"n":2}})"));
  EXPECT_THAT(said, ElementsAre("progress 1", R"({"n":3})", R"({"n":2})"));
}

TEST_F(ClientSessionTest, ProgressPutsOffTheIdleTimeoutButNotTheOther) {
  open_modern();
  call({.idle_timeout = 10s, .timeout = 25s});
  take();
  for (int i = 0; i < 2; ++i) {
    loop.advance(9s);
    receive(R"({"jsonrpc":"2.0","method":"notifications/progress","params":)"
            R"({"progressToken":2,"progress":1}})");
  }
  loop.advance(8s);
  EXPECT_THAT(said, ElementsAre("progress 1", "progress 1",
                                "-31001 No answer to tools/call: it took too long"));
  EXPECT_THAT(take(), HasSubstr(R"("method":"notifications/cancelled","params":{"requestId":2)"));
  call({.idle_timeout = 10s});
  take();
  loop.advance(10s);
  EXPECT_THAT(said.back(), HasSubstr("silent too long"));
  EXPECT_EQ(loop.timers(), 0U);
}

TEST_F(ClientSessionTest, ARequestWithoutAnAnswerInTimeIsTakenBackToo) {
  open_modern();
  for (const RequestOptions& limits :
       {RequestOptions{.idle_timeout = 10s}, RequestOptions{.timeout = 10s}}) {
    wire.drops_by_transport = false;
    call(limits);
    take();
    const std::string id = last.id;
    loop.advance(10s);
    EXPECT_THAT(take(),
                HasSubstr(R"("method":"notifications/cancelled","params":{"requestId":)" + id));
    wire.drops_by_transport = true;
    call(limits);
    take();
    loop.advance(10s);
    EXPECT_THAT(wire.sent, IsEmpty());
    EXPECT_EQ(wire.dropped.back(), last.id);
  }
}

TEST_F(ClientSessionTest, ACancelledRequestIsTakenBackAsItsTransportSays) {
  open_modern();
  const auto first = call();
  take();
  session->cancel(first);
  session->cancel(first);
  EXPECT_THAT(take(), HasSubstr(R"("requestId":2,)"));
  wire.drops_by_transport = true;
  session->cancel(call());
  take();
  EXPECT_THAT(wire.sent, IsEmpty());
  EXPECT_THAT(wire.dropped, ElementsAre("2", "3"));
  receive(R"({"jsonrpc":"2.0","id":2,"result":{}})");
  EXPECT_THAT(said, IsEmpty());
  EXPECT_EQ(loop.timers(), 0U);
}

TEST_F(ClientSessionTest, HasLimits) {
  options.max_requests = 2;
  options.max_questions = 1;
  open_legacy();
  for (int i = 0; i < 3; ++i) call();
  EXPECT_THAT(said, IsEmpty()) << "never from within";
  loop.run();
  EXPECT_THAT(said, ElementsAre(HasSubstr("-31010")));
  for (int i = 0; i < 2; ++i) take();
  EXPECT_EQ(take(), "nothing");
  receive(R"({"jsonrpc":"2.0","id":1,"method":"roots/list"})");
  receive(R"({"jsonrpc":"2.0","id":2,"method":"roots/list"})");
  EXPECT_THAT(take(), HasSubstr("Too many questions"));
  wire.full = Error{kBusy, "full", {}};
  receive(R"({"jsonrpc":"2.0","id":2,"result":{}})");
  call();
  loop.run();
  EXPECT_EQ(said.back(), std::to_string(kBusy) + " full");
}

TEST_F(ClientSessionTest, ALostLinkEndsAllRequests) {
  open_legacy();
  receive(R"({"jsonrpc":"2.0","id":1,"method":"roots/list"})");
  call();
  call();
  wire.owner->on_unanswered("2", {502, "broken off", {}});
  wire.owner->on_lost({502, "gone", {}});
  loop.run();
  EXPECT_THAT(said, ElementsAre("502 broken off", "502 gone"));
  EXPECT_THAT(lost, ElementsAre("gone"));
  EXPECT_THAT(withdrawn, ElementsAre(asked[0].number));
  asked[0].answer(json::object());
  call();
  loop.run();
  EXPECT_THAT(said.back(), HasSubstr("is over"));
  EXPECT_EQ(loop.timers(), 0U);
}

TEST_F(ClientSessionTest, WhatIsBegunBecauseTheLinkIsLostFailsLater) {
  open_modern();
  int failed = 0;
  std::function<void()> again = [&] {
    session->begin("tools/call", {}, {}, {.on_answer = [&](const Result<json::object>& answer) {
                     EXPECT_FALSE(answer);
                     if (++failed < 3) again();
                   }});
  };
  again();
  wire.owner->on_lost({502, "the wire is cut", {}});
  loop.run();
  EXPECT_EQ(failed, 3);
  call();
  loop.run();
  EXPECT_THAT(said, ElementsAre(HasSubstr("is over: the wire is cut")));
}

TEST_F(ClientSessionTest, TheLongestTimeoutsAreNoLimit) {
  open_modern();
  loop.advance(1h);
  call({.idle_timeout = Duration::max(), .timeout = Duration::max()});
  loop.advance(24h);
  EXPECT_THAT(said, IsEmpty());
  reply(R"("result":{"a":1})");
  EXPECT_THAT(said, ElementsAre(R"({"a":1})"));
}

TEST_F(ClientSessionTest, TellsOfNotifications) {
  open_modern();
  receive(R"({"jsonrpc":"2.0","method":"notifications/tools/list_changed"})");
  EXPECT_THAT(notified, ElementsAre("notifications/tools/list_changed"));
}

TEST_F(ClientSessionTest, WhatComesInAReplyBelongsToItsRequest) {
  open_legacy();
  session->begin("tools/call", {{"name", "tool"}}, {},
                 {.on_notification = [this](std::string_view method, const json::object&) {
                   said.emplace_back(method);
                 }});
  const auto number = call();
  const std::string log = R"({"jsonrpc":"2.0","method":"notifications/message","params":{}})";
  EXPECT_TRUE(wire.owner->on_reply("2", log));
  EXPECT_THAT(said, ElementsAre("notifications/message"));
  EXPECT_TRUE(wire.owner->on_reply("3", log));
  wire.owner->on_message(log);
  EXPECT_EQ(notified.size(), 2U);
  EXPECT_TRUE(wire.owner->on_reply("3", R"({"jsonrpc":"2.0","id":1,"method":"roots/list"})"));
  receive(R"({"jsonrpc":"2.0","id":2,"method":"roots/list"})");
  ASSERT_EQ(asked.size(), 2U);
  EXPECT_EQ(asked[0].request, number);
  EXPECT_EQ(asked[1].request, 0U);
}

TEST_F(ClientSessionTest, ALateLogMessageOfASharedSessionBelongsToNobody) {
  options.is_shared = true;
  open_legacy();
  call();
  const std::string log = R"({"jsonrpc":"2.0","method":"notifications/message","params":{}})";
  EXPECT_TRUE(wire.owner->on_reply("2", R"({"jsonrpc":"2.0","id":2,"result":{}})"));
  EXPECT_TRUE(wire.owner->on_reply("2", log));
  EXPECT_THAT(notified, IsEmpty());
  const std::string changed = R"({"jsonrpc":"2.0","method":"notifications/tools/list_changed"})";
  EXPECT_TRUE(wire.owner->on_reply("2", changed));
  EXPECT_THAT(notified, ElementsAre("notifications/tools/list_changed"));
  EXPECT_TRUE(wire.owner->on_reply("", log)) << "a stream of its own";
  EXPECT_THAT(notified, ElementsAre("notifications/tools/list_changed", "notifications/message"));
  wire.sent.clear();
  EXPECT_TRUE(wire.owner->on_reply("2", R"({"jsonrpc":"2.0","id":7,"method":"roots/list"})"));
  loop.run();
  EXPECT_THAT(asked, IsEmpty());
  EXPECT_THAT(take(), HasSubstr(R"("id":7,"error")"));
}

TEST_F(ClientSessionTest, WhatComesInAModernReplyAfterItsAnswerBelongsToNobody) {
  open_modern();
  call();
  const std::string log = R"({"jsonrpc":"2.0","method":"notifications/message","params":{}})";
  const std::string own = R"({"jsonrpc":"2.0","method":"notifications/own"})";
  const std::string question = R"({"jsonrpc":"2.0","id":7,"method":"elicitation/create"})";
  ASSERT_TRUE(wire.owner->awaits("2"));
  EXPECT_TRUE(wire.owner->on_reply("2", own));
  EXPECT_THAT(notified, ElementsAre("notifications/own"));
  EXPECT_TRUE(wire.owner->on_reply("2", R"({"jsonrpc":"2.0","id":2,"result":{}})"));
  for (const std::string& late : {log, own, question}) EXPECT_TRUE(wire.owner->on_reply("2", late));
  EXPECT_THAT(notified, ElementsAre("notifications/own"));
  EXPECT_TRUE(asked.empty());
}

TEST_F(ClientSessionTest, AProbeIsAskedHoweverMuchIsUnanswered) {
  options.max_requests = 1;
  open_legacy();
  call();
  const std::size_t sent = wire.sent.size();
  session->begin("ping", {}, {}, {});
  EXPECT_EQ(wire.sent.size(), sent);
  session->begin("ping", {}, {.is_probe = true}, {});
  EXPECT_EQ(wire.sent.size(), sent + 1);
}

TEST_F(ClientSessionTest, SaysNothingMoreOnceItIsDestroyed) {
  const auto leave = [this](Result<json::object>) {
    said.emplace_back("over");
    session.reset();
  };
  open_modern();
  for (int i = 0; i < 3; ++i) session->begin("tools/call", {}, {}, {.on_answer = leave});
  wire.owner->on_lost({502, "cut", {}});
  loop.run();
  EXPECT_THAT(said, ElementsAre("over"));
  EXPECT_THAT(lost, IsEmpty());
  options.revision = "2025-03-26";
  open();
  reply(R"("result":{"protocolVersion":"2025-03-26","capabilities":{}})");
  for (int i = 0; i < 2; ++i) session->begin("tools/call", {}, {}, {.on_answer = leave});
  receive(R"([{"jsonrpc":"2.0","id":2,"result":{}},{"jsonrpc":"2.0","id":3,"result":{}}])");
  EXPECT_THAT(said, ElementsAre("over", "over"));
}

TEST_F(ClientSessionTest, WithdrawsInALaterTurn) {
  open_modern();
  const auto number = call();
  reply(
      R"("result":{"resultType":"input_required","inputRequests":{"a":{"method":"roots/list"}}})");
  ASSERT_EQ(asked.size(), 1U);
  session->cancel(number);
  EXPECT_THAT(withdrawn, IsEmpty());
  loop.run();
  EXPECT_THAT(withdrawn, ElementsAre(asked[0].number));
}

TEST_F(ClientSessionTest, MayBeDestroyedInEachCallback) {
  open_modern();
  session->begin("tools/call", {{"name", "tool"}}, {},
                 {.on_progress = [this](const json::object&) { session.reset(); }});
  receive(R"({"jsonrpc":"2.0","method":"notifications/progress","params":)"
          R"({"progressToken":2,"progress":1}})");
  EXPECT_EQ(session, nullptr);
  open_modern();
  call();
  session->begin("tools/call", {}, {}, {.on_answer = [this](auto) { session.reset(); }});
  receive(R"({"jsonrpc":"2.0","id":3,"result":{}})");
  EXPECT_EQ(session, nullptr);
  EXPECT_EQ(loop.timers(), 0U);
}

TEST_F(ClientSessionTest, ListsTheToolsAgainWhenHeaderFieldsAreWrong) {
  wire.carries_headers = true;
  open_modern();
  session->begin("tools/call", {{"name", "tool"}, {"arguments", {{"region", "eu"}}}}, {},
                 {.on_answer = [this](Result<json::object> answer) {
                   said.push_back(answer ? "answered" : answer.error().message);
                 }});
  const std::string mismatch = R"("error":{"code":-32020,"message":"Mcp-Param-Region is missing"})";
  reply(mismatch);
  EXPECT_THAT(last.headers, IsEmpty());
  reply(R"("result":{"tools":[],"nextCursor":"2"})");
  EXPECT_EQ(last.method, "tools/list");
  reply(R"("result":{"tools":[{"name":"tool","inputSchema":{"type":"object","properties":{)"
        R"("region":{"type":"string","x-mcp-header":"Region"}}}}]})");
  EXPECT_THAT(last.text, HasSubstr(R"("cursor":"2")"));
  reply(R"("result":{"content":[]})");
  EXPECT_EQ(last.method, "tools/call");
  EXPECT_THAT(last.headers, ElementsAre(::testing::Pair("Mcp-Param-Region", "eu")));
  EXPECT_THAT(said, ElementsAre("answered"));

  // Only once for a call.
  said.clear();
  session->begin("tools/call", {{"name", "other"}}, {},
                 {.on_answer = [this](Result<json::object> answer) {
                   said.push_back(answer ? "answered" : answer.error().message);
                 }});
  reply(mismatch);
  reply(R"("result":{"tools":[]})");
  reply(mismatch);
  EXPECT_THAT(said, ElementsAre("Mcp-Param-Region is missing"));
  EXPECT_EQ(loop.timers(), 0U);
}

TEST_F(ClientSessionTest, NoRequestIsLeftPausedWhenItIsOver) {
  open_modern();
  const auto answered = call();
  const auto cancelled = call();
  const auto resumed = call();
  loop.run();
  for (const auto each : {answered, cancelled, resumed}) session->pause(each, true);
  session->pause(resumed, true);
  EXPECT_THAT(wire.paused, SizeIs(3));
  session->pause(resumed, false);
  session->cancel(cancelled);
  reply(R"("result":{"content":[]})");
  EXPECT_THAT(said, SizeIs(1));
  EXPECT_THAT(wire.paused, IsEmpty());
  session->pause(answered, true);
  EXPECT_THAT(wire.paused, IsEmpty()) << "it is over";
}

TEST_F(ClientSessionTest, APauseHoldsInEachRoundOfARequest) {
  open_modern();
  const auto number = call();
  session->pause(number, true);
  EXPECT_THAT(wire.paused, ElementsAre("2"));
  reply(R"("result":{"resultType":"input_required","requestState":"s1"})");
  EXPECT_THAT(wire.paused, ElementsAre("3"));
  session->pause(number, false);
  EXPECT_THAT(wire.paused, IsEmpty());
  reply(R"("result":{"resultType":"input_required","requestState":"s2"})");
  EXPECT_THAT(wire.paused, IsEmpty());
}

TEST_F(ClientSessionTest, TheSilenceOfAServerThatIsNotReadCountsForNothing) {
  for (const bool shares : {false, true}) {
    wire.shares_connection = shares;
    open_modern();
    said.clear();
    const auto paused = call({.idle_timeout = 10s});
    call({.idle_timeout = 10s});
    session->pause(paused, true);
    loop.advance(30s);
    EXPECT_THAT(said, SizeIs(shares ? 0 : 1));
    session->pause(paused, false);
    loop.advance(9s);
    EXPECT_THAT(said, SizeIs(shares ? 0 : 1));
    loop.advance(1s);
    EXPECT_THAT(said, SizeIs(2));
  }
}

TEST_F(ClientSessionTest, TheIdleTimeoutHoldsWhileToolsAreListedAgain) {
  wire.carries_headers = true;
  open_modern();
  call({.idle_timeout = 2s});
  reply(R"("error":{"code":-32020,"message":"mismatch"})");
  take();
  EXPECT_EQ(last.method, "tools/list");
  loop.advance(2s);
  EXPECT_THAT(said, ElementsAre("-32020 mismatch"));
  EXPECT_EQ(loop.timers(), 0U);
}

TEST_F(ClientSessionTest, ABatchMayBeLongerThanThereAreRequestsAndAnEndlessOneIsNamed) {
  options.revision = "2025-03-26";
  options.max_requests = 2;
  open();
  reply(R"("result":{"protocolVersion":"2025-03-26"})");
  take();
  const auto batch = [](std::size_t before) {
    std::string text = "[";
    for (std::size_t i = 0; i < before; ++i) text += R"({"jsonrpc":"2.0","method":"n"},)";
    return text + R"({"jsonrpc":"2.0","id":2,"result":{}}])";
  };
  call({.idle_timeout = 60s});
  receive(batch(ClientSession::kMaxBatch));
  EXPECT_THAT(notified, IsEmpty());
  loop.advance(60s);
  EXPECT_THAT(said, ElementsAre(HasSubstr("the batch has more than 100000 messages")));
  call();
  std::string text = batch(1000);
  text.replace(text.find(R"("id":2)"), 6, R"("id":3)");
  receive(text);
  EXPECT_EQ(notified.size(), 1000U);
  EXPECT_EQ(said.back(), "{}");
}

TEST_F(ClientSessionTest, BatchesMayMixEverythingThatAServerSends) {
  options.revision = "2025-03-26";
  open();
  reply(R"("result":{"protocolVersion":"2025-03-26","capabilities":{}})");
  take();  // initialized
  call();
  take();
  receive(R"([{"jsonrpc":"2.0","method":"notifications/progress","params":)"
          R"({"progressToken":2,"progress":1}},{"jsonrpc":"2.0","id":"p","method":"ping"},)"
          R"({"jsonrpc":"2.0","method":"notifications/tools/list_changed"},)"
          R"({"jsonrpc":"2.0","id":2,"result":{"a":1}}])");
  EXPECT_THAT(said, ElementsAre("progress 1", R"({"a":1})"));
  EXPECT_EQ(take(), R"({"jsonrpc":"2.0","id":"p","result":{}})");
  EXPECT_THAT(notified, ElementsAre("notifications/tools/list_changed"));
}

TEST_F(ClientSessionTest, WhatOnlyReadsIsSentAgain) {
  for (const char* const method :
       {"tools/list", "skills/list", "tasks/get", "tasks/list", "server/discover", "prompts/get"}) {
    EXPECT_TRUE(only_reads(method)) << method;
  }
  for (const char* const method : {"tools/call", "tasks/cancel", "tasks/update"}) {
    EXPECT_FALSE(only_reads(method)) << method;
  }
}

}  // namespace
}  // namespace sluice
