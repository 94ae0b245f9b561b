#include <chrono>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>

#include "client/session/client_session.hpp"
#include "client/session/client_session_test_support.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

using test::ClientSessionTest;

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

TEST_F(ClientSessionTest, TheMemoryOfOpenQuestionsIsBounded) {
  options.max_question_memory = 2000;
  open_legacy();
  const auto ask = [this](const std::string& id) {
    receive(R"({"jsonrpc":"2.0","id":)" + id + R"(,"method":"roots/list","params":{"a":")" +
            std::string(1200, 'x') + R"("}})");
  };
  ask("1");
  ask("2");
  EXPECT_THAT(take(), AllOf(HasSubstr(R"("id":2,)"), HasSubstr("-31010"), HasSubstr("memory")));
  receive(R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}})");
  ask("3");
  ASSERT_EQ(asked.size(), 2U);
  asked[1].answer(json::object());
  EXPECT_THAT(take(), HasSubstr(R"("id":3,"result")"));
  ask("4");
  EXPECT_EQ(asked.size(), 3U);
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

TEST_F(ClientSessionTest, AQuestionWithALongRelatedTaskIsRefused) {
  open_legacy();
  receive(R"({"jsonrpc":"2.0","id":"q","method":"roots/list","params":{"_meta":{)"
          R"("io.modelcontextprotocol/related-task":{"taskId":")" +
          std::string(5000, 'x') + R"("}}}})");
  EXPECT_TRUE(asked.empty());
  EXPECT_THAT(take(), HasSubstr("The related task is longer than this client takes"));
}

TEST_F(ClientSessionTest, AnInputHasNoLongKey) {
  open_modern();
  call();
  reply(R"("result":{"resultType":"input_required","inputRequests":{")" + std::string(300, 'k') +
        R"(":{"method":"roots/list"}}})");
  EXPECT_THAT(said, ElementsAre(HasSubstr("names an input with 300 bytes; this client takes 256")));
  EXPECT_THAT(asked, IsEmpty());
}

}  // namespace
}  // namespace sluice
