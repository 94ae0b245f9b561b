#include <algorithm>
#include <chrono>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <memory>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "sluice/concurrency.hpp"
#include "sluice/server.hpp"
#include "sluice/testing.hpp"

namespace sluice::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

struct Add {
  int a;
  int b;
};
struct Total {
  int sum;
};
struct Name {
  std::string name;
};

constexpr const char* kRevisions[] = {"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25",
                                      "2026-07-28"};

class TestingClient : public ::testing::TestWithParam<const char*> {
 protected:
  [[nodiscard]] ClientOptions options() const { return {.revision = GetParam()}; }
  Server server{"tested", "1"};
};

/// In the revisions that have elicitation.
class TestingClientThatIsAsked : public TestingClient {};
/// In those whose calls go on while a question is open, so that it can be given up.
class TestingClientThatIsAskedMeanwhile : public TestingClient {};

TEST_P(TestingClient, CallsTools) {
  server.tool("add", "", [](Add in) { return Total{in.a + in.b}; });
  server.tool("fail", "", [](Add /*in*/) -> Total { throw ToolError("I cannot"); });
  server.tool("refuse", "", []() -> std::string { throw Error{77, "No", "[1]"}; });
  Client client(server, options());
  EXPECT_TRUE(client.server_info().at("capabilities").as_object().contains("tools"));

  const Reply sum = client.call("add", {{"a", 2}, {"b", 3}});
  EXPECT_FALSE(sum.failed());
  EXPECT_EQ(sum.text(), R"({"sum":5})");
  if (std::string_view(GetParam()) >= "2025-06-18") EXPECT_EQ(sum.as<Total>().sum, 5);

  const Reply failed = client.call("fail", {{"a", 2}, {"b", 3}});
  EXPECT_TRUE(failed.failed());
  EXPECT_EQ(failed.text(), "I cannot");
  EXPECT_THROW((void)failed.as<Total>(), Error);

  const Reply refused = client.call("refuse");
  EXPECT_EQ(refused.error.value().code, 77);
  EXPECT_EQ(refused.error.value().data, "[1]");
  EXPECT_EQ(refused.text(), "No");
}

TEST_P(TestingClient, TimeIsVirtual) {
  server.tool("slow", "", [](Call& call) -> Task<std::string> {
    for (int i = 1; i <= 3; ++i) {
      co_await call.sleep(1min);
      call.progress(i, 3, std::to_string(i));
    }
    co_return "done";
  });
  Client client(server, options());
  PendingReply pending = client.begin_call("slow");
  client.advance(59s);
  EXPECT_THAT(pending.progress(), IsEmpty());
  client.advance(1s);
  EXPECT_THAT(pending.progress(), SizeIs(1));
  EXPECT_FALSE(pending.is_ready());
  EXPECT_EQ(pending.get().text(), "done");
  EXPECT_THAT(pending.progress(), SizeIs(3));
}

TEST_P(TestingClient, WaitsForSleepsAndForWorkers) {
  Server patient("tested", "1", {.call_timeout = 24h});
  patient.tool("slow", "", [](Call& call) -> Task<std::string> {
    co_await call.sleep(5h);
    call.text("half ");
    const std::string rest = co_await call.in_background([] {
      std::this_thread::sleep_for(20ms);
      return std::string("done");
    });
    co_return rest;
  });
  Client client(patient, options());
  const Reply reply = client.call("slow");
  EXPECT_EQ(reply.text(), "done");
  if (std::string_view(GetParam()) >= "2025-03-26") EXPECT_EQ(reply.partial_text(), "half ");
}

TEST_P(TestingClientThatIsAsked, AnswersQuestions) {
  server.tool("greet", "", [](Call& call) -> Task<std::string> {
    const auto asked = co_await call.elicit<Name>("Who are you?");
    if (!asked) co_return "nobody";
    co_return "Hello " + asked.content->name;
  });
  ClientOptions can = options();
  std::vector<std::string> questions;
  can.on_elicitation = [&](const json::object& params) {
    questions.emplace_back(params.at("message").as_string());
    return questions.size() == 1 ? accept({{"name", "Ada"}}) : decline();
  };
  Client client(server, std::move(can));
  EXPECT_EQ(client.call("greet").text(), "Hello Ada");
  EXPECT_EQ(client.call("greet").text(), "nobody");
  EXPECT_THAT(questions, ElementsAre("Who are you?", "Who are you?"));

  Client mute(server, options());
  EXPECT_TRUE(mute.call("greet").failed());
}

