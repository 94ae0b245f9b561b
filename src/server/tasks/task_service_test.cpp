#include "server/tasks/task_service.hpp"

#include <chrono>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <utility>
#include <vector>

#include "rpc/error_codes.hpp"
#include "server/tasks/task_test_support.hpp"
#include "stream/stream_error.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::Not;

// Tasks as 2025-11-25 has them.
class TaskServiceTest : public TaskTestBench {};

TEST_F(TaskServiceTest, CapabilitiesAndToolsSayWhatCanBeATask) {
  const std::string legacy =
      bench.request("initialize", R"("protocolVersion":"2025-11-25","capabilities":{})", caller);
  EXPECT_THAT(legacy, HasSubstr(R"("tasks":{"list":{},"cancel":{},)"
                                R"("requests":{"tools":{"call":{}}}})"));
  EXPECT_THAT(legacy, Not(HasSubstr("io.modelcontextprotocol/tasks")));
  const std::string tools = bench.request("tools/list", "", caller);
  EXPECT_THAT(tools, HasSubstr(R"("execution":{"taskSupport":"optional"})"));
  EXPECT_THAT(tools, HasSubstr(R"("execution":{"taskSupport":"required"})"));
  const std::string discovered = modern("server/discover", R"("a":1)");
  EXPECT_THAT(discovered, HasSubstr(R"("io.modelcontextprotocol/tasks":{})"));
  EXPECT_THAT(discovered, Not(HasSubstr(R"("tasks":{"list")")));
  EXPECT_THAT(modern("tools/list", R"("a":1)"), Not(HasSubstr("execution")));
  RecordingCaller old;
  EXPECT_THAT(
      bench.request("initialize", R"("protocolVersion":"2025-06-18","capabilities":{})", old),
      Not(HasSubstr("tasks")));
}

TEST_F(TaskServiceTest, ACallWithTaskIsAnsweredAtOnceAndRunsAfterwards) {
  initialize();
  const std::string response = call("later", R"(,"task":{"ttl":60000})");
  EXPECT_TRUE(bench.calls.empty());
  const std::string id = id_of(response);
  EXPECT_EQ(id.size(), TaskStore::kIdLength);
  EXPECT_EQ(response, result_text(R"({"task":{"taskId":")" + id +
                                  R"(","status":"working","createdAt":"2025-11-25T10:30:00.000Z",)"
                                  R"("lastUpdatedAt":"2025-11-25T10:30:00.000Z","ttl":60000,)"
                                  R"("pollInterval":1000},"_meta":{)"
                                  R"("io.modelcontextprotocol/related-task":{"taskId":")" +
                                  id + R"("}}})"));
  bench.run_all();
  ASSERT_EQ(bench.calls.size(), 1U);
  EXPECT_EQ(status_of(get(id)), "working");

  time_of_day += 5s;
  bench.calls.back()->complete({.text = "done"});
  const std::string state = get(id);
  EXPECT_EQ(status_of(state), "completed");
  EXPECT_THAT(state, HasSubstr(R"("lastUpdatedAt":"2025-11-25T10:30:05.000Z")"));
  EXPECT_THAT(state, Not(HasSubstr("related-task")));
  EXPECT_EQ(wait(id), result_text(R"({"content":[{"type":"text","text":"done"}],"_meta":{)"
                                  R"("io.modelcontextprotocol/related-task":{"taskId":")" +
                                  id + R"("}}})"));
  bench.run_all();
  ASSERT_EQ(told.size(), 1U);
  EXPECT_THAT(told[0], HasSubstr(R"("method":"notifications/tasks/status","params":{"taskId":")"));
  EXPECT_THAT(told[0], HasSubstr(R"("status":"completed")"));
}

