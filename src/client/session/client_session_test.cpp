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
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;

using test::ClientSessionTest;

TEST_F(ClientSessionTest, FindsAModernServer) {
  open();
  EXPECT_THAT(take(), HasSubstr(R"("method":"server/discover")"));
  EXPECT_THAT(last.text, HasSubstr(R"("io.modelcontextprotocol/protocolVersion":"2026-07-28")"));
  EXPECT_THAT(last.text, HasSubstr(R"("io.modelcontextprotocol/clientInfo":{"name":"test")"));
  receive(R"({"jsonrpc":"2.0","id":1,"result":{"supportedVersions":["3000-01-01","2026-07-28"]}})");
  ASSERT_TRUE(connected && *connected);
  EXPECT_EQ((*connected)->revision->name, "2026-07-28");
  EXPECT_THAT(wire.sent, IsEmpty());
  EXPECT_EQ(loop.timers(), 0U);
}

TEST_F(ClientSessionTest, TakesAnyOtherErrorForALegacyServer) {
  for (const std::string error :
       {R"("error":{"code":-32601,"message":"?"})", R"("error":{"code":-32602,"message":"?"})",
        R"("error":7)", R"("result":[])"}) {
    connected.reset();
    open();
    reply(error);
    EXPECT_THAT(take(), HasSubstr(R"("method":"initialize")")) << error;
    EXPECT_THAT(last.text, HasSubstr(R"("protocolVersion":"2025-11-25")"));
    EXPECT_THAT(last.text, Not(HasSubstr("_meta")));
    receive(R"({"jsonrpc":"2.0","id":)" + last.id +
            R"(,"result":{"protocolVersion":"2025-03-26","capabilities":{}}})");
    ASSERT_TRUE(connected && *connected);
    EXPECT_EQ((*connected)->revision->name, "2025-03-26");
    EXPECT_THAT(take(), HasSubstr("notifications/initialized"));
  }
}

TEST_F(ClientSessionTest, TakesSilenceAndDeathForALegacyServer) {
  open();
  take();
  loop.advance(options.probe_timeout);
  EXPECT_THAT(take(), HasSubstr(R"("method":"initialize")"));
  EXPECT_THAT(wire.sent, IsEmpty()) << "no cancellation";
  // The answer to the probe comes too late.
  receive(R"({"jsonrpc":"2.0","id":1,"result":{"supportedVersions":["2026-07-28"]}})");
  EXPECT_FALSE(connected);

  connected.reset();
  open();
  take();
  wire.owner->on_lost({502, "it has ended", {}});
  loop.run();
  EXPECT_THAT(take(), HasSubstr(R"("method":"initialize")"));
  wire.owner->on_lost({502, "it has ended again", {}});
  loop.run();
  ASSERT_TRUE(connected && !*connected);
  EXPECT_EQ(connected->error().message, "it has ended again");
  EXPECT_THAT(lost, ElementsAre("it has ended again"));
}

TEST_F(ClientSessionTest, AServerThatIsKnownToBeALegacyOneIsNotProbed) {
  options.expects_legacy = true;
  open();
  EXPECT_THAT(take(), HasSubstr(R"("method":"initialize")"));
  receive(R"({"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no longer"}})");
  ASSERT_TRUE(connected && !*connected);
  EXPECT_EQ(connected->error().message, "no longer");

  // A revision that was named goes first.
  connected.reset();
  options.revision = "2026-07-28";
  open();
  EXPECT_THAT(take(), HasSubstr(R"("method":"server/discover")"));
}

TEST_F(ClientSessionTest, ARevisionThatBothKnowIsTriedOnce) {
  open();
  reply(
      R"("error":{"code":-32022,"message":"no","data":{"supported":["2025-06-18","1999-01-01"]}})");
  EXPECT_THAT(take(), HasSubstr(R"("protocolVersion":"2025-06-18")"));

  connected.reset();
  open();
  for (int i = 0; i < 2; ++i) {
    reply(R"("error":{"code":-32022,"message":"no","data":{"supported":["2026-07-28"]}})");
  }
  ASSERT_TRUE(connected && !*connected);
  EXPECT_EQ(connected->error().code, kUnsupportedProtocolVersion);
  EXPECT_THAT(wire.sent, IsEmpty());
}

