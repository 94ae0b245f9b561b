#include <algorithm>
#include <chrono>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <optional>
#include <string>
#include <utility>

#include "proxy/proxy.hpp"
#include "proxy/proxy_test_support.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

using Kind = FakeClient::Kind;

constexpr std::string_view kExtension = "io.modelcontextprotocol/tasks";

/// A server that makes tasks of calls, in the form of its era.
struct TaskServer : FakeServer {
  TaskServer(std::string called, bool is_modern) : FakeServer(std::move(called), is_modern) {
    if (modern) {
      capabilities["extensions"] = {{kExtension, json::object()}};
    } else {
      capabilities["tasks"] = {{"requests", {{"tools", {{"call", json::object()}}}}}};
    }
    on_message = [this](FakeLink& link, const json::object& message) { play(link, message); };
  }

  void play(FakeLink& link, const json::object& message) {
    const std::string_view method = text_at(message, "method");
    if (method == "tools/list") {
      answer(link, message, {{"tools", {{{"name", "tool"}}}}});
    } else if (method == "tools/call") {
      if (modern ? to_json(message).contains(kExtension)
                 : message.at("params").as_object().contains("task")) {
        if (is_refusing) return refuse(link, message, -32601, "No tasks of this tool");
        return answer(link, message, created());
      }
      if (needs_task) return refuse(link, message, -32601, "Only as a task");
      answer(link, message, done());
    } else if (method == "tasks/get") {
      json::object now = state();
      if (modern && status == "completed") now["result"] = done();
      if (modern && status == "input_required") now["inputRequests"] = {{"who", question()}};
      answer(link, message, std::move(now));
    } else if (method == "tasks/result") {
      if (status == "completed") return answer(link, message, done());
      waiting = message;
      json::object asked = question();
      asked["jsonrpc"] = "2.0";
      asked["id"] = 77;
      asked["params"].as_object()["_meta"] = of_task();
      post(link, std::move(asked));
    } else if (method == "tasks/update" || method == "tasks/cancel") {
      if (method == "tasks/update") status = "completed";
      answer(link, message, json::object());
    } else if (!message.contains("method") && waiting) {
      status = "completed";
      answer(link, *waiting, done());
    }
  }
  [[nodiscard]] json::object state() const {
    json::object out{{"taskId", name + "-1"},
                     {"status", status},
                     {"createdAt", "2026-01-01T00:00:00Z"},
                     {"lastUpdatedAt", "2026-01-01T00:00:00Z"}};
    out[modern ? "ttlMs" : "ttl"] = 60000;
    out[modern ? "pollIntervalMs" : "pollInterval"] = 100;
    return out;
  }
  [[nodiscard]] json::object created() const {
    if (!modern) return {{"task", state()}};
    json::object out = state();
    out["resultType"] = "task";
    return out;
  }
  [[nodiscard]] json::object of_task() const {
    return {{"io.modelcontextprotocol/related-task", {{"taskId", name + "-1"}}}};
  }
  [[nodiscard]] json::object done() const {
    json::object out{{"resultType", "complete"},
                     {"content", {{{"type", "text"}, {"text", "done by " + name}}}}};
    if (fails) out["isError"] = true;
    if (!modern) out["_meta"] = of_task();
    return out;
  }
  [[nodiscard]] static json::object question() {
    return {{"method", "elicitation/create"},
            {"params",
             {{"message", "Who?"},
              {"requestedSchema", {{"type", "object"}, {"properties", json::object()}}}}}};
  }

  std::string status = "working";
  bool fails = false;
  bool is_refusing = false;
  bool needs_task = false;
  std::optional<json::object> waiting;
};

struct TaskEras {
  Kind client;
  bool modern_server;
};

class ProxyTasksTest : public ::testing::TestWithParam<TaskEras> {
 protected:
  ProxyTasksTest() { begin(client); }
  ~ProxyTasksTest() override { server.on_message = {}; }

