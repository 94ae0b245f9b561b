#include <chrono>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <string_view>

#include "client/session/client_session.hpp"
#include "client/session/client_session_test_support.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

using test::ClientSessionTest;

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

constexpr std::string_view kRoots = R"({"jsonrpc":"2.0","id":1,"method":"roots/list"})";

TEST_F(ClientSessionTest, ARequestThatWasAskedSomethingEndsWithItsSession) {
  open_legacy();
  call();
  take();
  const RequestId first = last.id;
  wire.owner->on_reply(first, kRoots);
  const auto second = call();
  take();
  loop.run();
  wire.owner->on_session_over(last.id);
  loop.run();
  EXPECT_THAT(said, ElementsAre(HasSubstr("404 The server has forgotten the session in which it")));
  EXPECT_THAT(wire.dropped, ElementsAre(first));
  reply(R"("result":{"protocolVersion":"2025-11-25","capabilities":{}})");
  EXPECT_THAT(take(), HasSubstr("notifications/initialized"));
  EXPECT_THAT(take(), HasSubstr("tools/call"));
  session->cancel(second);
  EXPECT_THAT(take(), HasSubstr("notifications/cancelled"));
}

TEST_F(ClientSessionTest, AnAnswerThatTheServerDoesNotTakeEndsTheRequestThatWasAsked) {
  open_legacy();
  call();
  take();
  wire.owner->on_reply(last.id, kRoots);
  loop.run();
  asked.at(0).answer(json::object{{"roots", "mine"}});
  EXPECT_THAT(take(), HasSubstr("mine"));
  wire.owner->on_session_over("");
  loop.run();
  EXPECT_THAT(said, ElementsAre(HasSubstr("make the request again")));
  EXPECT_EQ(take(), "nothing") << "the next request finds out";
}

TEST_F(ClientSessionTest, ARequestOfAForgottenSessionIsNeitherAskedNorCancelledInTheNewOne) {
  open_legacy();
  const auto first = call();
  take();
  call();
  take();
  const RequestId second = last.id;
  call();
  take();
  wire.owner->on_session_over(last.id);
  session->cancel(first);
  reply(R"("result":{"protocolVersion":"2025-11-25","capabilities":{}})");
  EXPECT_THAT(take(), HasSubstr("notifications/initialized"));
  EXPECT_THAT(take(), HasSubstr("tools/call"));
  wire.owner->on_reply(second, kRoots);
  loop.run();
  EXPECT_THAT(asked, ::testing::IsEmpty());
  EXPECT_THAT(said, ElementsAre(HasSubstr("has forgotten the session")));
  EXPECT_EQ(take(), "nothing");
}

}  // namespace
}  // namespace sluice