TEST_F(ClientSessionTest, SpeaksOnlyWhatTheServerLists) {
  open();
  reply(R"("result":{"supportedVersions":["3000-01-01","2025-03-26","2025-06-18"]})");
  EXPECT_THAT(take(), HasSubstr(R"("protocolVersion":"2025-06-18")"));
  receive(R"({"jsonrpc":"2.0","id":2,"result":{"protocolVersion":"2025-06-18"}})");
  ASSERT_TRUE(connected && *connected);
  EXPECT_EQ((*connected)->revision->name, "2025-06-18");

  for (const std::string pinned : {"", "2026-07-28"}) {
    options.revision = pinned;
    connected.reset();
    open();
    reply(R"("result":{"supportedVersions":["3000-01-01"]})");
    ASSERT_TRUE(connected && !*connected);
    EXPECT_EQ(connected->error().code, kUnsupportedProtocolVersion);
    EXPECT_EQ(connected->error().data, R"({"supported":["3000-01-01"]})");
    EXPECT_THAT(wire.sent, IsEmpty());
  }
}

TEST_F(ClientSessionTest, AModernServerThatStartsSlowlyIsFound) {
  // It answers the probe late, and knows no `initialize`.
  open();
  take();
  loop.advance(options.probe_timeout);
  EXPECT_THAT(take(), HasSubstr(R"("id":2,"method":"initialize")"));
  receive(R"({"jsonrpc":"2.0","id":1,"result":{"supportedVersions":["2026-07-28"],"a":1}})");
  EXPECT_FALSE(connected);
  receive(R"({"jsonrpc":"2.0","id":2,"error":{"code":-32601,"message":"what?"}})");
  ASSERT_TRUE(connected && *connected);
  EXPECT_EQ((*connected)->revision->name, "2026-07-28");
  EXPECT_TRUE((*connected)->about.contains("a"));
  EXPECT_THAT(wire.sent, IsEmpty());

  // It has lost the probe, and says what it speaks.
  connected.reset();
  open();
  take();
  loop.advance(options.probe_timeout);
  const std::string refusal =
      R"("error":{"code":-32022,"message":"no","data":{"supported":["2026-07-28"]}})";
  reply(refusal);
  reply(R"("result":{"supportedVersions":["2026-07-28"]})");
  EXPECT_EQ(last.method, "server/discover");
  ASSERT_TRUE(connected && *connected);
  EXPECT_EQ((*connected)->revision->name, "2026-07-28");

  // It speaks both eras: the session that was begun counts.
  connected.reset();
  open();
  take();
  loop.advance(options.probe_timeout);
  receive(R"({"jsonrpc":"2.0","id":1,"result":{"supportedVersions":["2026-07-28"]}})");
  reply(R"("result":{"protocolVersion":"2025-11-25"})");
  ASSERT_TRUE(connected && *connected);
  EXPECT_EQ((*connected)->revision->name, "2025-11-25");
  // Nor does the late answer count when that session is replaced.
  take();
  call();
  take();
  wire.owner->on_session_over(last.id);
  reply(refusal);
  EXPECT_THAT(said, ElementsAre("-32022 no"));
}

TEST_F(ClientSessionTest, APinnedRevisionIsTheOnlyOne) {
  options.revision = "2026-07-28";
  open();
  reply(R"("error":{"code":-32022,"message":"?"})");
  ASSERT_TRUE(connected && !*connected);

  // It need not be asked.
  connected.reset();
  options.asks_first = false;
  open();
  ASSERT_TRUE(connected && *connected);
  EXPECT_EQ((*connected)->revision->name, "2026-07-28");
  EXPECT_THAT(wire.sent, IsEmpty());

  connected.reset();
  options.revision = "2025-06-18";
  open();
  reply(R"("result":{"protocolVersion":"2025-03-26","capabilities":{}})");
  ASSERT_TRUE(connected && !*connected);
  EXPECT_EQ(connected->error().message,
            "The server speaks revision \"2025-03-26\", which was not asked for");

  connected.reset();
  options.revision = "1999-01-01";
  open();
  ASSERT_TRUE(connected && !*connected);
  EXPECT_EQ(connected->error().code, kUnsupportedProtocolVersion);
  EXPECT_THAT(connected->error().message, HasSubstr("does not speak revision \"1999-01-01\""));
}

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

