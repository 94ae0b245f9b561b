#include "client/session/task_follower.hpp"

#include <chrono>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>

#include "client/session/client_session_test_support.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class TaskFollowerTest : public test::ClientSessionTest {
 protected:
  ClientSession::Number follow(const RequestOptions& with = {}) {
    return session->follow_task(
        "t1", with,
        {.on_progress =
             [this](const json::object& state) {
               const json::value* const status = state.if_contains("status");
               said.push_back(status != nullptr ? std::string(status->as_string())
                                                : "progress " + to_json(state.at("progress")));
             },
         .on_answer =
             [this](Result<json::object> answer) {
               said.push_back(answer ? to_json(*answer)
                                     : std::to_string(answer.error().code) + " " +
                                           answer.error().message);
             }});
  }
  /// Takes the request of this method, which is the next that was sent, and answers it.
  void reply_to(const std::string& method, const std::string& outcome) {
    reply(outcome);
    EXPECT_EQ(last.method, method);
  }
  void tell(const std::string& method, const std::string& params) {
    receive(R"({"jsonrpc":"2.0","method":")" + method + R"(","params":)" + params + "}");
  }
};

TEST_F(TaskFollowerTest, AsksForTheStateAsOftenAsTheServerWants) {
  open_modern();
  follow();
  EXPECT_THAT(take(), AllOf(HasSubstr(R"("method":"tasks/get")"), HasSubstr(R"("taskId":"t1")"),
                            HasSubstr(R"("extensions":{"io.modelcontextprotocol/tasks":{}})")));
  EXPECT_EQ(last.name, "t1") << "the header Mcp-Name";
  receive(R"({"jsonrpc":"2.0","id":2,"result":{"status":"working","pollIntervalMs":3000}})");
  EXPECT_THAT(take(), AllOf(HasSubstr("subscriptions/listen"), HasSubstr(R"("taskIds":["t1"])"),
                            HasSubstr(R"("extensions":{"io.modelcontextprotocol/tasks":{}})")));
  receive(R"({"jsonrpc":"2.0","id":3,"error":{"code":-32601,"message":"?"}})");
  loop.advance(2999ms);
  EXPECT_EQ(take(), "nothing");
  loop.advance(1ms);
  reply_to("tasks/get", R"("result":{"status":"working","statusMessage":"half"})");
  loop.advance(3s);
  reply_to("tasks/get", R"("result":{"status":"completed","result":{"content":[]}})");
  EXPECT_THAT(said, ElementsAre("working", "working", "completed", R"({"content":[]})"));
  EXPECT_EQ(take(), "nothing") << "it listens once";
  EXPECT_EQ(session->unanswered(), 0U);
  EXPECT_EQ(loop.timers(), 0U);
}

TEST_F(TaskFollowerTest, HearsOfChangesBeforeItAsks) {
  open_modern();
  follow();
  reply_to("tasks/get", R"("result":{"status":"working"})");
  take();
  tell("notifications/subscriptions/acknowledged",
       R"({"_meta":{"io.modelcontextprotocol/subscriptionId":3}})");
  tell("notifications/tasks", R"({"taskId":"other","status":"completed","result":{}})");
  tell("notifications/tasks", R"({"taskId":"t1","status":"completed","result":{"n":1},)"
                              R"("_meta":{"io.modelcontextprotocol/subscriptionId":3}})");
  EXPECT_THAT(said, ElementsAre("working", "completed", R"({"n":1})"));
  EXPECT_THAT(notified, ElementsAre("notifications/tasks")) << "only what is of no follower";
  EXPECT_THAT(take(), HasSubstr(R"("notifications/cancelled","params":{"requestId":3)"));
}

TEST_F(TaskFollowerTest, PassesOnItsQuestionsOnce) {
  open_modern();
  follow();
  const std::string question =
      R"("result":{"status":"input_required","pollIntervalMs":1000,"inputRequests":{)"
      R"("who":{"method":"elicitation/create","params":{"message":"Who?"}},)"
      R"("where":{"method":"roots/list"}}})";
  reply_to("tasks/get", question);
  take();  // it listens
  loop.advance(1s);
  reply_to("tasks/get", question);
  ASSERT_EQ(asked.size(), 2U);
  asked[0].answer(json::object{{"action", "decline"}});
  EXPECT_THAT(take(), AllOf(HasSubstr(R"("method":"tasks/update")"),
                            HasSubstr(R"("inputResponses":{"who":{"action":"decline"}})")));
  asked[1].answer(json::object{{"roots", json::array()}});
  EXPECT_EQ(take(), "nothing") << "one update at a time";
  // The first is lost on the way, so both go with the next state.
  wire.owner->on_unanswered(last.id, {502, "broken off", {}});
  loop.advance(1s);
  reply_to("tasks/get", question);
  EXPECT_THAT(take(), AllOf(HasSubstr(R"("who":{"action":"decline"})"),
                            HasSubstr(R"("where":{"roots":[]})")));
  receive(R"({"jsonrpc":"2.0","id":)" + last.id + R"(,"result":{}})");
  EXPECT_EQ(asked.size(), 2U);
  session->close([] {});
}