TEST_F(TaskServiceTest, WhatATaskKeepsOfItsCallIsOnItsClientsMemory) {
  initialize();
  const std::size_t before = bench.policy.budget.used();
  const std::string more =
      R"(,"task":{},"arguments":{"text":")" + std::string(std::size_t{4} << 20U, 'x') + R"("})";
  std::string refused;
  for (int i = 0; i < 20 && refused.empty(); ++i) {
    const std::string response = call("later", more);
    if (error_code(response) != 0) refused = response;
    bench.run_all();
  }
  EXPECT_EQ(error_code(refused), kLimitReached);
  EXPECT_THAT(refused, HasSubstr("streams.max_total_bytes"));
  EXPECT_GT(bench.policy.budget.used(), before + (std::size_t{24} << 20U));
  for (const auto& each : bench.calls) each->complete({.text = "done"});
  EXPECT_EQ(bench.policy.budget.used(), before);
}

TEST_F(TaskServiceTest, WhatACallKeepsGoesToTheTaskThatItBecomes) {
  const std::size_t before = bench.policy.budget.used();
  EXPECT_EQ(modern("tools/call",
                   R"("name":"first","arguments":{"text":")" + std::string(100'000, 'x') + R"("})"),
            "");
  const std::size_t held = bench.policy.budget.used();
  EXPECT_GE(held, before + 100'000);
  const auto task = bench.calls.back()->begin_task();
  ASSERT_TRUE(task);
  bench.calls.back() = nullptr;
  EXPECT_EQ(bench.policy.budget.used(), held);
  (*task)->complete({.text = "done"});
  EXPECT_EQ(bench.policy.budget.used(), before);
}

TEST_F(TaskServiceTest, AToolThatAnswersAtOnceCanBeATaskToo) {
  initialize();
  const std::string id = begin("at_once", R"(,"task":{},"arguments":{"text":"hi"})");
  EXPECT_EQ(status_of(get(id)), "completed");
  EXPECT_THAT(wait(id), HasSubstr(R"("text":"hi")"));
  EXPECT_THAT(call("at_once", R"(,"arguments":{"text":"hi"})"), HasSubstr(R"("content")"));
}

TEST_F(TaskServiceTest, ToolsSayWhetherTheyRunAsTasks) {
  initialize();
  EXPECT_EQ(error_code(call("echo")), kMethodNotFound);
  EXPECT_EQ(error_code(call("needed", "")), kMethodNotFound);
  EXPECT_EQ(error_code(call("later", R"(,"task":1)")), kInvalidParams);
  EXPECT_EQ(call("later", ""), "");
  EXPECT_EQ(bench.outcome.kind, Outcome::Kind::pending);
  EXPECT_EQ(bench.tasks->size(), 0U);
}

TEST_F(TaskServiceTest, WithoutToolsThatCanThereAreNoTasks) {
  for (Tool& tool : bench.definition.tools) tool.task_support = TaskSupport::forbidden;
  serve({});
  initialize();
  EXPECT_THAT(bench.request("initialize", R"("protocolVersion":"2025-11-25")", caller),
              Not(HasSubstr(R"("tasks")")));
  EXPECT_THAT(call("echo", R"(,"task":{},"arguments":{"text":"hi"})"), HasSubstr("content"));
  EXPECT_EQ(error_code(get("a")), kMethodNotFound);
}

TEST_F(TaskServiceTest, RevisionsWithoutTasksIgnoreThem) {
  bench.request("initialize", R"("protocolVersion":"2025-06-18","capabilities":{})", caller);
  EXPECT_EQ(call("later"), "");
  EXPECT_EQ(bench.calls.size(), 1U);
  EXPECT_EQ(error_code(call("needed")), kMethodNotFound);
  EXPECT_EQ(error_code(get("a")), kMethodNotFound);
}

TEST_F(TaskServiceTest, FailuresAreOfTheToolOrOfTheProtocol) {
  initialize();
  const std::string wrong = begin();
  bench.calls.back()->complete({.text = "It broke", .is_error = true});
  EXPECT_EQ(status_of(get(wrong)), "failed");
  EXPECT_THAT(get(wrong), HasSubstr(R"("statusMessage":"It broke")"));
  EXPECT_THAT(wait(wrong), HasSubstr(R"("isError":true)"));
  const std::string error = begin();
  bench.calls.back()->fail({-32050, "No", R"({"a":1})"});
  EXPECT_EQ(status_of(get(error)), "failed");
  EXPECT_EQ(wait(error), R"({"jsonrpc":"2.0","id":1,"error":{"code":-32050,"message":"No",)"
                         R"("data":{"a":1}}})");
  const std::string refused = begin("later", R"(,"task":{},"arguments":{"refuse":1})");
  EXPECT_EQ(error_code(wait(refused)), kInvalidParams);
  const std::string dropped = begin();
  bench.calls.clear();
  EXPECT_EQ(error_code(wait(dropped)), kInternalError);
  EXPECT_EQ(bench.tasks->running(), 0U);
}

TEST_F(TaskServiceTest, ArgumentsThatBreakTheSchemaFailTheTask) {
  bench.definition.tools[1].input_schema =
      R"({"type":"object","properties":{"n":{"type":"integer"}}})";
  serve({});
  initialize();
  const std::string id = begin("later", R"(,"task":{},"arguments":{"n":"x"})");
  EXPECT_TRUE(bench.calls.empty());
  EXPECT_EQ(status_of(get(id)), "failed");
  EXPECT_THAT(wait(id), HasSubstr("Invalid params"));
}

TEST_F(TaskServiceTest, AResultIsWaitedFor) {
  initialize();
  const std::string id = begin();
  EXPECT_EQ(wait(id), "");
  EXPECT_EQ(bench.outcome.kind, Outcome::Kind::pending);
  bench.run_all();
  EXPECT_TRUE(caller.channel().replies.empty());
  bench.calls.back()->complete({.text = "done"});
  bench.run_all();
  ASSERT_EQ(caller.channel().replies.size(), 1U);
  EXPECT_THAT(caller.channel().replies[0], HasSubstr(R"({"jsonrpc":"2.0","id":1,"result":)"));
  EXPECT_THAT(caller.channel().replies[0], HasSubstr("related-task"));
}

TEST_F(TaskServiceTest, WhoGoesAwayWhileItWaitsLeavesTheTaskRunning) {
  initialize();
  const std::string id = begin();
  wait(id);
  caller.channel().close();
  bench.run_all();
  EXPECT_FALSE(caller.channel().waits_for_close());
  EXPECT_FALSE(bench.calls.back()->over());
  bench.calls.back()->complete({.text = "done"});
  bench.run_all();
  EXPECT_TRUE(caller.channel().replies.empty());
  EXPECT_EQ(status_of(get(id)), "completed");
}

TEST_F(TaskServiceTest, NotMoreThanSomeWaitForOneTask) {
  initialize();
  const std::string id = begin();
  for (std::size_t i = 0; i < TaskRecord::kMaxObservers; ++i) wait(id);
  EXPECT_TRUE(caller.channel().replies.empty());
  wait(id);
  ASSERT_EQ(caller.channel().replies.size(), 1U);
  EXPECT_EQ(error_code(caller.channel().replies[0]), kLimitReached);
  caller.channels[0]->close();
  bench.run_all();
  wait(id);
  EXPECT_TRUE(caller.channel().replies.empty());
}

TEST_F(TaskServiceTest, ProgressAndLogsGoToWhoeverWaitsOrToTheSession) {
  initialize();
  const std::string id = begin("later", R"(,"task":{},"_meta":{"progressToken":"p"})");
  bench.calls.back()->emit("a");
  bench.calls.back()->log(LoggingLevel::warning, "", R"("x")");
  bench.run_all();
  const std::string meta =
      R"("_meta":{"io.modelcontextprotocol/related-task":{"taskId":")" + id + R"("}})";
  ASSERT_EQ(told.size(), 2U);
  EXPECT_EQ(told[0], R"({"jsonrpc":"2.0","method":"notifications/progress","params":{)" + meta +
                         R"(,"progressToken":"p","progress":1,"message":"a"}})");
  EXPECT_EQ(told[1], R"({"jsonrpc":"2.0","method":"notifications/message","params":{)" + meta +
                         R"(,"level":"warning","data":"x"}})");
  caller.agreed->set_logging_level(LoggingLevel::error);
  bench.calls.back()->log(LoggingLevel::warning, "", R"("y")");
  wait(id);
  bench.calls.back()->emit("b");
  bench.run_all();
  EXPECT_EQ(told.size(), 2U);
  EXPECT_THAT(caller.channel().written, HasSubstr(R"("progress":2,"message":"b")"));
  EXPECT_THAT(caller.channel().written, Not(HasSubstr("\"y\"")));
}

TEST_F(TaskServiceTest, ATaskWaitsUntilWhatItSaysHasGone) {
  initialize();
  begin("later", R"(,"task":{},"_meta":{"progressToken":"p"})");
  const std::shared_ptr<PendingRequest> call = bench.calls.back();
  CountingStreamProducer producer;
  call->set_producer(&producer);
  const std::string text(40'000, 'x');
  EXPECT_TRUE(call->emit(text));
  EXPECT_FALSE(call->emit(text));
  EXPECT_EQ(producer.writable_calls, 0);
  bench.run_all();
  EXPECT_EQ(producer.writable_calls, 1);
  EXPECT_EQ(told.size(), 2U);
  // What a call emits without waiting is left out until there is room again.
  for (int i = 0; i < 100; ++i) call->emit(text);
  bench.run_all();
  EXPECT_EQ(producer.writable_calls, 2);
  EXPECT_EQ(told.size(), 9U);
  EXPECT_TRUE(call->emit("heard"));
  // However long a message is, it is sent if there was room.
  EXPECT_FALSE(call->emit(std::string(1'000'000, 'x')));
  bench.run_all();
  EXPECT_EQ(told.size(), 11U);
  EXPECT_EQ(producer.writable_calls, 3);
  call->set_producer(nullptr);
  call->complete({.text = "done"});
  bench.run_all();
  EXPECT_THAT(told.back(), HasSubstr(R"("status":"completed")"));
}

TEST_F(TaskServiceTest, QuestionsWaitForWhoeverWaitsForTheResult) {
  initialize(R"({"elicitation":{}})");
  const std::string id = begin();
  ask_for_name();
  EXPECT_EQ(status_of(get(id)), "input_required");
  ASSERT_FALSE(told.empty());
  EXPECT_THAT(told.back(), HasSubstr(R"("status":"input_required")"));
  wait(id);
  bench.run_all();
  const std::string written = caller.channel().written;
  EXPECT_THAT(written, HasSubstr(R"("method":"elicitation/create")"));
  EXPECT_THAT(written, HasSubstr(R"("io.modelcontextprotocol/related-task":{"taskId":")" + id));
  // A second waiter does not ask again.
  wait(id);
  bench.run_all();
  EXPECT_EQ(caller.channel().written, "");
  EXPECT_EQ(status_of(get(id)), "input_required");

  bench.send(R"({"jsonrpc":"2.0","id":1,"result":{"action":"accept"}})", caller);
  bench.run_all();
  EXPECT_EQ(heard, R"({"action":"accept"})");
  EXPECT_EQ(status_of(get(id)), "working");
  bench.calls.back()->complete({.text = "done"});
  bench.run_all();
  EXPECT_THAT(caller.channels[0]->written, HasSubstr("done"));
  EXPECT_EQ(caller.channel().replies.size(), 1U);
}

TEST_F(TaskServiceTest, AQuestionIsAskedAgainWhenItsReaderHasGone) {
  initialize(R"({"elicitation":{}})");
  const std::string id = begin();
  wait(id);
  wait(id);
  ask_for_name();
  EXPECT_THAT(caller.channels[0]->written, HasSubstr("elicitation/create"));
  EXPECT_EQ(caller.channels[1]->written, "");
  caller.channels[0]->close(DisconnectReason::cancelled);
  bench.run_all();
  EXPECT_THAT(caller.channels[1]->written, HasSubstr("elicitation/create"));
  bench.send(R"({"jsonrpc":"2.0","id":2,"error":{"code":-1,"message":"no"}})", caller);
  bench.run_all();
  EXPECT_EQ(heard, "-32603");
}

TEST_F(TaskServiceTest, AQuestionThatATaskTakesBackIsTakenBackFromWhoeverWasAsked) {
  initialize(R"({"elicitation":{}})");
  const std::string id = begin();
  wait(id);
  PendingRequest::Withdraw withdraw = ask_for_name();
  const std::string& written = caller.channel().written;
  ASSERT_THAT(written, HasSubstr("elicitation/create"));
  withdraw();
  bench.run_all();
  EXPECT_THAT(written, HasSubstr(R"("method":"notifications/cancelled","params":{"requestId":1})"));
  EXPECT_EQ(status_of(get(id)), "working");
  bench.send(R"({"jsonrpc":"2.0","id":1,"result":{"action":"accept"}})", caller);
  bench.run_all();
  EXPECT_EQ(heard, "");
  // The task may ask another question.
  ask_for_name();
  EXPECT_THAT(caller.channels[0]->written, HasSubstr(R"("id":2,"method":"elicitation/create")"));
}

TEST_F(TaskServiceTest, AClientThatCannotBeAskedFailsTheQuestionAtOnce) {
  initialize();
  const std::string id = begin();
  ask_for_name();
  EXPECT_EQ(heard, std::to_string(kInvalidRequest));
  EXPECT_EQ(status_of(get(id)), "working");
}

TEST_F(TaskServiceTest, CancellingStopsTheHandlerAndIsFinal) {
  initialize(R"({"elicitation":{}})");
  const std::string id = begin();
  CountingStreamProducer producer;
  bench.calls.back()->set_producer(&producer);
  ask_for_name();
  wait(id);
  bench.run_all();
  const std::string cancelled = cancel(id);
  EXPECT_EQ(status_of(cancelled), "cancelled");
  // The handler finishes before it is told of the cancellation.
  bench.calls.back()->complete({.text = "too late"});
  bench.run_all();
  EXPECT_EQ(status_of(get(id)), "cancelled");
  EXPECT_TRUE(bench.calls.back()->over());
  EXPECT_EQ(heard, "");
  EXPECT_EQ(error_code(wait(id)), kCancelled);
  EXPECT_THAT(caller.channel().written, HasSubstr("cancelled by request"));
  const std::string again = cancel(id);
  EXPECT_EQ(error_code(again), kInvalidParams);
  EXPECT_THAT(again, HasSubstr("already in terminal status 'cancelled'"));

  const std::string other = begin();
  bench.calls.back()->set_producer(&producer);
  cancel(other);
  bench.run_all();
  EXPECT_EQ(producer.cancels, 1);
}

TEST_F(TaskServiceTest, ATaskThatIsCancelledBeforeItBeginsDoesNotRun) {
  initialize();
  const std::string id = id_of(call("later"));
  cancel(id);
  bench.run_all();
  EXPECT_EQ(status_of(get(id)), "cancelled");
  EXPECT_TRUE(bench.calls.empty() || bench.calls.back()->over());
}

TEST_F(TaskServiceTest, OnlyItsPrincipalAndItsRevisionSeeATask) {
  initialize();
  const std::string id = begin();
  RecordingCaller mallory("mallory");
  bench.request("initialize", R"("protocolVersion":"2025-11-25","capabilities":{})", mallory);
  for (const char* const method : {"tasks/get", "tasks/result", "tasks/cancel"}) {
    const std::string named = R"("taskId":")" + id + "\"";
    const std::string foreign = bench.request(method, named, mallory);
    EXPECT_EQ(error_code(foreign), kInvalidParams) << method;
    EXPECT_EQ(foreign, bench.request(method, R"("taskId":"unknown")", caller)) << method;
    EXPECT_EQ(error_code(bench.request(method, R"("taskId":1)", caller)), kInvalidParams) << method;
  }
  EXPECT_EQ(bench.request("tasks/list", "", mallory), result_text(R"({"tasks":[]})"));
  EXPECT_EQ(error_code(get_modern(id)), kInvalidParams);
  EXPECT_EQ(status_of(get(id)), "working");
  // The task's own principal can see it in any session.
  RecordingCaller alice;
  bench.request("initialize", R"("protocolVersion":"2025-11-25","capabilities":{})", alice);
  EXPECT_THAT(bench.request("tasks/get", R"("taskId":")" + id + "\"", alice), HasSubstr(id));
}

TEST_F(TaskServiceTest, TasksAreListedPageByPage) {
  bench.definition.page_size = 2;
  serve({});
  initialize();
  std::vector<std::string> ids;
  for (int i = 0; i < 5; ++i) ids.push_back(begin());
  begin_modern();
  std::vector<std::string> listed;
  std::string cursor;
  std::size_t pages = 0;
  do {
    const json::object page = result_of(
        bench.request("tasks/list", cursor.empty() ? "" : R"("cursor":")" + cursor + "\"", caller));
    ASSERT_LE(page.at("tasks").get_array().size(), 2U);
    for (const json::value& task : page.at("tasks").get_array()) {
      listed.emplace_back(task.at("taskId").get_string());
    }
    cursor = page.contains("nextCursor") ? std::string(page.at("nextCursor").get_string()) : "";
    if (++pages == 1) {
      // A cursor works only for the principal it was given to, and cannot be made up.
      RecordingCaller mallory("mallory");
      bench.request("initialize", R"("protocolVersion":"2025-11-25","capabilities":{})", mallory);
      const std::string given = R"("cursor":")" + cursor + "\"";
      EXPECT_EQ(error_code(bench.request("tasks/list", given, mallory)), kInvalidParams);
      EXPECT_EQ(error_code(bench.request("tasks/list", R"("cursor":"2")", caller)), kInvalidParams);
      EXPECT_EQ(error_code(bench.request("tasks/list", R"("cursor":2)", caller)), kInvalidParams);
    }
  } while (!cursor.empty() && pages < 9);
  EXPECT_EQ(pages, 3U);
  EXPECT_EQ(listed, ids);
}