TEST_F(ClientSessionTest, AnswersWhatAModernServerAsksRoundByRound) {
  open_modern();
  const auto number = call();
  reply(R"("result":{"resultType":"input_required","requestState":"s1","inputRequests":{)"
        R"("who":{"method":"elicitation/create","params":{"message":"Who?"}},)"
        R"("where":{"method":"roots/list"}}})");
  ASSERT_EQ(asked.size(), 2U);
  EXPECT_EQ(asked[0].request, number);
  EXPECT_EQ(asked[0].key, "who");
  EXPECT_EQ(asked[1].key, "where");
  EXPECT_EQ(asked[0].method, "elicitation/create");
  EXPECT_EQ(asked[0].params.at("message"), "Who?");
  asked[1].answer(json::object{{"roots", json::array()}});
  EXPECT_EQ(take(), "nothing");
  loop.advance(1h);
  asked[0].answer(json::object{{"action", "decline"}});
  asked[0].answer(json::object{{"action", "accept"}});
  EXPECT_THAT(take(), StartsWith(R"({"jsonrpc":"2.0","id":3,"method":"tools/call")"));
  EXPECT_THAT(last.text, HasSubstr(R"("requestState":"s1")"));
  EXPECT_THAT(last.text, HasSubstr(R"("who":{"action":"decline"})"));
  EXPECT_THAT(last.text, HasSubstr(R"("where":{"roots":[]})"));
  // Not a question, but a pause: only the state goes back.
  receive(
      R"({"jsonrpc":"2.0","id":3,"result":{"resultType":"input_required","requestState":"s2"}})");
  EXPECT_THAT(take(), HasSubstr(R"("requestState":"s2")"));
  EXPECT_THAT(last.text, Not(HasSubstr("inputResponses")));
  receive(R"({"jsonrpc":"2.0","id":4,"result":{"resultType":"complete"}})");
  EXPECT_THAT(said, ElementsAre(R"({"resultType":"complete"})"));
}