TEST_F(TaskFollowerTest, ItsQuestionsEndWithIt) {
  open_modern();
  const auto number = follow();
  reply_to("tasks/get", R"("result":{"status":"input_required","inputRequests":{)"
                        R"("where":{"method":"roots/list"}}})");
  ASSERT_EQ(asked.size(), 1U);
  session->cancel(number);
  loop.run();
  EXPECT_THAT(withdrawn, ElementsAre(asked[0].number));
  asked[0].answer(json::object());
  EXPECT_THAT(said, ElementsAre("input_required"));
  EXPECT_EQ(loop.timers(), 0U);
  EXPECT_EQ(session->unanswered(), 0U);
  // The task itself goes on.
  while (!wire.sent.empty()) EXPECT_THAT(take(), Not(HasSubstr("tasks/cancel")));
}

TEST_F(TaskFollowerTest, WhatTheClientDoesNotOfferEndsIt) {
  open_modern();
  follow();
  reply_to("tasks/get", R"("result":{"status":"input_required","inputRequests":{)"
                        R"("a":{"method":"sampling/createMessage"}}})");
  EXPECT_THAT(said, ElementsAre("input_required", HasSubstr("has not offered")));
  EXPECT_THAT(asked, IsEmpty());
}

TEST_F(TaskFollowerTest, EndsAsTheTaskHas) {
  open_modern();
  const auto ended = [this](const std::string& state) {
    said.clear();
    follow();
    reply_to("tasks/get", R"("result":)" + state);
    return said.size() == 2 ? said[1] : "not ended";
  };
  EXPECT_EQ(ended(R"({"status":"failed","error":{"code":-7,"message":"no"}})"), "-7 no");
  EXPECT_EQ(ended(R"({"status":"failed"})"),
            "-32603 The task has failed, and the server says not why");
  EXPECT_EQ(ended(R"({"status":"cancelled","statusMessage":"by him"})"),
            "-31002 The task was cancelled: by him");
  EXPECT_EQ(ended(R"({"status":"completed"})"), "-32603 The server's completed task has no result");
}

TEST_F(TaskFollowerTest, AStateWithoutAStatusIsAnError) {
  open_modern();
  for (const std::string state : {"{}", R"({"status":"asleep"})", R"({"status":1})"}) {
    said.clear();
    follow();
    reply_to("tasks/get", R"("result":)" + state);
    EXPECT_THAT(said, ElementsAre(HasSubstr("-32603 The server gives the task no status")));
  }
  EXPECT_EQ(loop.timers(), 0U);
}

TEST_F(TaskFollowerTest, AsksForTheResultOfALegacyTaskWhenItHasEnded) {
  open_legacy();
  follow();
  reply_to("tasks/get", R"("result":{"taskId":"t1","status":"working","pollInterval":500})");
  EXPECT_EQ(take(), "nothing");
  tell("notifications/progress", R"({"progressToken":1,"progress":4,"_meta":)"
                                 R"({"io.modelcontextprotocol/related-task":{"taskId":"t1"}}})");
  tell("notifications/tasks/status", R"({"taskId":"t1","status":"failed"})");
  reply_to("tasks/result", R"("result":{"isError":true})");
  EXPECT_THAT(said, ElementsAre("working", "progress 4", "failed", R"({"isError":true})"));
  EXPECT_EQ(take(), "nothing");
  EXPECT_EQ(loop.timers(), 0U);
}

TEST_F(TaskFollowerTest, WaitsForTheResultWhereALegacyTaskAsks) {
  open_legacy();
  follow();
  reply_to("tasks/get", R"("result":{"status":"input_required","pollInterval":500})");
  EXPECT_THAT(take(), HasSubstr("tasks/result"));
  const std::string result = last.id;
  receive(R"({"jsonrpc":"2.0","id":"q","method":"roots/list","params":{"_meta":)"
          R"({"io.modelcontextprotocol/related-task":{"taskId":"t1"}}}})");
  ASSERT_EQ(asked.size(), 1U);
  loop.advance(500ms);
  reply_to("tasks/get", R"("result":{"status":"input_required","pollInterval":500})");
  asked[0].answer(json::object{{"roots", json::array()}});
  EXPECT_EQ(take(), R"({"jsonrpc":"2.0","id":"q","result":{"roots":[],"_meta":)"
                    R"({"io.modelcontextprotocol/related-task":{"taskId":"t1"}}}})");
  receive(R"({"jsonrpc":"2.0","id":)" + result + R"(,"result":{"n":1}})");
  EXPECT_EQ(said.back(), R"({"n":1})");
  EXPECT_EQ(loop.timers(), 0U);
}