  [[nodiscard]] static bool is_legacy() { return GetParam().client == Kind::session; }
  void begin(FakeClient& who) {
    if (is_legacy()) {
      who.initialize();
    } else {
      who.capabilities["extensions"] = {{kExtension, json::object()}};
    }
    proxy.run();
  }
  /// Calls the tool as the client of its era does to get a task; returns the request's id.
  std::int64_t call(FakeClient& who, std::string_view tool = "tool") {
    json::object params{{"name", tool}};
    if (is_legacy()) params["task"] = {{"ttl", 5000}};
    const auto id = who.request("tools/call", std::move(params));
    proxy.run();
    return id;
  }
  /// The id of the task that a call has become; empty if it has not.
  static std::string task_in(const FakeClient& who, std::int64_t call) {
    const json::object* const answer = who.answer_to(call);
    if (answer == nullptr || !answer->contains("result")) return {};
    const json::object& result = answer->at("result").as_object();
    const json::object* const task = is_legacy() ? object_at(result, "task") : &result;
    return task == nullptr ? std::string() : std::string(text_at(*task, "taskId"));
  }
  std::string ask(FakeClient& who, std::string_view method, json::object params) {
    const auto id = who.request(method, std::move(params));
    proxy.run();
    return who.result_of(id);
  }
  std::string state_of(const std::string& task) {
    return ask(client, "tasks/get", {{"taskId", task}});
  }
  std::string result_of(const std::string& task) {
    return is_legacy() ? ask(client, "tasks/result", {{"taskId", task}}) : state_of(task);
  }
  [[nodiscard]] std::string heard() const {
    std::string all;
    for (const std::string& each : server.heard) all.append(each).append("\n");
    return all;
  }

  TaskServer server{"behind", GetParam().modern_server};
  FakeProxy proxy{{server.upstream()}};
  FakeClient client{*proxy.server, GetParam().client};
};

TEST_P(ProxyTasksTest, AreOfferedInTheFormOfTheClientsEra) {
  const std::string about = is_legacy() ? client.result_of(1) : ask(client, "server/discover", {});
  EXPECT_THAT(about, HasSubstr(is_legacy() ? R"("requests":{"tools":{"call":{}}})"
                                           : R"("io.modelcontextprotocol/tasks":{})"));
  const bool tells_of_tools = is_legacy() && GetParam().modern_server;
  const std::string tools = ask(client, "tools/list", {});
  EXPECT_EQ(tools.contains(R"("execution":{"taskSupport":"optional"})"), tells_of_tools) << tools;
}

TEST_P(ProxyTasksTest, ACallBecomesATaskAndEndsAsTheServersDoes) {
  const std::string task = task_in(client, call(client));
  ASSERT_THAT(task, SizeIs(32));
  EXPECT_THAT(state_of(task), HasSubstr(R"("status":"working")"));
  server.status = "completed";
  proxy.advance(1s);
  EXPECT_THAT(state_of(task), HasSubstr(R"("status":"completed")"));
  EXPECT_THAT(result_of(task), HasSubstr("done by behind"));
  EXPECT_EQ(result_of(task).contains("related-task"), is_legacy());
  for (const json::object& each : client.heard)
    EXPECT_THAT(to_json(each), Not(HasSubstr("behind-1")));
}

TEST_P(ProxyTasksTest, AToolThatSaysThatItHasFailedIsAFailureOnlyInTheLegacyEra) {
  server.fails = true;
  const std::string task = task_in(client, call(client));
  server.status = "completed";
  proxy.advance(1s);
  EXPECT_THAT(state_of(task),
              HasSubstr(is_legacy() ? R"("status":"failed")" : R"("status":"completed")"));
}