TEST_F(ClientSessionTest, RoundsAreBoundedAndOnlyWhatIsOfferedIsAsked) {
  options.max_rounds = 3;
  open_modern();
  call();
  for (int i = 0; i < 4; ++i) {
    reply(R"("result":{"resultType":"input_required","requestState":"s"})");
  }
  EXPECT_THAT(said.back(), HasSubstr("asks for more input in each of 3 rounds"));
  call();
  reply(R"("result":{"resultType":"input_required","inputRequests":{)"
        R"("a":{"method":"roots/list"},"b":{"method":"sampling/createMessage"}}})");
  EXPECT_THAT(said.back(), HasSubstr(R"(asks for "sampling/createMessage", which)"));
  EXPECT_THAT(asked, IsEmpty());
  call();
  reply(R"("result":{"resultType":"input_required","inputRequests":{)"
        R"("a":{"method":"elicitation/create","params":{"mode":"url","url":"https://x"}}}})");
  EXPECT_THAT(said.back(), HasSubstr("has not offered"));
}

TEST_F(ClientSessionTest, TheTotalTimeGoesOnFromRoundToRound) {
  open_modern();
  call({.idle_timeout = {}, .timeout = 30s});
  reply(R"("result":{"resultType":"input_required","requestState":"s"})");
  loop.advance(20s);
  reply(
      R"("result":{"resultType":"input_required","inputRequests":{"a":{"method":"roots/list"}}})");
  loop.advance(10s);
  EXPECT_THAT(said, ElementsAre("-31001 No answer to tools/call: it took too long"));
  EXPECT_THAT(withdrawn, ElementsAre(asked.at(0).number));
  EXPECT_EQ(loop.timers(), 0U);
}

TEST_F(ClientSessionTest, InputsAtOnceAreBounded) {
  options.max_questions = 2;
  open_modern();
  call();
  reply(R"("result":{"resultType":"input_required","inputRequests":{)"
        R"("a":{"method":"roots/list"},"b":{"method":"roots/list"},"c":{"method":"roots/list"}}})");
  EXPECT_THAT(said, ElementsAre(HasSubstr("asks for 3 inputs at once; this client takes 2")));
  EXPECT_THAT(asked, IsEmpty());
}

TEST_F(ClientSessionTest, WhoCancelsWhenAskedIsAskedNoMore) {
  ClientSession::Number number = 0;
  when_asked = [&] { session->cancel(number); };
  open_modern();
  number = call();
  take();
  receive(R"({"jsonrpc":"2.0","id":2,"result":{"resultType":"input_required","inputRequests":{)"
          R"("a":{"method":"roots/list"},"b":{"method":"roots/list"}}}})");
  EXPECT_EQ(asked.size(), 1U);
  EXPECT_EQ(session->unanswered(), 0U);
}

TEST_F(ClientSessionTest, QuestionsEndWithTheirRequest) {
  open_modern();
  const auto number = call();
  reply(R"("result":{"resultType":"input_required","inputRequests":{)"
        R"("a":{"method":"roots/list"},"b":{"method":"roots/list"}}})");
  ASSERT_EQ(asked.size(), 2U);
  asked[0].answer(fail(-5, "the user has had enough"));
  loop.run();
  EXPECT_THAT(said, ElementsAre("-5 the user has had enough"));
  EXPECT_THAT(withdrawn, ElementsAre(asked[1].number));
  asked[1].answer(json::object());
  session->cancel(number);
  EXPECT_EQ(take(), "nothing");
}

TEST_F(ClientSessionTest, NothingIsSentForARequestOfWhichAQuestionHasFailed) {
  open_modern();
  call();
  reply(R"("result":{"resultType":"input_required","inputRequests":{)"
        R"("a":{"method":"roots/list"},"b":{"method":"roots/list"}}})");
  ASSERT_EQ(asked.size(), 2U);
  // Both in the same turn.
  asked[0].answer(fail(-5, "the user has had enough"));
  asked[1].answer(json::object());
  loop.run();
  EXPECT_EQ(take(), "nothing");
  EXPECT_THAT(said, ElementsAre("-5 the user has had enough"));
  EXPECT_THAT(withdrawn, ElementsAre(asked[1].number));
}

TEST_F(ClientSessionTest, NoSilenceIsHeldAgainstAServerThatWaitsForAnAnswer) {
  open_legacy();
  for (int i = 0; i < 3; ++i) call({.idle_timeout = 60s});
  receive(R"({"jsonrpc":"2.0","id":"q","method":"roots/list"})");
  loop.advance(59s);
  receive(R"({"jsonrpc":"2.0","method":"notifications/progress","params":{)"
          R"("progressToken":2,"progress":1}})");
  loop.advance(10min);
  EXPECT_THAT(said, ElementsAre("progress 1")) << "the user is still thinking";
  asked.at(0).answer(json::object());
  loop.advance(59s);
  EXPECT_EQ(said.size(), 1U);
  loop.advance(1s);
  EXPECT_THAT(said.back(), HasSubstr("-31001"));
  EXPECT_EQ(said.size(), 4U);

  said.clear();
  call({.idle_timeout = 60s});
  receive(R"({"jsonrpc":"2.0","id":"q","method":"roots/list"})");
  loop.advance(60s);
  EXPECT_THAT(said, IsEmpty());
  receive(R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"q"}})");
  loop.advance(60s);
  EXPECT_EQ(said.size(), 1U) << "the server has taken the question back";
}