TEST_F(TaskServiceTest, WhoCannotBeToldFromOthersCannotListTasks) {
  RecordingCaller shared("192.0.2.1", false);
  const std::string begun =
      bench.request("initialize", R"("protocolVersion":"2025-11-25","capabilities":{})", shared);
  EXPECT_THAT(begun, HasSubstr(R"("tasks":{"cancel")"));
  EXPECT_EQ(error_code(bench.request("tasks/list", "", shared)), kMethodNotFound);
  const std::string created = bench.request("tools/call", R"("name":"later","task":{})", shared);
  const std::string id(parse_json(created).value().at_pointer("/result/task/taskId").as_string());
  EXPECT_EQ(status_of(bench.request("tasks/get", R"("taskId":")" + id + "\"", shared)), "working");
}

TEST_F(TaskServiceTest, TasksExpireAndStopThen) {
  initialize();
  const std::string id = begin("later", R"(,"task":{"ttl":5000})");
  CountingStreamProducer producer;
  bench.calls.back()->set_producer(&producer);
  wait(id);
  bench.executors[0].advance(5s - 1ns);
  bench.tasks->sweep();
  EXPECT_EQ(status_of(get(id)), "working");
  bench.executors[0].advance(1ns);
  EXPECT_EQ(error_code(get(id)), kInvalidParams);
  EXPECT_EQ(bench.request("tasks/list", "", caller), result_text(R"({"tasks":[]})"));
  bench.tasks->sweep();
  bench.run_all();
  EXPECT_EQ(producer.cancels, 1);
  EXPECT_EQ(bench.tasks->size(), 0U);
  EXPECT_EQ(bench.tasks->running(), 0U);
  ASSERT_EQ(caller.channel().replies.size(), 1U);
  EXPECT_THAT(caller.channel().replies[0], HasSubstr("Task has expired"));
}