TEST_P(ProxyTasksTest, PassesOnQuestionsAndAnswers) {
  const std::string task = task_in(client, call(client));
  server.status = "input_required";
  proxy.advance(1s);
  EXPECT_THAT(state_of(task), HasSubstr(R"("status":"input_required")"));
  if (is_legacy()) {
    client.request("tasks/result", {{"taskId", task}});
    proxy.run();
    const auto asked = client.heard_of("elicitation/create");
    ASSERT_THAT(asked, SizeIs(1));
    EXPECT_THAT(to_json(*asked.front()), AllOf(HasSubstr("Who?"), HasSubstr(task)));
    client.send({{"jsonrpc", "2.0"},
                 {"id", asked.front()->at("id")},
                 {"result", {{"action", "accept"}, {"content", json::object()}}}});
  } else {
    const json::object asked = parse_json(state_of(task)).value().as_object();
    const json::object& inputs = asked.at("inputRequests").as_object();
    ASSERT_THAT(inputs, SizeIs(1));
    EXPECT_THAT(to_json(inputs), Not(HasSubstr("related-task")));
    const json::object said{{"action", "accept"}, {"content", json::object()}};
    ask(client, "tasks/update",
        {{"taskId", task}, {"inputResponses", {{inputs.begin()->key(), said}}}});
  }
  proxy.advance(1s);
  EXPECT_THAT(result_of(task), HasSubstr("done by behind"));
}

TEST_P(ProxyTasksTest, IsSeenOnlyByWhoMadeIt) {
  const std::string task = task_in(client, call(client));
  FakeClient other(*proxy.server, GetParam().client, {.id = "mallory"});
  begin(other);
  for (const char* method : {"tasks/get", "tasks/cancel"}) {
    for (const std::string& id : {task, std::string("behind-1")}) {
      EXPECT_THAT(ask(other, method, {{"taskId", id}}), HasSubstr("not found"));
    }
  }
  EXPECT_THAT(state_of("behind-1"), HasSubstr("not found"));
  EXPECT_THAT(ask(other, "tasks/other", {}), HasSubstr("Method not found"));
  EXPECT_THAT(state_of(task), HasSubstr(R"("status":"working")"));
  EXPECT_THAT(heard(), Not(AnyOf(HasSubstr(task), HasSubstr("tasks/cancel"))));
}

TEST_P(ProxyTasksTest, ItsCancellationReachesTheServer) {
  const std::string task = task_in(client, call(client));
  ask(client, "tasks/cancel", {{"taskId", task}});
  EXPECT_THAT(state_of(task), HasSubstr(R"("status":"cancelled")"));
  EXPECT_THAT(server.heard,
              Contains(AllOf(HasSubstr(R"("tasks/cancel")"), HasSubstr(R"("behind-1")"))));
}

TEST_P(ProxyTasksTest, OutlivesTheServersSession) {
  const std::string task = task_in(client, call(client));
  bool has_forgotten = false;
  server.on_message = [&](FakeLink& link, const json::object& message) {
    const bool forgets = !server.modern && message.contains("id") && !has_forgotten;
    if (!forgets) return server.play(link, message);
    has_forgotten = true;
    link.forget_session(to_json(message.at("id")));
  };
  server.status = "completed";
  proxy.advance(1s);
  EXPECT_THAT(result_of(task), HasSubstr("done by behind"));
  EXPECT_EQ(has_forgotten, !server.modern);
}

TEST_P(ProxyTasksTest, FailsWithTheServer) {
  const std::string task = task_in(client, call(client));
  server.links.front()->die();
  proxy.run();
  EXPECT_THAT(state_of(task), AllOf(HasSubstr(R"("status":"failed")"), HasSubstr("it has died")));
}

TEST_P(ProxyTasksTest, ACallThatTheServerMakesNoTaskOfIsAnsweredAllTheSame) {
  server.on_message = [this](FakeLink& link, const json::object& message) {
    const bool is_call = text_at(message, "method") == "tools/call";
    is_call ? server.answer(link, message, server.done()) : server.play(link, message);
  };
  const auto id = call(client);
  if (is_legacy()) {
    // It has asked for a task, so it gets one.
    EXPECT_THAT(result_of(task_in(client, id)), HasSubstr("done by behind"));
  } else {
    EXPECT_THAT(client.result_of(id), HasSubstr("done by behind"));
  }
}