TEST_P(TestingClientThatIsAsked, AKeyIsOfOneQuestion) {
  server.tool("same", "", [](Call& call) -> Task<> {
    while (co_await call.elicit<Name>("Go on?", "confirm")) {
    }
  });
  server.tool("other", "", [](Call& call) -> Task<> {
    for (const std::string file : {"a", "b", "c"}) {
      co_await call.elicit<Name>("Delete " + file + "?", "confirm");
    }
  });
  server.tool("at once", "", [](Call& call) -> Task<> {
    co_await when_all(call.elicit<Name>("a", "confirm"), call.elicit<Name>("b", "confirm"));
  });
  server.tool("number", "", [](Call& call) -> Task<> {
    co_await call.elicit<Name>("a", "input-2");
    co_await call.elicit<Name>("b");
  });
  for (const bool tasks : {false, true}) {
    int asked = 0;
    ClientOptions can = options();
    can.tasks = tasks;
    can.on_elicitation = [&](const json::object&) {
      ++asked;
      return accept({{"name", "Ada"}});
    };
    Client client(server, std::move(can));
    for (const char* const name : {"same", "other", "at once", "number"}) {
      asked = 0;
      EXPECT_EQ(client.call(name).error.value().message, "Internal error") << name;
      EXPECT_LE(asked, 1) << name;
    }
  }
}

TEST_P(TestingClientThatIsAskedMeanwhile, AQuestionThatIsGivenUpLeavesItsKey) {
  server.tool("ask", "", [](Call& call) -> Task<std::string> {
    {
      const auto given_up = call.ask({Call::elicitation<Name>("Who are you?", "name")});
    }
    const auto asked = co_await call.elicit<Name>("Who are you?", "name");
    co_return asked.content->name;
  });
  ClientOptions can = options();
  can.on_elicitation = [](const json::object&) { return accept({{"name", "Ada"}}); };
  Client client(server, std::move(can));
  EXPECT_EQ(client.call("ask").text(), "Ada");
}

TEST_P(TestingClient, QuestionsAreCounted) {
  server.tool("ask", "", [](Call& call) -> Task<> {
    for (int i = 0; i < Call::kMaxQuestions; ++i) {
      const auto given_up = call.ask({{.method = "roots/list"}});
    }
    co_await call.ask({{.method = "roots/list"}});
  });
  Client client(server, options());
  EXPECT_EQ(client.call("ask").error.value().message, "A handler may ask at most 10000 questions");
}

TEST_P(TestingClient, CancelsCalls) {
  struct Watch {
    bool* gone;
    ~Watch() { *gone = true; }
  };
  bool gone = false;
  server.tool("wait", "", [&gone](Call& call) -> Task<std::string> {
    const Watch watch{&gone};
    co_await call.sleep(1h);
    co_return "";
  });
  Client client(server, options());
  PendingReply pending = client.begin_call("wait");
  EXPECT_FALSE(gone);
  pending.cancel();
  EXPECT_TRUE(gone);
  EXPECT_FALSE(pending.is_ready());
}

TEST_P(TestingClient, HearsOfChanges) {
  Client client(server, options());
  if (std::string_view(GetParam()) == "2026-07-28") {
    PendingReply listening =
        client.begin("subscriptions/listen", {{"notifications", {{"toolsListChanged", true}}}});
    server.tool("new", "", [] { return std::string("new"); });
    client.run();
  } else {
    server.tool("new", "", [] { return std::string("new"); });
    client.run();
  }
  EXPECT_THAT(client.take_notifications("notifications/tools/list_changed"), SizeIs(1));
  EXPECT_THAT(client.take_notifications("notifications/tools/list_changed"), IsEmpty());
  EXPECT_EQ(client.call("new").text(), "new");
}

