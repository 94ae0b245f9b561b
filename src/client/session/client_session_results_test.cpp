// Results of a session: what is sent again, kept and checked.

#include <chrono>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <utility>
#include <vector>

#include "client/session/client_session.hpp"
#include "client/session/client_session_test_support.hpp"
#include "json/members.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using ClientSessionResultsTest = test::ClientSessionTest;

TEST_F(ClientSessionResultsTest, AModernStreamThatBreaksOffIsReissuedIfNothingIsDoneTwice) {
  open_modern();
  session->begin("tools/list", {}, {}, {});
  reply(R"("result":{"tools":[{"name":"tool","annotations":{"readOnlyHint":true}}]})");
  int reissued = 0;
  session->begin("tools/call", {{"name", "tool"}}, {.idle_timeout = 1s},
                 {.on_reissued = [&] { ++reissued; },
                  .on_answer =
                      [this](Result<json::object> answer) {
                        said.push_back(answer ? to_json(*answer) : answer.error().message);
                      }});
  take();
  EXPECT_EQ(last.id, "3");
  wire.owner->on_broken_off("3", {502, "The stream ended before the answer came", {}});
  EXPECT_EQ(take(), "nothing") << "not at once";
  EXPECT_EQ(reissued, 1);
  loop.advance(1s);
  take();
  EXPECT_EQ(last.method, "tools/call");
  EXPECT_EQ(last.id, "4");
  receive(R"({"jsonrpc":"2.0","id":3,"result":{"a":"too late"}})");
  receive(R"({"jsonrpc":"2.0","id":4,"result":{"a":1}})");
  EXPECT_THAT(said, ElementsAre(R"({"a":1})"));
  // Not for ever.
  session->begin("resources/read", {{"uri", "a://b"}}, {},
                 {.on_answer = [this](auto answer) { said.push_back(answer.error().message); }});
  for (int i = 0; i < 4; ++i) {
    take();
    wire.owner->on_broken_off(last.id, {502, "broken off", {}});
    loop.advance(1s);
  }
  EXPECT_THAT(said.back(), "broken off");
  EXPECT_EQ(take(), "nothing");
  EXPECT_EQ(loop.timers(), 0U);
}

TEST_F(ClientSessionResultsTest, ACallThatMayDoSomethingTwiceIsNotReissuedAndTheErrorSaysSo) {
  open_modern();
  call();
  wire.owner->on_broken_off("2", {502, "The stream ended before the answer came", {}});
  EXPECT_THAT(said,
              ElementsAre("502 The stream ended before the answer came; the call was not sent "
                          "again, because its tool is not known to be idempotent or "
                          "read-only"));
  session->begin("tasks/cancel", {{"taskId", "t"}}, {},
                 {.on_answer = [this](auto answer) { said.push_back(answer.error().message); }});
  wire.owner->on_broken_off("3", {502, "cut", {}});
  EXPECT_THAT(said.back(), "cut");
  // What the server has answered is no broken stream.
  session->begin("resources/list", {}, {},
                 {.on_answer = [this](auto answer) { said.push_back(answer.error().message); }});
  wire.owner->on_unanswered("4", {502, "not here", {}});
  EXPECT_THAT(said.back(), "not here");
  while (!wire.sent.empty()) take();
  loop.advance(1h);
  EXPECT_EQ(take(), "nothing");
}

TEST_F(ClientSessionResultsTest, WhoCannotBeginAnewIsNotToldTwice) {
  open_modern();
  const auto keep = [this](auto answer) { said.push_back(answer.error().message); };
  session->begin("resources/list", {}, {},
                 {.on_progress = [](const json::object&) {}, .on_answer = keep});
  session->begin(
      "resources/list", {}, {},
      {.on_notification = [](std::string_view, const json::object&) {}, .on_answer = keep});
  wire.owner->on_broken_off("2", {502, "cut", {}});
  wire.owner->on_broken_off("3", {502, "cut, too", {}});
  EXPECT_THAT(said, ElementsAre("cut", "cut, too"));
  EXPECT_EQ(loop.timers(), 0U);
}

TEST_F(ClientSessionResultsTest, AReissueThatIsCancelledOrTooLateIsNotSent) {
  open_modern();
  const auto number = session->begin("resources/list", {}, {}, {});
  take();
  wire.owner->on_broken_off("2", {502, "cut", {}});
  session->cancel(number);
  EXPECT_EQ(loop.timers(), 0U);
  session->begin("resources/list", {}, {.idle_timeout = {}, .timeout = 10ms},
                 {.on_answer = [this](auto answer) { said.push_back(answer.error().message); }});
  take();
  wire.owner->on_broken_off("3", {502, "cut", {}});
  loop.advance(1h);
  EXPECT_THAT(said, ElementsAre("No answer to resources/list: it took too long"));
  EXPECT_EQ(take(), "nothing");
}

