// Agents that hand conversations over to each other.

#include <algorithm>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "agent_test_support.hpp"
#include "memory_store.hpp"
#include "scripted_model.hpp"
#include "sluice/agent.hpp"

namespace sluice {
namespace {

using ::testing::HasSubstr;
using Type = AgentEventType;
using When = ReactionPolicy::When;

class HandoffApiTest : public AgentApiTest {
 protected:
  Agent named(const ScriptedModel& model, std::string name,
              std::shared_ptr<RunStore> store = nullptr) {
    return agent(model,
                 {.name = std::move(name), .instructions = "Be kind.", .store = std::move(store)});
  }
};

TEST_F(HandoffApiTest, AnAgentHandsAConversationOverAndGetsItBack) {
  const ScriptedModel of_front({calls("transfer_to_back_office"), says("Good bye.")});
  const ScriptedModel of_back({calls("count", {{"to", 2}}), calls("go_back")});
  const Agent front = named(of_front, "front");
  const Agent back = named(of_back, "back office");
  front.add_handoff(back);
  back.add_handoff(front, {.tool = "go_back"});
  auto run = front.run("Count to 2");
  const std::vector<AgentEvent> events = all_events(run);
  EXPECT_EQ(text_of(events, Type::tool_output_delta), "1 2 ");
  EXPECT_EQ(run.result().text, "Good bye.");
  EXPECT_EQ(std::ranges::count(events, Type::run_handoff, &AgentEvent::type), 2);
  EXPECT_THAT(of_back.asked(0).messages.back().content, HasSubstr("handed over to back office"));
}

TEST_F(HandoffApiTest, WhoIsGoneIsSaidSo) {
  const ScriptedModel of_front({calls("transfer_to_back"), says("It is closed.")});
  const Agent front = named(of_front, "front");
  {
    const ScriptedModel of_back({});
    front.add_handoff(named(of_back, "back"));
  }
  auto run = front.run("Hello");
  EXPECT_EQ(run.result().text, "It is closed.");
  EXPECT_THAT(of_front.asked(1).messages.back().content, HasSubstr("back is not there"));
}

TEST_F(HandoffApiTest, ARunKeepsTheAgentThatHasIt) {
  const ScriptedModel of_front({calls("transfer_to_back")});
  const ScriptedModel of_back({calls("two_steps"), says("Done.")});
  const Agent front = named(of_front, "front");
  std::optional<Agent> back = named(of_back, "back");
  front.add_handoff(*back);
  auto run = front.run("Go");
  wait_for(run, Type::tool_output_started);
  back.reset();
  gates.opened.set_value();
  EXPECT_EQ(run.result().text, "Done.");
}

TEST_F(HandoffApiTest, AKeptRunGoesOnWithTheAgentThatHasIt) {
  const auto store = std::make_shared<MemoryStore>();
  const ScriptedModel of_front({calls("transfer_to_back")});
  const ScriptedModel of_back({says("Here I am."), says("Still here.")});
  const Agent front = named(of_front, "front", store);
  const Agent back = named(of_back, "back");
  front.add_handoff(back);
  EXPECT_EQ(front.run("Hello", "talk").result().text, "Here I am.");
  auto again = front.resume("talk", "And now?");
  EXPECT_EQ(again.result().text, "Still here.");
}

TEST_F(HandoffApiTest, ANameOfAToolIsRefused) {
  const ScriptedModel model({});
  const Agent front = named(model, "front");
  const Agent back = named(model, "back");
  EXPECT_THROW(front.add_handoff(back, {.tool = "count"}), Error);
  EXPECT_THROW(front.add_handoff(back, {.tool = "tool_cancel"}), Error);
  front.add_handoff(back);
  EXPECT_THROW(front.add_handoff(back), Error);
}

TEST_F(HandoffApiTest, AnotherAgentOfTheSameNameIsRefused) {
  const ScriptedModel model({});
  const Agent front = named(model, "front");
  EXPECT_THROW(front.add_handoff(named(model, "front")), Error);
  front.add_handoff(front);
  const Agent back = named(model, "back");
  const Agent other = named(model, "back");
  front.add_handoff(back);
  front.add_handoff(back, {.tool = "urgent"});
  EXPECT_THROW(front.add_handoff(other, {.tool = "other"}), Error);
}

TEST_F(HandoffApiTest, ACallThatRunsIsNotMadeAgainAtItsServer) {
  const Client client = connect(tools(gates));
  const ScriptedModel of_front({[](const ModelRequest& /*request*/, ModelAnswer& answer) {
    answer.call("two_steps", {}, {});
    answer.call("transfer_to_back", {}, {});
  }});
  const ScriptedModel of_back({calls("two_steps"), says("It runs."), says("Done.")});
  const Agent front(of_front.model(), {.name = "front", .servers = {{"one", client}}});
  const Agent back(of_back.model(), {.name = "back", .servers = {{"same", client}}});
  front.add_handoff(back);
  auto run = front.run("Go");
  EXPECT_THAT(of_back.asked(1).messages.back().content, HasSubstr("same call is running"));
  gates.opened.set_value();
  EXPECT_EQ(run.result().status, "completed");
  EXPECT_EQ(gates.begun, 1);
}

TEST_F(HandoffApiTest, AnotherModelReacts) {
  const ScriptedModel model({calls("two_steps"), says("Done.")});
  const ScriptedModel cheap({says("Half of it is there.")});
  AgentOptions options{.policy = {.when = When::every_chunk}};
  options.reaction_model = cheap.model();
  auto run = agent(model, std::move(options)).run("Go");
  wait_for(run, Type::reaction_done);
  EXPECT_THAT(cheap.asked(0).messages.back().content, HasSubstr("half"));
  gates.opened.set_value();
  EXPECT_EQ(run.result().status, "completed");
}

}  // namespace
}  // namespace sluice
