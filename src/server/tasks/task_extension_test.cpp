#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <utility>
#include <vector>

#include "protocol/error_codes.hpp"
#include "rpc/error_codes.hpp"
#include "server/tasks/task_test_support.hpp"
#include "stream/stream_error.hpp"

namespace sluice {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Tasks as the extension of 2026-07-28 has them (SEP-2663).
class TaskExtensionTest : public TaskTestBench {};

TEST_F(TaskExtensionTest, TheServerDecidesForClientsWithTheExtension) {
  const std::string response = modern("tools/call", R"("name":"later")");
  const json::object created = result_of(response);
  EXPECT_EQ(created.at("resultType"), "task");
  EXPECT_EQ(created.at("status"), "working");
  EXPECT_EQ(created.at("ttlMs"), 3'600'000);
  EXPECT_EQ(created.at("pollIntervalMs"), 1000);
  for (const char* const absent : {"task", "ttl", "requestState", "result", "inputRequests"}) {
    EXPECT_FALSE(created.contains(absent)) << absent;
  }
  bench.run_all();
  const std::string id(created.at("taskId").get_string());
  EXPECT_THAT(get_modern(id), HasSubstr(R"("resultType":"complete")"));
  bench.calls.back()->complete({.text = "done"});
  const json::object done = result_of(get_modern(id));
  EXPECT_EQ(done.at("status"), "completed");
  EXPECT_EQ(done.at("result").at("content").at(0).at("text"), "done");
  EXPECT_FALSE(done.at("result").at("_meta").get_object().contains(kRelatedTaskKey));
  // A client's own request for a task changes nothing.
  EXPECT_THAT(modern("tools/call", R"("name":"echo","task":{"ttl":1},"arguments":{"text":"a"})"),
              HasSubstr(R"("resultType":"complete")"));
}

TEST_F(TaskExtensionTest, ClientsWithoutTheExtensionGetResultsOrAnError) {
  EXPECT_EQ(modern("tools/call", R"("name":"later")", "{}"), "");
  EXPECT_EQ(bench.calls.size(), 1U);
  for (const auto& [method, params] :
       {std::pair("tools/call", R"("name":"needed")"), std::pair("tasks/get", R"("taskId":"a")"),
        std::pair("tasks/update", R"("taskId":"a","inputResponses":{})"),
        std::pair("tasks/cancel", R"("taskId":"a")"),
        std::pair("subscriptions/listen", R"("notifications":{"taskIds":[]})")}) {
    const std::string refused = modern(method, params, "{}");
    EXPECT_EQ(error_code(refused), kMissingClientCapability) << method;
    EXPECT_THAT(refused, HasSubstr(R"("data":{"requiredCapabilities":{"extensions":)"
                                   R"({"io.modelcontextprotocol/tasks":{}}}})"));
    EXPECT_EQ(bench.outcome.http_status, 400);
  }
  EXPECT_EQ(error_code(modern("tasks/result", R"("taskId":"a")")), kMethodNotFound);
  EXPECT_EQ(error_code(modern("tasks/list", R"("a":1)")), kMethodNotFound);
  EXPECT_EQ(error_code(modern("tasks/get", R"("taskId":"a")")), kInvalidParams);
}

TEST_F(TaskExtensionTest, OnlyErrorsOfTheProtocolAreFailuresToTheExtension) {
  const std::string wrong = begin_modern();
  bench.calls.back()->complete({.text = "It broke", .is_error = true});
  json::object state = result_of(get_modern(wrong));
  EXPECT_EQ(state.at("status"), "completed");
  EXPECT_EQ(state.at("result").at("isError"), true);
  const std::string error = begin_modern();
  bench.calls.back()->fail({-32050, "No", {}});
  state = result_of(get_modern(error));
  EXPECT_EQ(state.at("status"), "failed");
  EXPECT_EQ(state.at("error").at("code"), -32050);
  EXPECT_EQ(state.at("statusMessage"), "No");
  EXPECT_FALSE(state.contains("result"));
}

TEST_F(TaskExtensionTest, QuestionsOfATaskAreAnsweredByUpdates) {
  const std::string id = begin_modern();
  bench.calls.back()->ask({{"a", "elicitation/create", {{"message", "A?"}}},
                           {"b", "elicitation/create", {{"message", "B?"}}}},
                          [this](const Result<std::vector<json::value>>& answers) {
                            for (const json::value& each : *answers) heard += to_json(each);
                          });
  json::object state = result_of(get_modern(id));
  EXPECT_EQ(state.at("status"), "input_required");
  EXPECT_EQ(state.at("inputRequests").get_object().size(), 2U);
  EXPECT_EQ(state.at("inputRequests").at("a").at("params"), (json::value{{"message", "A?"}}));
  const auto update = [&](std::string_view responses) {
    return modern("tasks/update",
                  R"("taskId":")" + id + R"(","inputResponses":)" + std::string(responses));
  };
  EXPECT_EQ(error_code(update("[]")), kInvalidParams);
  // If one answer does not fit, none is taken.
  EXPECT_EQ(error_code(update(R"({"a":{"action":"accept"},"b":{"action":"perhaps"}})")),
            kInvalidParams);
  EXPECT_EQ(result_of(get_modern(id)).at("inputRequests").get_object().size(), 2U);
  const json::object acknowledged = result_of(update(R"({"b":{"action":"decline"},"c":{}})"));
  EXPECT_EQ(acknowledged.at("resultType"), "complete");
  EXPECT_FALSE(acknowledged.contains("taskId"));
  state = result_of(get_modern(id));
  EXPECT_EQ(state.at("status"), "input_required");
  EXPECT_FALSE(state.at("inputRequests").get_object().contains("b"));
  // The first answer counts.
  update(R"({"a":{"action":"accept"},"b":{"action":"accept"}})");
  EXPECT_EQ(status_of(get_modern(id)), "working");
  bench.run_all();
  EXPECT_EQ(heard, R"({"action":"accept"}{"action":"decline"})");
  // A key is never reused for another question.
  ask_for_name("a");
  EXPECT_TRUE(result_of(get_modern(id)).at("inputRequests").get_object().contains("a-2"));
  modern("tasks/cancel", R"("taskId":")" + id + "\"");
  update(R"({"a-2":{}})");
  EXPECT_EQ(status_of(get_modern(id)), "cancelled");
}