TEST_F(TaskServiceTest, TheServerLimitsHowLongTasksAreKept) {
  serve({.ttl = 10s, .max_ttl = 20s});
  initialize();
  EXPECT_THAT(call("later"), HasSubstr(R"("ttl":10000)"));
  EXPECT_THAT(call("later", R"(,"task":{"ttl":20000})"), HasSubstr(R"("ttl":20000)"));
  EXPECT_THAT(call("later", R"(,"task":{"ttl":20001})"), HasSubstr(R"("ttl":20000)"));
  EXPECT_THAT(call("later", R"(,"task":{"ttl":0})"), HasSubstr(R"("ttl":1000)"));
}

TEST_F(TaskServiceTest, TasksOfOneClientAndOfAllAreLimited) {
  serve({.max_tasks = 3, .per_client = 2});
  initialize();
  begin();
  begin("later", R"(,"task":{"ttl":2000})");
  EXPECT_EQ(error_code(call("later")), kLimitReached);
  RecordingCaller bob("bob");
  bench.request("initialize", R"("protocolVersion":"2025-11-25","capabilities":{})", bob);
  const std::string params = R"("name":"later","task":{})";
  EXPECT_EQ(error_code(bench.request("tools/call", params, bob)), 0);
  const std::string full = bench.request("tools/call", params, bob);
  EXPECT_EQ(error_code(full), kLimitReached);
  EXPECT_THAT(full, HasSubstr("The server has 3 tasks"));
  // There is room again when a task's time is over.
  bench.executors[0].advance(2s);
  EXPECT_EQ(error_code(call("later")), 0);
}