TEST_F(ClientSessionResultsTest, WhatIsFreshIsNotAskedForAgain) {
  options.caches = true;
  open_modern();
  const auto list = [this](json::object params = {}) {
    said.clear();
    session->begin("tools/list", std::move(params), {}, {.on_answer = [this](auto answer) {
                     said.push_back(answer ? to_json(*answer) : answer.error().message);
                   }});
    EXPECT_THAT(said, IsEmpty()) << "never from within";
    loop.run();
    return wire.sent.size() == 1;
  };
  const std::string answer = R"({"tools":[],"ttlMs":1000,"cacheScope":"private"})";
  EXPECT_TRUE(list());
  reply(R"("result":)" + answer);
  EXPECT_FALSE(list());
  EXPECT_THAT(said, ElementsAre(answer));
  EXPECT_TRUE(list({{"cursor", "2"}}));
  take();
  EXPECT_TRUE(list({{"_meta", {{"a", 1}}}}));
  take();
  receive(R"({"jsonrpc":"2.0","method":"notifications/tools/list_changed"})");
  EXPECT_TRUE(list());
  reply(R"("result":)" + answer);
  loop.advance(1s);
  EXPECT_TRUE(list());
  // Another connection knows nothing of it.
  open_modern();
  EXPECT_TRUE(list());
  // Nor is anything kept without the switch.
  options.caches = false;
  open_modern();
  EXPECT_TRUE(list());
  reply(R"("result":)" + answer);
  EXPECT_TRUE(list());
}

TEST_F(ClientSessionResultsTest, OutputIsCheckedIfThatIsWanted) {
  for (const bool is_wanted : {true, false}) {
    said.clear();
    options.checks_output = is_wanted;
    open_modern();
    session->begin("tools/list", {}, {}, {});
    reply(R"("result":{"tools":[{"name":"tool","outputSchema":{"type":"object","properties":{)"
          R"("n":{"type":"integer"}}}}]})");
    call();
    reply(R"("result":{"structuredContent":{"n":"one"}})");
    call();
    reply(R"("result":{"structuredContent":{"n":1}})");
    EXPECT_THAT(said, ElementsAre(is_wanted ? "-32602 The result of \"tool\" breaks its "
                                              "outputSchema: structuredContent.n: expected "
                                              "integer, got string"
                                            : R"({"structuredContent":{"n":"one"}})",
                                  R"({"structuredContent":{"n":1}})"));
  }
}

TEST_F(ClientSessionResultsTest, ATaskIsNoOutput) {
  options.checks_output = true;
  open_legacy();
  session->begin("tools/list", {}, {}, {});
  reply(R"("result":{"tools":[{"name":"tool","outputSchema":{"type":"object"}}]})");
  const std::string made = R"({"task":{"taskId":"T1","status":"working"}})";
  session->begin("tools/call", {{"name", "tool"}, {"task", json::object()}}, {},
                 {.on_answer = [this](auto answer) { said.push_back(to_json(*answer)); }});
  reply("\"result\":" + made);
  call();
  reply("\"result\":" + made);
  EXPECT_THAT(said, ElementsAre(made, HasSubstr("it has no structuredContent")))
      << "only who asks for a task gets one";
}

TEST_F(ClientSessionResultsTest, AnAnswerIsNotTakenUpBehindAQuestionThatIsUnanswered) {
  open_legacy();
  std::vector<std::string> positions;
  const auto number = session->begin(
      "tools/call", {{"name", "tool"}}, {}, {.on_position = [&](const std::string& position) {
        const auto parsed = parse_json(position);
        positions.emplace_back(parsed ? text_at(parsed->get_object(), "event") : "");
      }});
  take();
  EXPECT_EQ(last.id, "2");
  session->leave(number + 1);  // there is none
  wire.owner->on_position("2", "s", "e1");
  EXPECT_THAT(positions, ElementsAre("e1"));
  EXPECT_TRUE(wire.owner->on_reply("2", R"({"jsonrpc":"2.0","id":7,"method":"roots/list"})"));
  wire.owner->on_position("2", "s", "e2");
  EXPECT_THAT(positions, ElementsAre("e1")) << "the question must come again";
  loop.run();
  ASSERT_EQ(asked.size(), 1U);
  asked[0].answer(json::object());
  wire.owner->on_position("2", "s", "e3");
  EXPECT_THAT(positions, ElementsAre("e1", "e3"));
}

}  // namespace
}  // namespace sluice