TEST_F(TaskExtensionTest, AnUpdateThatDoesNotFitItsQuestionIsRefused) {
  const std::string id = begin_modern();
  ask_for_name();
  const auto update = [&](std::string_view responses) {
    return modern("tasks/update",
                  R"("taskId":")" + id + R"(","inputResponses":)" + std::string(responses));
  };
  const std::string refused = update(R"({"name":{"action":"perhaps"}})");
  EXPECT_EQ(error_code(refused), kInvalidParams);
  EXPECT_THAT(refused, HasSubstr("action"));
  EXPECT_EQ(error_code(update(R"({"name":7})")), kInvalidParams);
  EXPECT_EQ(error_code(update(R"({"another":7})")), 0) << "which was not asked";
  EXPECT_EQ(status_of(get_modern(id)), "input_required");
  EXPECT_EQ(error_code(update(R"({"name":{"action":"accept","content":{}}})")), 0);
  bench.run_all();
  EXPECT_EQ(heard, R"({"action":"accept","content":{}})");
}

TEST_F(TaskExtensionTest, AnswersToSomeOfTheQuestionsAreOnTheMemoryOfTheClient) {
  const std::string id = begin_modern();
  const std::size_t before = bench.policy.budget.used();
  for (const char* const key : {"a", "b", "c"}) {
    bench.calls.back()->ask({{key, "elicitation/create", {{"message", "?"}}},
                             {std::string(key) + "-last", "elicitation/create", {}}},
                            [this](const Result<std::vector<json::value>>& answers) {
                              heard += answers ? "answers " : "error ";
                            });
  }
  const std::size_t long_one = std::size_t{13} << 20U;
  const std::string answer =
      R"({"action":"accept","content":{"z":")" + std::string(long_one, 'x') + R"("}})";
  const auto update = [&](const std::string& key, const std::string& more = "") {
    return modern("tasks/update", R"("taskId":")" + id + R"(","inputResponses":{")" + key +
                                      R"(":)" + answer + more + "}");
  };
  EXPECT_EQ(error_code(update("a")), 0);
  EXPECT_EQ(error_code(update("b")), 0);
  EXPECT_GE(bench.policy.budget.used(), before + 2 * long_one);
  const std::string refused = update("c", R"(,"c-last":{"action":"decline"})");
  EXPECT_EQ(error_code(refused), kLimitReached) << refused;
  const json::object open = result_of(get_modern(id)).at("inputRequests").get_object();
  EXPECT_TRUE(open.contains("c"));
  EXPECT_FALSE(open.contains("c-last"));
  EXPECT_EQ(heard, "");
  modern("tasks/cancel", R"("taskId":")" + id + "\"");
  bench.run_all();
  EXPECT_EQ(bench.policy.budget.used(), before);
}