TEST_F(TaskServiceTest, ANetworkOfIpv6IsOneClient) {
  serve({.max_tasks = 10, .per_client = 2});
  std::vector<std::string> created;
  for (const char* const address : {"2001:db8::1", "2001:db8::2", "2001:db8::3"}) {
    RecordingCaller one(address);
    bench.request("initialize", R"("protocolVersion":"2025-11-25","capabilities":{})", one);
    created.push_back(bench.request("tools/call", R"("name":"later","task":{})", one));
  }
  EXPECT_EQ(error_code(created[2]), kLimitReached);
  // Each address sees only its own tasks.
  RecordingCaller second("2001:db8::2");
  bench.request("initialize", R"("protocolVersion":"2025-11-25","capabilities":{})", second);
  const std::string listed = bench.request("tasks/list", "", second);
  EXPECT_THAT(listed, HasSubstr(id_of(created[1])));
  EXPECT_THAT(listed, Not(HasSubstr(id_of(created[0]))));
}

TEST_F(TaskServiceTest, TheOldestTaskThatHasEndedMakesRoomForAnother) {
  serve({.max_tasks = 3, .per_client = 3});
  initialize();
  const std::string running = begin();
  std::vector<std::string> ended;
  for (int i = 0; i < 20; ++i) {
    ended.push_back(begin());
    ASSERT_NE(ended.back(), "");
    bench.calls.back()->complete({.text = "done"});
    bench.run_all();
  }
  EXPECT_EQ(bench.tasks->size(), 3U);
  EXPECT_EQ(status_of(get(running)), "working");
  EXPECT_EQ(status_of(get(ended[19])), "completed");
  EXPECT_EQ(status_of(get(ended[18])), "completed");
  EXPECT_EQ(error_code(get(ended[17])), kInvalidParams);
}