TEST_F(ClientSessionTest, AQuestionInAReplyStopsTheTimeOfItsRequestAlone) {
  open_legacy();
  call({.idle_timeout = 60s});
  call({.idle_timeout = 60s, .timeout = 3min});
  wire.owner->on_reply("3", R"({"jsonrpc":"2.0","id":"q","method":"roots/list"})");
  loop.advance(60s);
  ASSERT_THAT(said, ElementsAre(HasSubstr("silent")));
  EXPECT_EQ(session->unanswered(), 1U);
  loop.advance(2min);
  EXPECT_THAT(said.back(), HasSubstr("it took too long"));
}

TEST_F(ClientSessionTest, AnswersTheRequestsOfALegacyServer) {
  open_legacy();
  receive(R"({"jsonrpc":"2.0","id":"p","method":"ping"})");
  EXPECT_EQ(take(), R"({"jsonrpc":"2.0","id":"p","result":{}})");
  receive(R"({"jsonrpc":"2.0","id":123456789012345678901234567890,"method":"roots/list"})");
  ASSERT_EQ(asked.size(), 1U);
  asked[0].answer(json::object{{"roots", json::array()}});
  EXPECT_EQ(take(),
            R"({"jsonrpc":"2.0","id":123456789012345678901234567890,"result":{"roots":[]}})");
  receive(R"({"jsonrpc":"2.0","id":1,"method":"sampling/createMessage"})");
  EXPECT_THAT(take(), HasSubstr("-32601"));
  receive(R"({"jsonrpc":"2.0","id":2,"method":"roots/list"})");
  asked[1].answer(fail(-7, "no"));
  EXPECT_EQ(take(), R"({"jsonrpc":"2.0","id":2,"error":{"code":-7,"message":"no"}})");
}

TEST_F(ClientSessionTest, AQuestionThatIsTakenBackIsNotAnswered) {
  open_legacy();
  receive(R"({"jsonrpc":"2.0","id":1,"method":"roots/list"})");
  receive(R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}})");
  EXPECT_THAT(withdrawn, ElementsAre(asked[0].number));
  receive(R"({"jsonrpc":"2.0","id":1,"method":"roots/list"})");
  asked[0].answer(json::object{{"old", 1}});
  EXPECT_EQ(take(), "nothing");
  receive(R"({"jsonrpc":"2.0","id":1,"method":"roots/list"})");
  EXPECT_THAT(take(), HasSubstr("still unanswered"));
  asked[1].answer(json::object());
  EXPECT_EQ(take(), R"({"jsonrpc":"2.0","id":1,"result":{}})");
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

TEST_F(ClientSessionTest, AForgottenSessionIsReplacedOnceAndWhatWasRefusedIsSentAgain) {
  int renewed = 0;
  options.on_renewed = [&] { ++renewed; };
  open_legacy();
  call();
  call();
  const auto third = call();
  for (int i = 0; i < 3; ++i) take();
  wire.owner->on_session_over("2");
  EXPECT_THAT(take(), HasSubstr(R"("id":5,"method":"initialize")"));
  wire.owner->on_session_over("3");
  wire.owner->on_session_over("4");
  call();
  session->cancel(third);
  EXPECT_EQ(take(), "nothing") << "all wait for the new session";
  receive(
      R"({"jsonrpc":"2.0","id":5,"result":{"protocolVersion":"2025-11-25","capabilities":{}}})");
  EXPECT_EQ(renewed, 1);
  EXPECT_THAT(take(), HasSubstr("notifications/initialized"));
  for (const std::string id : {"6", "7", "8"}) {
    take();
    EXPECT_EQ(last.id, id);
  }
  EXPECT_EQ(take(), "nothing");
  receive(R"({"jsonrpc":"2.0","id":6,"result":{"a":1}})");
  wire.owner->on_session_over("7");
  EXPECT_THAT(said, ElementsAre(R"({"a":1})", "404 The server has forgotten the session again"));
  EXPECT_EQ(take(), "nothing");
}