TEST_F(TaskExtensionTest, CancellingIsAcknowledgedWhateverTheStateIs) {
  const std::string id = begin_modern();
  for (int i = 0; i < 2; ++i) {
    const json::object ack = result_of(modern("tasks/cancel", R"("taskId":")" + id + "\""));
    EXPECT_EQ(ack.at("resultType"), "complete");
    EXPECT_FALSE(ack.contains("status"));
  }
  const std::string state = get_modern(id);
  EXPECT_EQ(status_of(state), "cancelled");
  EXPECT_THAT(state, Not(HasSubstr("\"error\"")));
  EXPECT_EQ(error_code(modern("tasks/cancel", R"("taskId":"a")")), kInvalidParams);
}

TEST_F(TaskExtensionTest, AToolMayAskInRoundsBeforeItsTaskBegins) {
  EXPECT_EQ(modern("tools/call", R"("name":"first")"), "");
  ask_for_name();
  const std::string asked = caller.channel().replies.back();
  EXPECT_THAT(asked, HasSubstr(R"("resultType":"input_required")"));
  EXPECT_EQ(bench.tasks->size(), 0U);

  bench.calls.clear();
  modern("tools/call", R"("name":"first","inputResponses":{"name":{"action":"accept"}},)"
                       R"("requestState":)" +
                           to_json(result_of(asked).at("requestState")));
  ask_for_name();
  EXPECT_EQ(heard, R"({"action":"accept"})");
  const std::shared_ptr<PendingRequest> request = bench.calls.back()->begin_task().value();
  EXPECT_NE(request, bench.calls.back());
  EXPECT_TRUE(bench.calls.back()->over());
  const std::string created = caller.channel().replies.back();
  EXPECT_THAT(created, HasSubstr(R"("resultType":"task")"));
  EXPECT_THAT(created, Not(HasSubstr("requestState")));
  const std::string id = id_of(created);
  EXPECT_EQ(request->begin_task().value(), request);
  request->complete({.text = "Alice"});
  EXPECT_THAT(get_modern(id), HasSubstr("Alice"));
}

TEST_F(TaskExtensionTest, WhereTheClientDecidesATaskHasBegunAlready) {
  initialize();
  begin("first");
  EXPECT_EQ(bench.calls.back()->begin_task().value(), bench.calls.back());
}