TEST_F(TaskFollowerTest, SurvivesPassingTroubleAndNoOther) {
  open_legacy();
  follow({.idle_timeout = 5s});
  for (int i = 0; i < TaskFollower::kMaxFailures; ++i) {
    take();
    EXPECT_EQ(last.method, "tasks/get");
    if (i % 2 == 0) {
      wire.owner->on_unanswered(last.id, {503, "down", {}});
    } else {
      loop.advance(5s);
      take();  // the cancellation
    }
    loop.advance(1s);
  }
  take();
  wire.owner->on_unanswered(last.id, {503, "still down", {}});
  loop.run();
  EXPECT_THAT(said, ElementsAre("503 still down"));
  follow();
  reply_to("tasks/get", R"("error":{"code":-32602,"message":"no such task"})");
  EXPECT_EQ(said.back(), "-32602 no such task");
  EXPECT_EQ(loop.timers(), 0U);
}

TEST_F(TaskFollowerTest, SuccessWithOneKindOfRequestExcusesNoOther) {
  open_legacy();
  follow();
  for (int i = 0; i <= TaskFollower::kMaxFailures; ++i) {
    reply_to("tasks/get", R"("result":{"status":"completed","pollInterval":1000})");
    take();
    EXPECT_EQ(last.method, "tasks/result");
    wire.owner->on_unanswered(last.id, {503, "down", {}});
    loop.advance(1s);
  }
  EXPECT_THAT(said, ElementsAre("completed", "503 down"));
}

TEST_F(TaskFollowerTest, AnswersThatAreNeverTakenEndIt) {
  open_modern();
  follow();
  for (int i = 0; i <= TaskFollower::kMaxFailures; ++i) {
    reply_to("tasks/get", R"("result":{"status":"input_required","pollIntervalMs":1000,)"
                          R"("inputRequests":{"where":{"method":"roots/list"}}})");
    if (i == 0) {
      take();  // it listens
      asked.at(0).answer(json::object());
    }
    take();
    EXPECT_EQ(last.method, "tasks/update");
    wire.owner->on_unanswered(last.id, {503, "down", {}});
    loop.advance(1s);
  }
  EXPECT_THAT(said, ElementsAre("input_required", "503 down"));
}

TEST_F(TaskFollowerTest, HasATimeLimitAndEndsWithItsLink) {
  open_legacy();
  follow({.timeout = 10s});
  reply_to("tasks/get", R"("result":{"status":"working","pollInterval":60000})");
  loop.advance(10s);
  EXPECT_THAT(said, ElementsAre("working", "-31001 It took too long"));
  said.clear();
  follow();
  wire.owner->on_lost({502, "gone", {}});
  loop.run();
  EXPECT_THAT(said, ElementsAre("502 gone"));
  EXPECT_EQ(loop.timers(), 0U);
}

TEST_F(TaskFollowerTest, TheTokenOfATaskMayBeThatOfAnotherSession) {
  open_legacy();
  call();
  take();
  tell("notifications/progress", R"({"progressToken":2,"progress":4,"_meta":)"
                                 R"({"io.modelcontextprotocol/related-task":{"taskId":"t1"}}})");
  EXPECT_THAT(said, IsEmpty());
}

TEST_F(TaskFollowerTest, ACallBecomesATaskOnlyIfItMay) {
  open_modern();
  const std::string task = R"("result":{"resultType":"task","taskId":"t1","status":"working"})";
  call({.may_become_task = true});
  take();
  EXPECT_THAT(last.text, HasSubstr(R"("extensions":{"io.modelcontextprotocol/tasks":{}})"));
  receive(R"({"jsonrpc":"2.0","id":2,)" + task + "}");
  EXPECT_THAT(said.back(), HasSubstr(R"("taskId":"t1")"));
  call();
  reply(task);
  EXPECT_THAT(last.text, Not(HasSubstr("extensions")));
  EXPECT_THAT(said.back(), HasSubstr("has made a task of what cannot be one"));
}

}  // namespace
}  // namespace sluice