TEST_P(ProxyTasksTest, AToolThatCannotBecomeOneRuns) {
  const auto is_call = [](const std::string& heard) { return heard.contains("tools/call"); };
  server.is_refusing = true;
  const auto id = call(client);
  // A modern server decides by itself what becomes a task, so its refusal is of the call.
  if (is_legacy() || server.modern) {
    EXPECT_THAT(client.result_of(id), HasSubstr("No tasks of this tool"));
    EXPECT_EQ(std::ranges::count_if(server.heard, is_call), 1);
  } else {
    EXPECT_THAT(client.result_of(id), HasSubstr("done by behind"));
    EXPECT_THAT(server.heard.back(), Not(HasSubstr(R"("task")")));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Eras, ProxyTasksTest,
    ::testing::Values(TaskEras{Kind::session, false}, TaskEras{Kind::session, true},
                      TaskEras{Kind::connection, false}, TaskEras{Kind::connection, true},
                      TaskEras{Kind::request, false}, TaskEras{Kind::request, true}));

TEST(ProxyTasks, AClientWithoutTheExtensionIsToldThatAToolNeedsIt) {
  TaskServer server("behind", false);
  server.needs_task = true;
  FakeProxy proxy({server.upstream()});
  FakeClient client(*proxy.server, Kind::connection);
  const auto id = client.request("tools/call", {{"name", "tool"}});
  proxy.run();
  EXPECT_THAT(client.result_of(id), AllOf(HasSubstr("-32021"), HasSubstr(kExtension)));
  EXPECT_THAT(server.heard, Each(Not(HasSubstr(R"("task")"))));
}

TEST(ProxyTasks, OfOneServerAmongSeveral) {
  FakeServer plain("plain", true);
  TaskServer busy("busy", false);
  FakeProxy proxy({plain.upstream(true), busy.upstream(true)});
  FakeClient client(*proxy.server, Kind::session);
  client.initialize();
  proxy.run();
  EXPECT_THAT(client.result_of(1), HasSubstr(R"("requests":{"tools":{"call":{}}})"));
  const auto id = client.request("tools/call", {{"name", "busy_tool"}, {"task", json::object()}});
  proxy.run();
  const std::string task(
      text_at(client.answer_to(id)->at("result").at("task").as_object(), "taskId"));
  busy.status = "completed";
  proxy.advance(1s);
  const auto result = client.request("tasks/result", {{"taskId", task}});
  proxy.run();
  EXPECT_THAT(client.result_of(result), HasSubstr("done by busy"));
  EXPECT_THAT(plain.heard, Each(Not(HasSubstr("tools/call"))));
}

/// A client of the legacy era that can be asked, and its one call, which is to become a task.
struct AskedClient {
  explicit AskedClient(FakeProxy& of) : proxy(&of) {
    client.capabilities = {{"elicitation", json::object()}};
    client.initialize();
    proxy->run();
  }
  std::int64_t call() {
    const auto id = client.request("tools/call", {{"name", "tool"}, {"task", json::object()}});
    proxy->run();
    return id;
  }
  /// Calls, and asks for the result of the task, in reply to which the client is asked. Returns the
  /// task's id.
  std::string wait() {
    const auto id = call();
    std::string task(text_at(client.answer_to(id)->at("result").at("task").as_object(), "taskId"));
    client.request("tasks/result", {{"taskId", task}});
    proxy->run();
    return task;
  }
  [[nodiscard]] std::vector<const json::object*> asked() const {
    return client.heard_of("elicitation/create");
  }
  void accept() {
    client.send({{"jsonrpc", "2.0"},
                 {"id", asked().back()->at("id")},
                 {"result", {{"action", "accept"}, {"content", json::object()}}}});
    proxy->run();
  }

  FakeProxy* proxy;
  FakeClient client{*proxy->server, Kind::session};
};

json::object question_of(const TaskServer& server) {
  json::object out = TaskServer::question();
  out["jsonrpc"] = "2.0";
  out["id"] = 78;
  out["params"].as_object()["_meta"] = server.of_task();
  return out;
}

/// Asks the question of a call's task at once, and leaves the call unanswered.
struct AskingServer : TaskServer {
  AskingServer() : TaskServer("behind", false) {
    on_message = [this](FakeLink& link, const json::object& message) {
      if (text_at(message, "method") != "tools/call") return play(link, message);
      call = message;
      post(link, question_of(*this));
    };
  }

  std::optional<json::object> call;
};

TEST(ProxyTasks, AQuestionThatIsHeardBeforeTheAnswerThatNamesItsTaskIsAsked) {
  for (const bool has_one_session : {false, true}) {
    for (const bool is_in_reply : {false, true}) {
      if (has_one_session && is_in_reply) continue;  // it would belong to the call, then
      TaskServer server("behind", false);
      server.on_message = [&server, is_in_reply](FakeLink& link, const json::object& message) {
        if (text_at(message, "method") == "tools/call") {
          is_in_reply ? link.say_in_reply_to(message, question_of(server))
                      : server.post(link, question_of(server));
        }
        server.play(link, message);
      };
      FakeProxy proxy({server.upstream()}, {.has_one_session = has_one_session});
      AskedClient client(proxy);
      const std::string task = client.wait();
      ASSERT_FALSE(client.asked().empty()) << has_one_session << is_in_reply;
      EXPECT_THAT(to_json(*client.asked().back()), HasSubstr(task));
      client.accept();
      EXPECT_THAT(server.heard,
                  Contains(AllOf(HasSubstr(R"("id":78)"), HasSubstr(R"("action":"accept")"))));
      server.on_message = {};
    }
  }
}

TEST(ProxyTasks, AQuestionThatNamesATaskWhichNoCallBecomesIsRefused) {
  AskingServer server;
  FakeProxy proxy({server.upstream()}, {.has_one_session = true});
  AskedClient client(proxy);
  client.call();
  EXPECT_THAT(client.asked(), SizeIs(0));
  EXPECT_THAT(server.heard, Each(Not(HasSubstr(R"("id":78)")))) << "the call may become the task";
  server.answer(*server.links.front(), *server.call, server.done());
  proxy.run();
  EXPECT_THAT(client.asked(), SizeIs(0));
  EXPECT_THAT(server.heard, Contains(AllOf(HasSubstr(R"("id":78)"), HasSubstr("Nobody follows"))));
}

TEST(ProxyTasks, AQuestionWaitsForTheAnswerThatNamesItsTaskThoughAnotherClientLeaves) {
  AskingServer server;
  FakeProxy proxy({server.upstream()}, {.has_one_session = true});
  AskedClient client(proxy);
  const auto id = client.call();
  AskedClient(proxy).client.request("tools/list", {});
  proxy.run();
  EXPECT_THAT(server.heard, Each(Not(HasSubstr(R"("id":78)"))));
  server.answer(*server.links.front(), *server.call, server.created());
  proxy.run();
  client.client.request(
      "tasks/result",
      {{"taskId",
        text_at(client.client.answer_to(id)->at("result").at("task").as_object(), "taskId")}});
  proxy.run();
  EXPECT_FALSE(client.asked().empty());
}

TEST(ProxyTasks, AQuestionThatWaitsForACallWhichIsCancelledIsRefused) {
  AskingServer server;
  FakeProxy proxy({server.upstream()});
  AskedClient client(proxy);
  const auto id = client.call();
  client.client.send(
      {{"jsonrpc", "2.0"}, {"method", "notifications/cancelled"}, {"params", {{"requestId", id}}}});
  proxy.run();
  EXPECT_THAT(client.asked(), SizeIs(0));
  EXPECT_THAT(server.heard, Contains(AllOf(HasSubstr(R"("id":78)"), HasSubstr("Nobody follows"))));
}

TEST(ProxyTasks, AQuestionThatHasWaitedLongIsNotAskedInAnUnrelatedCall) {
  TaskServer server("behind", false);
  std::optional<json::object> call;
  server.on_message = [&](FakeLink& link, const json::object& message) {
    if (text_at(message, "method") != "tools/call") return server.play(link, message);
    if (!message.at("params").as_object().contains("task")) return;  // goes on
    call = message;
  };
  FakeProxy proxy({server.upstream()});
  AskedClient client(proxy);
  client.call();
  proxy.advance(1500ms);
  server.post(*server.links.front(), question_of(server));
  proxy.run();
  proxy.advance(1s);
  client.client.request("tools/call", {{"name", "other"}});
  proxy.run();
  server.answer(*server.links.front(), *call, server.done());
  proxy.advance(3s);
  EXPECT_THAT(client.asked(), SizeIs(0));
  EXPECT_THAT(server.heard, Contains(AllOf(HasSubstr(R"("id":78)"), HasSubstr("Nobody follows"))));
  server.on_message = {};
}

TEST(ProxyTasks, AServerThatWaitsForItsQuestionBeforeItNamesTheTaskIsNotWaitedForForEver) {
  for (const bool has_one_session : {false, true}) {
    AskingServer server;
    FakeProxy proxy({server.upstream()}, {.has_one_session = has_one_session});
    AskedClient client(proxy);
    client.call();
    EXPECT_THAT(client.asked(), SizeIs(0));
    proxy.advance(2s);
    EXPECT_EQ(client.asked().empty(), has_one_session) << "it may be another client's";
    if (has_one_session) {
      EXPECT_THAT(server.heard,
                  Contains(AllOf(HasSubstr(R"("id":78)"), HasSubstr("Nobody follows"))));
    }
  }
}

TEST(ProxyTasks, AQuestionInReplyToARequestAboutATaskIsTheTasks) {
  TaskServer server("behind", false);
  server.on_message = [&server](FakeLink& link, const json::object& message) {
    if (text_at(message, "method") != "tasks/result") return server.play(link, message);
    server.waiting = message;
    link.say_in_reply_to(message, question_of(server));
  };
  FakeProxy proxy({server.upstream()}, {.has_one_session = true});
  AskedClient client(proxy);
  server.status = "input_required";
  client.wait();
  proxy.advance(1s);
  ASSERT_THAT(client.asked(), SizeIs(1));
  client.accept();
  EXPECT_THAT(server.heard,
              Contains(AllOf(HasSubstr(R"("id":78)"), HasSubstr(R"("action":"accept")"))));
  server.on_message = {};
}

TEST(ProxyTasks, ProgressAndLogMessagesReachTheTaskThatTheyBelongTo) {
  TaskServer server("behind", false);
  FakeProxy proxy({server.upstream()});
  FakeClient client(*proxy.server, Kind::session);
  client.initialize();
  proxy.run();
  const auto id = client.request("tools/call", {{"name", "tool"}, {"task", json::object()}});
  proxy.run();
  const std::string task(
      text_at(client.answer_to(id)->at("result").at("task").as_object(), "taskId"));
  FakeLink& link = *server.links.front();
  server.post(link,
              {{"jsonrpc", "2.0"},
               {"method", "notifications/progress"},
               {"params", {{"progressToken", 5}, {"progress", 0.5}, {"_meta", server.of_task()}}}});
  server.post(link,
              {{"jsonrpc", "2.0"},
               {"method", "notifications/message"},
               {"params", {{"level", "error"}, {"data", "oh"}, {"_meta", server.of_task()}}}});
  proxy.run();
  for (const char* method : {"notifications/progress", "notifications/message"}) {
    const auto told = client.heard_of(method);
    ASSERT_THAT(told, SizeIs(1)) << method;
    EXPECT_THAT(to_json(*told.front()), HasSubstr(task));
  }
  EXPECT_EQ(client.heard_of("notifications/progress").front()->at("params").at("progressToken"),
            id);
}

}  // namespace
}  // namespace sluice