TEST_F(TaskExtensionTest, WhatNeedsNoTaskIsNoneWhenThereAreTooMany) {
  serve({.per_client = 1});
  begin_modern();
  EXPECT_EQ(modern("tools/call", R"("name":"later")"), "");
  EXPECT_EQ(bench.outcome.kind, Outcome::Kind::pending);
  EXPECT_EQ(error_code(modern("tools/call", R"("name":"needed")")), kLimitReached);
  modern("tools/call", R"("name":"first")");
  const auto begun = bench.calls.back()->begin_task();
  ASSERT_FALSE(begun.has_value());
  EXPECT_EQ(begun.error().code, kLimitReached);
}

TEST_F(TaskExtensionTest, ProgressEndsWhereATaskBegins) {
  bench.request("tools/call",
                R"("name":"first","_meta":{"progressToken":1,)"
                R"("io.modelcontextprotocol/protocolVersion":"2026-07-28",)"
                R"("io.modelcontextprotocol/clientCapabilities":)"
                R"({"extensions":{"io.modelcontextprotocol/tasks":{}}}})",
                caller);
  bench.calls.back()->progress(7, {}, "before");
  bench.run_all();
  const std::shared_ptr<PendingRequest> task = bench.calls.back()->begin_task().value();
  task->progress(1, {}, "after");
  task->emit("after");
  bench.run_all();
  ASSERT_EQ(caller.channels.size(), 1U);
  EXPECT_THAT(caller.channel().written, HasSubstr("before"));
  EXPECT_THAT(caller.channel().written, HasSubstr(R"("resultType":"task")"));
  EXPECT_THAT(caller.channel().written, Not(HasSubstr("after")));
}

TEST_F(TaskExtensionTest, ProgressOfATaskIsNotSentByTheExtension) {
  bench.request("tools/call",
                R"("name":"later","_meta":{"progressToken":1,)"
                R"("io.modelcontextprotocol/logLevel":"debug",)"
                R"("io.modelcontextprotocol/protocolVersion":"2026-07-28",)"
                R"("io.modelcontextprotocol/clientCapabilities":)"
                R"({"extensions":{"io.modelcontextprotocol/tasks":{}}}})",
                caller);
  bench.run_all();
  EXPECT_TRUE(bench.calls.back()->emit("a"));
  EXPECT_TRUE(bench.calls.back()->log(LoggingLevel::error, "", "1"));
  bench.run_all();
  EXPECT_TRUE(caller.channels.empty());
}

TEST_F(TaskExtensionTest, WhoListensHearsOfItsTasks) {
  const std::string id = begin_modern();
  RecordingCaller mallory("mallory");
  std::swap(caller, mallory);
  const std::string foreign = begin_modern();
  std::swap(caller, mallory);
  modern("subscriptions/listen",
         R"("notifications":{"taskIds":[")" + id + R"(",")" + foreign + R"(","unknown"]})");
  bench.run_all();
  std::string& written = caller.channel().written;
  EXPECT_THAT(written, HasSubstr(R"("notifications":{"taskIds":[")" + id + R"("]}})"));
  EXPECT_THAT(written, HasSubstr(R"("method":"notifications/tasks","params":{"_meta":{)"
                                 R"("io.modelcontextprotocol/subscriptionId":1},"taskId":")" +
                                 id + R"(","status":"working")"));
  written.clear();
  caller.channel().writable = false;
  bench.calls[0]->emit("progress");
  ask_for_name();
  bench.calls[0]->ask({{"n", "elicitation/create", {{"message", "?"}}}},
                      [](const Result<std::vector<json::value>>&) {});
  bench.run_all();
  EXPECT_THAT(written, Not(HasSubstr("progress")));
  bench.calls[0]->complete({.text = "done"});
  bench.run_all();
  caller.channel().drain();
  bench.run_all();
  EXPECT_THAT(written, HasSubstr(R"("status":"completed")"));
  EXPECT_THAT(written, HasSubstr(R"("text":"done")"));
  EXPECT_EQ(error_code(modern("subscriptions/listen", R"("notifications":{"taskIds":1})")),
            kInvalidParams);
}

}  // namespace
}  // namespace sluice
