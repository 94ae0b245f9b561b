// Runs that go on, with a store or from a snapshot.

#include <atomic>
#include <functional>
#include <future>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <thread>

#include "memory_store.hpp"
#include "scripted_model.hpp"
#include "sluice/agent.hpp"
#include "sluice/server.hpp"

namespace sluice {
namespace {

using ::testing::HasSubstr;

struct Empty {};

TEST(KeptRuns, AnEmptyInputIsRefused) {
  const auto code = [](const std::function<void()>& work) {
    try {
      work();
    } catch (const Error& error) {
      return error.code;
    }
    return 0;
  };
  const ScriptedModel model({says("Hi.")});
  const Agent agent(model.model(), {.store = std::make_shared<MemoryStore>()});
  EXPECT_EQ(code([&] { (void)agent.run(""); }), -32602);
  auto run = agent.run("Hello", "talk");
  EXPECT_EQ(run.result().text, "Hi.");
  EXPECT_EQ(code([&] { (void)agent.resume("talk", ""); }), -32602);
  EXPECT_EQ(code([&] { (void)agent.resume(run.snapshot(), ""); }), -32602);
  EXPECT_TRUE(agent.resume("talk", "And now?").result().is_completed());
}

TEST(KeptRuns, WhoeverTakesARunOverHasItsTasks) {
  const auto store = std::make_shared<MemoryStore>();
  Server server("slow", "1");
  std::promise<void> opened;
  const std::shared_future<void> open = opened.get_future().share();
  server.tool("build", "Takes long",
              [open](Empty, Call& call) -> Task<std::string> {
                co_await call.in_background([open] { open.wait(); });
                co_return "built";
              },
              {.tasks = TaskSupport::optional});
  Client client = connect(server);
  const auto agent_for = [&](const ScriptedModel& model) {
    return Agent(model.model(), {.servers = {{.label = "slow", .client = client}}, .store = store});
  };
  const ScriptedModel first({calls("build")});
  auto run = agent_for(first).run("Go", "one");
  while (!store->load("one").state.contains("\"task\":")) std::this_thread::yield();
  const ScriptedModel second({says("It is built.")});
  auto other = agent_for(second).resume("one");
  while (auto event = other.next()) {
    if (event->type == AgentEventType::tool_output_started) break;
  }
  run.inject("Well?");
  const RunResult lost = run.result();
  EXPECT_EQ(lost.status, "failed");
  EXPECT_THAT(lost.reason, HasSubstr("goes on elsewhere"));
  // Whatever the first run has sent to the server has arrived.
  EXPECT_EQ(client.tools().size(), 1U);
  opened.set_value();
  EXPECT_EQ(other.result().text, "It is built.");
  EXPECT_THAT(second.asked(0).messages.back().content, HasSubstr("built"));
}

}  // namespace
}  // namespace sluice
