// What partial output is for: a tool that is stopped, one that is called again with better
// arguments, and one of which the model says something before its end.

#include <chrono>
#include <future>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "agent_test_support.hpp"
#include "scripted_model.hpp"
#include "sluice/agent.hpp"
#include "sluice/server.hpp"

namespace sluice {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using Type = AgentEventType;
using When = ReactionPolicy::When;

struct Words {
  std::string words;
};

/// What opens once a test lets it, and is told when a handler is gone.
struct Gate {
  std::promise<void> opened;
  std::shared_future<void> open = opened.get_future().share();
  std::promise<void> gone;

  struct Guard {
    Gate* gate;
    ~Guard() { gate->gone.set_value(); }
  };
};

Agent agent_of(const ScriptedModel& model, Server& server, ReactionPolicy policy) {
  return Agent(model.model(), {.servers = {{.label = "own", .client = connect(server)}},
                               .policy = std::move(policy)});
}

std::vector<std::string> statuses(const std::vector<AgentEvent>& events) {
  std::vector<std::string> out;
  for (const AgentEvent& event : events) {
    if (event.type == Type::tool_output_done) out.emplace_back(event.data.at("status").as_string());
  }
  return out;
}

TEST(PartialOutput, AMatchBreaksTheAnswerOffAndTheModelStopsTheTool) {
  Gate gate;
  Server server("own", "1");
  server.tool("build", "Builds", [&gate](Call& call) -> Stream<std::string> {
    const Gate::Guard guard{&gate};
    co_yield text("warning: odd\n");
    co_await call.in_background([open = gate.open] { open.wait(); });
    co_yield text("all is well\nerror: bad\n");
    co_await call.sleep(std::chrono::hours(1));
    co_yield text("later\n");
    co_return "built";
  });
  const ScriptedModel model({calls("build", {}, "b"),
                             [](const ModelRequest&, ModelAnswer& answer) {
                               answer.text("Only a warning, ");
                               std::promise<void> stopped;
                               const std::stop_callback told(answer.stop(),
                                                             [&] { stopped.set_value(); });
                               stopped.get_future().wait();
                             },
                             calls("tool_cancel", {{"call_id", "b"}}), says("I stopped it.")});
  const Agent agent = agent_of(
      model, server, {.when = When::match, .pattern = "warning:|error:", .interrupts = true});
  auto run = agent.run("Build");
  EXPECT_EQ(wait_for(run, Type::output_text_delta).text, "Only a warning, ");
  gate.opened.set_value();
  wait_for(run, Type::response_incomplete);
  const std::vector<AgentEvent> events = all_events(run);
  gate.gone.get_future().wait();  // while the agent is there: its end stops the tool, too
  EXPECT_THAT(text_of(events, Type::tool_output_delta), Not(HasSubstr("later")));
  EXPECT_EQ(statuses(events), std::vector<std::string>{"cancelled"});
  EXPECT_EQ(text_of(events, Type::output_text_delta), "I stopped it.");
  EXPECT_THAT(model.asked(1).messages.back().content, HasSubstr("warning: odd"));
  EXPECT_THAT(model.asked(2).messages.back().content, HasSubstr("error: bad"));
  EXPECT_THAT(model.asked(3).messages.back().content, HasSubstr("The call was cancelled"));
  EXPECT_TRUE(run.result().is_completed());
}

TEST(PartialOutput, ASearchIsRefinedFromItsFirstHits) {
  Gate gate;
  Server server("own", "1");
  server.tool("find", "Finds", [&gate](Words in, Call& call) -> Stream<std::string> {
    if (in.words == "good") co_return "the right one";
    const Gate::Guard guard{&gate};
    co_yield text("one\n");
    co_yield text("two\n");
    co_await call.in_background([open = gate.open] { open.wait(); });
    co_yield text("three\n");
    co_await call.sleep(std::chrono::hours(1));
    co_return "everything";
  });
  const ScriptedModel model({calls("find", {{"words", "bad"}}, "f"),
                             [](const ModelRequest&, ModelAnswer& answer) {
                               answer.call("tool_cancel", {{"call_id", "f"}});
                               answer.call("find", {{"words", "good"}}, "g");
                             },
                             says("Found.")});
  const Agent agent = agent_of(model, server, {.when = When::every_n, .every = 3});
  auto run = agent.run("Find");
  std::string seen;
  while (seen != "one\ntwo\n") seen += wait_for(run, Type::tool_output_delta).text;
  gate.opened.set_value();
  const std::vector<AgentEvent> events = all_events(run);
  gate.gone.get_future().wait();
  EXPECT_EQ(statuses(events), (std::vector<std::string>{"cancelled", "completed"}));
  EXPECT_THAT(model.asked(1).messages.back().content, HasSubstr(R"("seq":"0..2")"));
  std::string shown;
  for (const ChatMessage& message : model.asked(2).messages) shown += message.content + "\n";
  EXPECT_THAT(shown, HasSubstr("the right one"));
  EXPECT_THAT(shown, HasSubstr("The call was cancelled"));
  EXPECT_EQ(model.answers(), 3U);
  EXPECT_EQ(run.result().text, "Found.");
}

TEST(PartialOutput, AnAlarmIsSaidWhileTheToolRuns) {
  Gate first;
  Gate second;
  Server server("own", "1");
  server.tool("measure", "Measures", [&](Call& call) -> Stream<std::string> {
    co_yield text("20\n");
    co_await call.in_background([open = first.open] { open.wait(); });
    co_yield text("31\n");
    co_await call.in_background([open = second.open] { open.wait(); });
    co_return "20, 31";
  });
  const ScriptedModel model(
      {calls("measure", {}, "m"), says("[[pass]]"), says("Alarm!"), says("31 was the highest.")});
  const Agent agent = agent_of(model, server, {.when = When::every_chunk});
  auto run = agent.run("Watch it");
  wait_for(run, Type::reaction_done);
  first.opened.set_value();
  EXPECT_EQ(wait_for(run, Type::output_text_delta).text, "Alarm!") << "nothing before it";
  wait_for(run, Type::reaction_done);
  second.opened.set_value();
  const std::vector<AgentEvent> events = all_events(run);
  EXPECT_EQ(statuses(events), std::vector<std::string>{"completed"}) << "it was not over before";
  EXPECT_THAT(model.asked(2).messages.back().content, HasSubstr("31"));
  EXPECT_EQ(run.result().text, "31 was the highest.");
}

}  // namespace
}  // namespace sluice
