// The status of a task as output of an agent's call, from a server that makes one of each call.

#include <atomic>
#include <chrono>
#include <future>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "client/api/client_connection.hpp"
#include "client/session/contract/server_link.hpp"
#include "sluice/agent.hpp"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// A server of 2026-07-28 with one tool, `build`, whose task has these states one after the other,
/// or whose questions for the state end in this error. With an HTTP status, something before it
/// answers calls.
class TaskServer final : public ServerLink {
 public:
  TaskServer(EventLoop& loop, std::vector<std::string> states, int status,
             std::shared_ptr<std::atomic<int>> cancelled)
      : loop_(&loop),
        states_(std::move(states)),
        status_(status),
        cancelled_(std::move(cancelled)) {}

  void open(Owner& owner) override { *owner_ = &owner; }
  bool drop(const RequestId& /*id*/) override { return true; }
  bool reopen() override { return false; }
  void close(std::function<void()> done) override {
    *owner_ = nullptr;
    done();
  }
  Result<void> send(OutgoingMessage message) override {
    if (message.method == "server/discover") {
      answer(message.id, R"("result":{"supportedVersions":["2026-07-28"],"capabilities":{)"
                         R"("tools":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}})");
    } else if (message.method == "tools/list") {
      answer(message.id, R"("result":{"tools":[{"name":"build","inputSchema":{"type":"object"},)"
                         R"("execution":{"taskSupport":"required"}}]})");
    } else if (message.method == "tools/call" && status_ != 0) {
      loop_->post([owner = owner_, id = message.id, status = status_] {
        if (*owner != nullptr) (*owner)->on_unanswered(id, Error(status, "no answer", {}));
      });
    } else if (message.method == "tools/call") {
      answer(message.id, R"("result":{"resultType":"task","taskId":"t1","status":"working",)"
                         R"("pollIntervalMs":20})");
    } else if (message.method == "tasks/get") {
      const std::string& state = states_[next_];
      answer(message.id, state.starts_with(R"("error")")
                             ? state
                             : R"("result":{"taskId":"t1","pollIntervalMs":20,)" + state + "}");
      if (next_ + 1 < states_.size()) ++next_;
    } else if (message.method == "tasks/cancel") {
      ++*cancelled_;
      answer(message.id, R"("result":{})");
    } else if (!message.id.empty()) {
      answer(message.id, R"("error":{"code":-32601,"message":"?"})");
    }
    return {};
  }

 private:
  void answer(const RequestId& id, const std::string& outcome) {
    loop_->post([owner = owner_, text = R"({"jsonrpc":"2.0","id":)" + id + "," + outcome + "}"] {
      if (*owner != nullptr) (*owner)->on_message(text);
    });
  }

  EventLoop* loop_;
  std::vector<std::string> states_;
  const int status_;  // 0: none
  std::shared_ptr<std::atomic<int>> cancelled_;
  std::size_t next_ = 0;
  std::shared_ptr<Owner*> owner_ = std::make_shared<Owner*>(nullptr);
};

using Connection = std::shared_ptr<detail::ClientConnection>;

/// `cancelled` counts how often the task was.
Connection connection_to(
    std::vector<std::string> states, ClientOptions options = {}, int status = 0,
    std::shared_ptr<std::atomic<int>> cancelled = std::make_shared<std::atomic<int>>()) {
  options.revision = "2026-07-28";
  return detail::ClientConnection::open(
             [&](EventLoop& loop) -> Result<std::unique_ptr<ServerLink>> {
               return std::make_unique<TaskServer>(loop, std::move(states), status,
                                                   std::move(cancelled));
             },
             std::move(options))
      .value();
}

/// An agent whose model builds, and then says what it is told of that.
Agent builder(Connection connection, AgentOptions options = {}) {
  options.servers = {{.label = "own", .client = Client(std::move(connection))}};
  return Agent(custom_model("script",
                            [](const ModelRequest& request, ModelAnswer& answer) {
                              if (request.messages.back().content == "Build") {
                                answer.call("build", {});
                              } else {
                                answer.text(request.messages.back().content + ";");
                              }
                            }),
               std::move(options));
}

constexpr const char* kBuilt =
    R"("status":"completed","statusMessage":"it is over","result":{"content":[)"
    R"({"type":"text","text":"built"}]})";

