#include "sluice/stream_tool.hpp"

#include <algorithm>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "agent_test_support.hpp"
#include "engine/methods/engine_methods.hpp"
#include "engine/synthetic_engine.hpp"
#include "scripted_model.hpp"
#include "server/api/server_state.hpp"
#include "sluice/serve.hpp"

namespace sluice {
namespace {

using Type = AgentEventType;

/// A server with a model, and one with a tool that asks it.
class StreamToolTest : public ::testing::Test {
 protected:
  StreamToolTest() {
    upstream.state()->change({}, [this](ServerDefinition& definition) {
      add_engine_methods(definition, engine);
      return true;
    });
  }
  /// An agent whose model calls the tool once. `params`: of each stream.
  Agent agent(const ScriptedModel& model, Client from, json::object params) {
    Server own("own", "1");
    add_stream_tool(own, "ask", "Asks another model", std::move(from),
                    {.params = std::move(params), .tool = {.annotations = {.read_only = true}}});
    return Agent(model.model(), {.servers = {{.label = "own", .client = connect(own)}},
                                 .policy = {.when = ReactionPolicy::When::every_chunk},
                                 .approval = unless_read_only});
  }

  SyntheticEngine engine;
  Server upstream{"upstream", "1"};
};

TEST_F(StreamToolTest, TheTextOfAStreamIsOutputOfTheCall) {
  auto serving = start(upstream, http{.port = 0});
  ASSERT_TRUE(serving);
  const std::string url = "http://127.0.0.1:" + std::to_string(serving->port()) + "/mcp";
  for (const Client& from : {connect(url), connect(upstream)}) {
    const ScriptedModel model({calls("ask", {{"prompt", "Count"}})});
    auto run = agent(model, from, {{"count", 500}, {"interval_us", 200}}).run("Go");
    const std::vector<AgentEvent> events = all_events(run);
    const std::string output = text_of(events, Type::tool_output_delta);
    EXPECT_EQ(output, text_of(events, Type::tool_output_done));
    EXPECT_EQ(std::ranges::count(output, '\n'), 500) << "each chunk once";
    EXPECT_TRUE(output.contains(R"("n":499,)"));
    EXPECT_GT(std::ranges::count(events, Type::tool_output_delta, &AgentEvent::type), 1);
    EXPECT_GT(std::ranges::count(events, Type::reaction_started, &AgentEvent::type), 0);
  }
  EXPECT_EQ(engine.stats().cancelled, 0U);
}

TEST_F(StreamToolTest, ACallThatIsCancelledAbortsItsStream) {
  const ScriptedModel model({calls("ask", {{"prompt", "Count"}})});
  auto run =
      agent(model, connect(upstream), {{"count", 1'000'000}, {"interval_us", 1000}}).run("Go");
  const AgentEvent said = wait_for(run, Type::tool_output_delta);
  EXPECT_EQ(engine.stats().slots_busy, 1U);
  run.cancel_call(said.call_id);
  while (engine.stats().cancelled == 0) std::this_thread::yield();
  EXPECT_TRUE(run.result().is_completed());
}

TEST_F(StreamToolTest, WhyAStreamFailsIsTheResult) {
  const ScriptedModel model({calls("ask", {{"prompt", "Count"}})});
  auto run = agent(model, connect(upstream), {{"count", -1}}).run("Go");
  EXPECT_THAT(text_of(all_events(run), Type::tool_output_done), ::testing::HasSubstr("count"));
}

}  // namespace
}  // namespace sluice