TEST_F(ClientSessionTest, ASessionThatCannotBeReplacedFailsItsRequests) {
  open_legacy();
  call();
  take();
  wire.owner->on_session_over("2");
  reply(R"("error":{"code":-31010,"message":"full"})");
  loop.run();
  EXPECT_THAT(said, ElementsAre("-31010 full"));
  // Each request tries again.
  call();
  take();
  EXPECT_EQ(last.method, "initialize");
  wire.owner->on_unanswered(last.id, {503, "down", {}});
  loop.run();
  EXPECT_THAT(said, ElementsAre("-31010 full", "503 down"));
  call();
  call();
  reply(R"("result":{"protocolVersion":"2025-11-25","capabilities":{}})");
  EXPECT_THAT(take(), HasSubstr("notifications/initialized"));
  reply(R"("result":{"a":1})");
  reply(R"("result":{"b":1})");
  EXPECT_THAT(said, ElementsAre("-31010 full", "503 down", R"({"a":1})", R"({"b":1})"));
  EXPECT_EQ(session->unanswered(), 0U);
}

TEST_F(ClientSessionTest, TheIdleTimeoutHoldsWhileASessionIsReplaced) {
  open_legacy();
  call({.idle_timeout = 2s});
  take();
  wire.owner->on_session_over("2");
  call({.idle_timeout = 3s});
  loop.advance(2s);
  EXPECT_THAT(said, ElementsAre(HasSubstr("silent")));
  loop.advance(1s);
  EXPECT_EQ(said.size(), 2U);
  reply(R"("result":{"protocolVersion":"2025-11-25"})");
  EXPECT_THAT(take(), HasSubstr("notifications/initialized"));
  EXPECT_EQ(take(), "nothing");
}

TEST_F(ClientSessionTest, ASessionIsReplacedAlsoWhileThereIsNoRoomForRequests) {
  options.max_requests = 2;
  open_legacy();
  call();
  call();
  take();
  take();
  wire.owner->on_session_over("2");
  wire.owner->on_session_over("3");
  reply(R"("result":{"protocolVersion":"2025-11-25","capabilities":{}})");
  EXPECT_THAT(take(), HasSubstr("notifications/initialized"));
  reply(R"("result":{"a":1})");
  reply(R"("result":{"b":1})");
  EXPECT_THAT(said, ElementsAre(R"({"a":1})", R"({"b":1})"));
}

TEST_F(ClientSessionTest, TheQuestionsOfAForgottenSessionAreWithdrawn) {
  open_legacy();
  const std::string question = R"({"jsonrpc":"2.0","id":1,"method":"roots/list"})";
  receive(question);
  call();
  take();
  wire.owner->on_session_over("2");
  reply(R"("result":{"protocolVersion":"2025-11-25","capabilities":{}})");
  ASSERT_EQ(asked.size(), 1U);
  EXPECT_THAT(withdrawn, ElementsAre(asked[0].number));
  take();
  take();
  // The new session asks under the same id, and gets the answer to its own question.
  receive(question);
  ASSERT_EQ(asked.size(), 2U);
  asked[0].answer(json::object{{"roots", "old"}});
  EXPECT_EQ(take(), "nothing");
  asked[1].answer(json::object{{"roots", "new"}});
  EXPECT_EQ(take(), R"({"jsonrpc":"2.0","id":1,"result":{"roots":"new"}})");
}

TEST_F(ClientSessionTest, ProgressDoesNotKeepConnectingAlive) {
  open();
  // The requests that find out what the server speaks offer no progress token.
  for (int second = 0; second < 60 && !connected; ++second) {
    take();
    const std::string id = last.id;
    receive(R"({"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":)" +
            id + R"(,"progress":1}})");
    loop.advance(1s);
  }
  ASSERT_TRUE(connected && !*connected);
  EXPECT_EQ(connected->error().code, kTimedOut);
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

TEST_F(ClientSessionTest, AQuestionWithALongRelatedTaskIsRefused) {
  open_legacy();
  receive(R"({"jsonrpc":"2.0","id":"q","method":"roots/list","params":{"_meta":{)"
          R"("io.modelcontextprotocol/related-task":{"taskId":")" +
          std::string(5000, 'x') + R"("}}}})");
  EXPECT_TRUE(asked.empty());
  EXPECT_THAT(take(), HasSubstr("The related task is longer than this client takes"));
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
