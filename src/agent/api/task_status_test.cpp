// The status of a task as output of an agent's call, from a server that makes one of each call.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "client/api/client_connection.hpp"
#include "client/session/contract/server_link.hpp"
#include "sluice/agent.hpp"

namespace sluice {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// A server of 2026-07-28 with one tool, `build`, whose task has these states one after the other.
class TaskServer final : public ServerLink {
 public:
  TaskServer(EventLoop& loop, std::vector<std::string> states)
      : loop_(&loop), states_(std::move(states)) {}

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
    } else if (message.method == "tools/call") {
      answer(message.id, R"("result":{"resultType":"task","taskId":"t1","status":"working",)"
                         R"("pollIntervalMs":20})");
    } else if (message.method == "tasks/get") {
      answer(message.id, R"("result":{"taskId":"t1","pollIntervalMs":20,)" + states_[next_] + "}");
      if (next_ + 1 < states_.size()) ++next_;
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
  std::size_t next_ = 0;
  std::shared_ptr<Owner*> owner_ = std::make_shared<Owner*>(nullptr);
};

TEST(AgentTaskStatus, IsOutputWheneverItChanges) {
  const auto connection = detail::ClientConnection::open(
      [](EventLoop& loop) -> Result<std::unique_ptr<ServerLink>> {
        return std::make_unique<TaskServer>(
            loop,
            std::vector<std::string>{
                R"("status":"working")", R"("status":"working","statusMessage":"half\nof it")",
                R"("status":"working","statusMessage":"half\nof it")",
                R"("status":"working","statusMessage":"nearly","n":1)",
                R"("status":"completed","statusMessage":"it is over","result":{"content":[)"
                R"({"type":"text","text":"built"}]})"});
      },
      {.revision = "2026-07-28"});
  ASSERT_TRUE(connection);
  const Agent agent(custom_model("script",
                                 [](const ModelRequest& request, ModelAnswer& answer) {
                                   if (request.messages.back().content == "Build") {
                                     answer.call("build", {});
                                   } else {
                                     answer.text(request.messages.back().content + ";");
                                   }
                                 }),
                    {.servers = {{.label = "own", .client = Client(*connection)}},
                     .policy = {.when = ReactionPolicy::When::match, .pattern = "nearly"},
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

}  // namespace
}  // namespace sluice