TEST_F(TaskServiceTest, WhoHasMostMakesRoomForWhoHasLess) {
  serve({.max_tasks = 4, .per_client = 3});
  initialize();
  const std::string running = begin();
  std::vector<std::string> ended;
  for (int i = 0; i < 2; ++i) {
    ended.push_back(begin());
    bench.calls.back()->complete({.text = "done"});
    bench.run_all();
  }
  RecordingCaller bob("bob");
  bench.request("initialize", R"("protocolVersion":"2025-11-25","capabilities":{})", bob);
  const auto begin_of_bob = [&] {
    return error_code(bench.request("tools/call", R"("name":"later","task":{})", bob));
  };
  EXPECT_EQ(begin_of_bob(), 0);
  EXPECT_EQ(begin_of_bob(), 0);
  EXPECT_EQ(error_code(get(ended[0])), kInvalidParams) << "the oldest";
  EXPECT_EQ(status_of(get(ended[1])), "completed");
  // Both clients have two tasks now. A new task does not displace one that another client has
  // ended.
  EXPECT_EQ(begin_of_bob(), kLimitReached);
  EXPECT_EQ(status_of(get(running)), "working");
  EXPECT_EQ(status_of(get(ended[1])), "completed");
}

TEST_F(TaskServiceTest, ResultsAreLimitedEachAndMakeRoomTogether) {
  serve({.max_result = 200, .result_memory = 420});
  initialize();
  const std::string large = begin();
  bench.calls.back()->complete({.text = std::string(300, 'x')});
  EXPECT_EQ(status_of(get(large)), "failed");
  EXPECT_THAT(wait(large), HasSubstr("larger than the 200 bytes"));
  std::vector<std::string> ended;
  for (int i = 0; i < 4; ++i) {
    ended.push_back(begin());
    bench.calls.back()->complete({.text = "a"});
  }
  EXPECT_EQ(status_of(get(ended[3])), "completed");
  EXPECT_THAT(wait(ended[3]), HasSubstr(R"("text":"a")"));
  EXPECT_EQ(error_code(get(ended[0])), kInvalidParams) << "as one that has expired";
}