std::string name_of(const ::testing::TestParamInfo<const char*>& info) {
  std::string name = info.param;
  std::ranges::replace(name, '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Revisions, TestingClient, ::testing::ValuesIn(kRevisions), name_of);
INSTANTIATE_TEST_SUITE_P(Revisions, TestingClientThatIsAsked,
                         ::testing::Values("2025-06-18", "2025-11-25", "2026-07-28"), name_of);
INSTANTIATE_TEST_SUITE_P(Revisions, TestingClientThatIsAskedMeanwhile,
                         ::testing::Values("2025-06-18", "2025-11-25"), name_of);

TEST(TestingClientOfAnyRevision, SaysThatNoAnswerWillCome) {
  Server server("tested", "1", {.call_timeout = 0s});
  std::vector<Resolver<int>> kept;
  server.tool("never", "", [&](Call& call) -> Task<std::string> {
    co_await call.callback<int>([&](Resolver<int> it) { kept.push_back(std::move(it)); });
    co_return "";
  });
  server.tool("late", "", [&](Call& call) -> Task<std::string> {
    co_await call.sleep(48h);
    co_return "";
  });
  Client client(server);
  EXPECT_THROW(client.call("never"), std::runtime_error);
  EXPECT_THROW(client.call("late"), std::runtime_error);
}

TEST(TestingClientOfAnyRevision, WaitsForOtherThreadsInRealTime) {
  Server server("tested", "1");
  std::vector<std::thread> threads;
  server.tool("foreign", "", [&](Call& call) -> Task<std::string> {
    co_return std::to_string(co_await call.callback<int>([&](Resolver<int> it) {
      threads.emplace_back([it = std::move(it)]() mutable {
        std::this_thread::sleep_for(20ms);
        it.succeed(7);
      });
    }));
  });
  Client client(server, {.virtual_time = false});
  EXPECT_EQ(client.call("foreign").text(), "7");
  for (std::thread& thread : threads) thread.join();
}

TEST(TestingClientOfAnyRevision, RealTimeGoesOnAfterAJump) {
  Server server("tested", "1", {.call_timeout = 24h});
  server.tool("nap", "", [](Call& call) -> Task<std::string> {
    co_await call.sleep(1ms);
    co_return "rested";
  });
  server.tool("long", "", [](Call& call) -> Task<std::string> {
    co_await call.sleep(1h);
    co_return "rested";
  });
  Client client(server, {.virtual_time = false, .patience = 10s});
  PendingReply pending = client.begin_call("long");
  client.advance(1h);
  EXPECT_TRUE(pending.is_ready());
  EXPECT_EQ(client.call("nap").text(), "rested");
}

TEST(TestingClientOfAnyRevision, TimeGoesStepByStep) {
  Server server("tested", "1");
  server.tool("steps", "", [](Call& call) -> Task<std::string> {
    for (int i = 0; i < 3; ++i) {
      co_await call.in_background([] { std::this_thread::sleep_for(2ms); });
      co_await call.sleep(10s);
      const auto asked = co_await call.elicit<Name>("Go on?");
      call.text(asked ? asked.content->name : "nobody");
    }
    co_return "done";
  });
  Client client(server, {.revision = "2025-11-25", .on_elicitation = [](const json::object&) {
                           return accept({{"name", "Ada "}});
                         }});
  PendingReply pending = client.begin_call("steps");
  client.advance(25s);
  EXPECT_EQ(pending.partial_text(), "Ada Ada ");
  EXPECT_EQ(pending.get().text(), "done");
}

TEST(TestingClientOfAnyRevision, AWorkerThatNeverEndsMeetsItsTimeout) {
  Server server("tested", "1");
  server.tool("grind", "", blocking([](Call& call) {
                while (!call.stop_token().stop_requested()) std::this_thread::sleep_for(1ms);
                return std::string("stopped");
              }));
  Client client(server);
  EXPECT_EQ(client.call("grind").error.value().code, kTimedOut);
}

TEST(TestingClientOfAnyRevision, AHandlerThatOnlyYieldsMeetsThePatience) {
  Server server("tested", "1", {.call_timeout = 24h});
  for (const auto& [name, time] : {std::pair("zero", 0s), std::pair("past", -1s)}) {
    server.tool(name, "", [time](Call& call) -> Task<std::string> {
      for (;;) co_await call.sleep(time);
    });
  }
  for (const bool is_virtual : {true, false}) {
    for (const char* const name : {"zero", "past"}) {
      Client client(server, {.virtual_time = is_virtual, .patience = is_virtual ? 24h : 100ms});
      EXPECT_THROW(client.call(name), std::runtime_error) << name << is_virtual;
    }
  }
}

TEST(TestingClientOfAnyRevision, AQuestionMayHaveAnyKey) {
  Server server("tested", "1");
  server.tool("ask", "", [](Call& call) -> Task<std::string> {
    const auto given = co_await call.elicit<Name>("Who are you?", "name of caf\xE9");
    co_return given.content->name;
  });
  for (const bool tasks : {false, true}) {
    int asked = 0;
    Client client(server, {.on_elicitation =
                               [&](const json::object&) {
                                 EXPECT_LT(++asked, 2);
                                 return accept({{"name", "Ada"}});
                               },
                           .tasks = tasks});
    EXPECT_EQ(client.call("ask").text(), "Ada");
  }
}

TEST(TestingClientOfAnyRevision, QuestionsThatDifferInEachRunHaveAnEnd) {
  Server server("tested", "1");
  server.tool("ask", "", [runs = 0](Call& call) mutable -> Task<> {
    ++runs;
    co_await call.elicit<Name>("Do you know this?");
    co_await call.elicit<Name>("It is " + std::to_string(runs) + ". Go on?");
  });
  int asked = 0;
  Client client(server, {.on_elicitation = [&](const json::object&) {
                  ++asked;
                  return accept({{"name", "Ada"}});
                }});
  const Error error = client.call("ask").error.value();
  EXPECT_EQ(error.code, kLimitReached);
  EXPECT_THAT(error.message, HasSubstr("the same keys and the same words in each run"));
  EXPECT_EQ(asked, 11);
}

TEST(TestingClientOfAnyRevision, MiddlewareMayWaitWhenTheClientGoes) {
  Server server("tested", "1");
  server.tool("quick", "", [] { return std::string("ok"); });
  server.use([](Request& request) -> Task<> {
    co_await request.next();
    co_await request.sleep(1h);
  });
  Client client(server);
  EXPECT_EQ(client.call("quick").text(), "ok");
}

TEST(TestingClientOfAnyRevision, ACallThatItsUserCancelsHasNoNextRound) {
  Server server("tested", "1");
  PendingReply* asked = nullptr;
  Client client(server, {.on_elicitation = [&](const json::object&) {
                  asked->cancel();
                  return decline();
                }});
  server.tool("first", "", [](Call& call) -> Task<std::string> {
    co_await call.sleep(1s);
    co_await call.elicit<Name>("Who?");
    co_return "done";
  });
  PendingReply pending = client.begin_call("first");
  asked = &pending;
  client.advance(1min);
  EXPECT_FALSE(pending.is_ready());
}

TEST(TestingClientOfAnyRevision, AMessageThatTheServerCannotReadIsAFailure) {
  Server server("tested", "1");
  Client client(server);
  json::value deep;
  for (int i = 0; i < 1000; ++i) deep = json::array{std::move(deep)};
  EXPECT_THROW(client.request("ping", {{"deep", std::move(deep)}}), std::runtime_error);
}

TEST(TestingClientOfAnyRevision, ADestructorOfAHandlerMayUseTheServer) {
  Server server("tested", "1");
  struct Telling {
    Server* server;
    ~Telling() { server->tools_changed(); }
  };
  const auto handler = [&server] {
    return
        [it = std::make_shared<Telling>(&server)](const json::object&) { return std::string("a"); };
  };
  server.tool("a", "", handler());
  server.tool("a", "", handler());
  server.remove_tool("a");
  const auto completer = [&server] {
    return [it = std::make_shared<Telling>(&server)](const std::string&) {
      return std::vector<std::string>();
    };
  };
  server.prompt("p", "", [](const Name&) { return std::string("a"); });
  server.completion(PromptRef{"p"}, "name", completer());
  server.completion(PromptRef{"p"}, "name", completer());
  Client client(server);
  server.tool("a", "", handler());
  server.tool("a", "", handler());
  server.remove_tool("a");
  EXPECT_THROW(server.tool("b", "", handler(), {.input_schema = {{"type", 5}}}),
               std::invalid_argument);
}

TEST(TestingClientOfAnyRevision, SeesTheEndOfATask) {
  Server server("tested", "1");
  server.tool("long", "",
              [](Call& call) -> Task<std::string> {
                co_await call.sleep(1min);
                co_return "done";
              },
              {.tasks = TaskSupport::required});
  Client client(server, {.tasks = true});
  const Reply created = client.call("long");
  const json::object get{{"taskId", created.result.at("taskId")}};
  EXPECT_EQ(client.request("tasks/get", get).result.at("status"), "working");
  client.advance(1min);
  EXPECT_EQ(client.request("tasks/get", get).result.at("status"), "completed");
}

TEST(TestingClientOfAnyRevision, ATaskOutlivesItsTool) {
  Server server("tested", "1");
  server.tool("long", "",
              [](Call& call) -> Task<std::string> {
                co_await call.sleep(1min);
                co_return "done";
              },
              {.tasks = TaskSupport::required});
  Client client(server, {.tasks = true});
  const Reply created = client.call("long");
  const json::object get{{"taskId", created.result.at("taskId")}};
  server.remove_tool("long");
  client.run();
  EXPECT_EQ(client.request("tasks/get", get).result.at("status"), "working");
  client.advance(1min);
  EXPECT_EQ(client.request("tasks/get", get).result.at("status"), "completed");
}

TEST(TestingClientOfAnyRevision, RefusesWhatCannotBe) {
  EXPECT_THROW(Client(Server("tested", "1"), {.revision = "2020-01-01"}), std::invalid_argument);
}

}  // namespace
}  // namespace sluice::testing