TEST(AgentTaskStatus, IsOutputWheneverItChanges) {
  const Agent agent = builder(
      connection_to({R"("status":"working")", R"("status":"working","statusMessage":"half\nof it")",
                     R"("status":"working","statusMessage":"half\nof it")",
                     R"("status":"working","statusMessage":"nearly","n":1)", kBuilt}),
      {.policy = {.when = ReactionPolicy::When::match, .pattern = "nearly"},
       .events = {.overflow = OutputOverflow::block}});
  auto run = agent.run("Build");
  std::vector<std::string> output;
  std::string said;
  while (const auto event = run.next()) {
    if (event->type == AgentEventType::tool_output_delta) output.push_back(event->text);
    if (event->type == AgentEventType::output_text_delta) said += event->text;
  }
  EXPECT_THAT(output,
              ElementsAre("[status: working, half of it]\n", "[status: working, nearly]\n"));
  EXPECT_THAT(said, HasSubstr("nearly")) << "the model reacts to it";
  EXPECT_THAT(run.result().text, HasSubstr("built"));
}

TEST(AgentTaskStatus, IsASignOfLifeAlsoIfItIsTheSame) {
  // It takes twenty times twenty milliseconds.
  std::vector<std::string> states(20, R"("status":"working")");
  states.emplace_back(kBuilt);
  const Agent agent =
      builder(connection_to(std::move(states)), {.idle_timeout = std::chrono::milliseconds(100)});
  EXPECT_EQ(agent.run("Build").result().text, "built;");
}

TEST(AgentTaskStatus, OfATaskThatItsServerHasForgottenTheEndIsUnknown) {
  const Agent forgotten = builder(connection_to(
      {R"("status":"working")", R"("error":{"code":-32602,"message":"Task not found"})"}));
  EXPECT_EQ(forgotten.run("Build").result().text,
            "It is not known whether the call was carried out: Task not found;");
  const Agent failed = builder(
      connection_to({R"("status":"working")",
                     R"("status":"failed","error":{"code":-32603,"message":"no compiler"})"}));
  EXPECT_EQ(failed.run("Build").result().text, "The tool failed: no compiler;");
}

TEST(AgentTaskStatus, IsAskedForAgainIfItsServerFailsToSayIt) {
  const Agent agent = builder(
      connection_to({R"("status":"working")", R"("error":{"code":-32603,"message":"no disk"})",
                     R"("error":{"code":500,"message":"a moment"})", kBuilt}));
  EXPECT_EQ(agent.run("Build").result().text, "built;");
}

TEST(AgentTaskStatus, ATaskThatIsGivenUpIsCancelled) {
  const auto cancelled = std::make_shared<std::atomic<int>>(0);
  {
    const Agent agent = builder(
        connection_to({R"("status":"working")", R"("error":{"code":-32001,"message":"not now"})"},
                      {}, 0, cancelled));
    EXPECT_EQ(agent.run("Build").result().text,
              "It is not known whether the call was carried out: not now;");
  }
  EXPECT_EQ(*cancelled, 1);
  {
    const Agent agent = builder(connection_to({kBuilt}, {}, 0, cancelled));
    EXPECT_EQ(agent.run("Build").result().text, "built;");
  }
  EXPECT_EQ(*cancelled, 1) << "it had ended";
}

TEST(AgentTaskStatus, OfACallThatAGatewayGivesUpTheEndIsUnknown) {
  const auto told = [](int status) {
    return builder(connection_to({kBuilt}, {}, status)).run("Build").result().text;
  };
  for (const int status : {408, 500, 502, 503, 504, 520, 522, 524}) {
    EXPECT_EQ(told(status), "It is not known whether the call was carried out: no answer;")
        << status;
  }
  for (const int status : {403, 413, 429, 521, 523}) {
    EXPECT_EQ(told(status), "The tool failed: no answer;") << status;
  }
}

TEST(AgentTaskStatus, TheTimeOfAQuestionToTheUserIsKnown) {
  std::promise<void> asked;
  std::promise<void> answered;
  const Connection connection = connection_to(
      {R"("status":"input_required","inputRequests":{"q":{"method":"elicitation/create","params":{)"
       R"("mode":"form","message":"Now?","requestedSchema":{"type":"object","properties":{}}}}})"},
      {.on_elicitation = [&](const json::object& /*params*/) -> json::object {
        asked.set_value();
        answered.get_future().wait();
        return {{"action", "decline"}};
      }});
  EXPECT_EQ(connection->asked_until(), TimePoint());
  auto run = builder(connection).run("Build");
  asked.get_future().wait();
  const TimePoint meanwhile = SteadyClock().now();
  EXPECT_GE(connection->asked_until(), meanwhile) << "it is open";
  answered.set_value();
  run.result();
  while (connection->asked_until() != connection->asked_until()) std::this_thread::yield();
  EXPECT_GE(connection->asked_until(), meanwhile);
}

}  // namespace
}  // namespace sluice