TEST_F(TaskServiceTest, ADrainingServerBeginsNoTasks) {
  initialize();
  const std::string id = begin();
  bench.services[0]->drain();
  EXPECT_EQ(error_code(call("later")), kBusy);
  wait(id);
  bench.tasks->end_all({kStreamInvalidState, "The server is shutting down", {}});
  bench.run_all();
  EXPECT_TRUE(bench.calls.back()->over());
  ASSERT_EQ(caller.channel().replies.size(), 1U);
  EXPECT_EQ(error_code(caller.channel().replies[0]), kStreamInvalidState);
}

/// The task's requests come through another loop than its own.
TEST(TaskAcrossLoopsTest, RequestsReachATaskOnAnyLoop) {
  ServerBench bench(2);
  bench.definition.tools[1].task_support = TaskSupport::optional;
  bench.serve();
  const RefPtr catalog(
      new LoopCatalog(Catalog::make(bench.definition).value(), *bench.results, bench.executors[1]));
  Dispatcher elsewhere(catalog, *bench.services[1], bench.sessions, bench.quota, *bench.changes,
                       *bench.tasks, bench.long_messages, bench.checks);
  RecordingCaller caller;
  const auto ask_elsewhere = [&](std::string_view method, const std::string& params) {
    MessageParser parser;
    const std::string text = R"({"jsonrpc":"2.0","id":7,"method":")" + std::string(method) +
                             R"(","params":{)" + params + "}}";
    std::string out;
    elsewhere.dispatch(parser.parse(text).value(), nullptr, caller, out);
    return out;
  };
  bench.request("initialize", R"("protocolVersion":"2025-11-25","capabilities":{"elicitation":{}})",
                caller);
  const std::string created = bench.request("tools/call", R"("name":"later","task":{})", caller);
  const std::string id(
      parse_json(created).value().at("result").at("task").at("taskId").get_string());
  bench.run_all();
  std::string heard;
  bench.calls.back()->ask(
      {{"a",
        "elicitation/create",
        {{"message", "A?"},
         {"requestedSchema", {{"type", "object"}, {"properties", json::object()}}}}}},
      [&](const Result<std::vector<json::value>>& answers) {
        heard = to_json(answers.value().front());
      });
  const std::string named = R"("taskId":")" + id + "\"";
  EXPECT_EQ(ask_elsewhere("tasks/result", named), "");
  bench.executors[0].run();
  EXPECT_THAT(caller.channel().written, Not(HasSubstr("done")));
  bench.run_all();
  EXPECT_THAT(caller.channel().written, HasSubstr("elicitation/create"));
  bench.send(R"({"jsonrpc":"2.0","id":1,"result":{"action":"accept"}})", caller);
  bench.executors[1].run();
  EXPECT_EQ(heard, "");
  bench.executors[0].run();
  EXPECT_EQ(heard, R"({"action":"accept"})");
  CountingStreamProducer producer;
  bench.calls.back()->set_producer(&producer);
  EXPECT_THAT(ask_elsewhere("tasks/cancel", named), HasSubstr(R"("status":"cancelled")"));
  bench.executors[1].run();
  EXPECT_THAT(caller.channel().written, HasSubstr("cancelled by request"));
  EXPECT_EQ(producer.cancels, 0);
  bench.executors[0].run();
  EXPECT_EQ(producer.cancels, 1);
  bench.calls.clear();
}

}  // namespace
}  // namespace sluice
