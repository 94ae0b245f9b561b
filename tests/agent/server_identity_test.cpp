// At which server a run that goes on makes the calls that were kept.

#include <atomic>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "agent_test_support.hpp"
#include "scripted_model.hpp"
#include "sluice/agent.hpp"
#include "sluice/server.hpp"

namespace sluice {
namespace {

using ::testing::HasSubstr;

/// Two servers that have a tool of the same name.
class ServerIdentityTest : public ::testing::Test {
 protected:
  struct Place {
    std::string label;
    std::string identity;
    std::atomic<int>* calls;
  };

  static Agent agent(const ScriptedModel& model, const std::vector<Place>& places) {
    AgentOptions options{.approval = unless_read_only};
    for (const Place& place : places) {
      Server server(place.label, "1");
      server.tool("go", "Goes", [calls = place.calls](Nothing, Call& /*call*/) {
        ++*calls;
        return std::string("gone");
      });
      options.servers.push_back(
          {.label = place.label, .client = connect(server), .identity = place.identity});
    }
    return Agent(model.model(), std::move(options));
  }
  /// What is kept of a run whose call of `go` at this server waits for approval.
  json::object waiting(const Place& place) {
    const ScriptedModel model({calls("go")});
    sluice::Run run = agent(model, {place}).run("Go");
    wait_for(run, AgentEventType::approval_required);
    return run.snapshot();
  }

  /// What the model of a run that goes on is told of its call, which nobody must be asked about.
  static std::string told(const json::object& kept, const std::vector<Place>& places) {
    const ScriptedModel model({says("Well.")});
    sluice::Run run = agent(model, places).resume(kept);
    while (const auto event = run.next()) {
      if (event->type != AgentEventType::approval_required) continue;
      ADD_FAILURE() << "it is to be made";
      run.reject(event->call_id);
    }
    return model.asked(0).messages.back().content;
  }

  std::atomic<int> here = 0;
  std::atomic<int> there = 0;
};

TEST_F(ServerIdentityTest, ACallIsMadeAtItsServerWhereverThatStands) {
  const json::object kept = waiting({"here", "", &here});
  const ScriptedModel model({says("It is done.")});
  sluice::Run run = agent(model, {{"there", "", &there}, {"here", "", &here}}).resume(kept);
  const AgentEvent asked = wait_for(run, AgentEventType::approval_required);
  EXPECT_EQ(asked.data.at("server"), "here");
  run.approve(asked.call_id);
  EXPECT_EQ(run.result().text, "It is done.");
  EXPECT_EQ(here, 1);
  EXPECT_EQ(there, 0);
}

TEST_F(ServerIdentityTest, ACallWhoseServerIsNotThereIsNotMade) {
  const json::object kept = waiting({"server", "a", &here});
  for (const std::vector<Place>& places :
       {std::vector<Place>{{"server", "b", &there}},
        std::vector<Place>{{"server", "a", &there}, {"another", "a", &there}}}) {
    EXPECT_THAT(told(kept, places), HasSubstr("The call was not made: its server is not there"));
    EXPECT_EQ(there, 0);
  }
}

TEST_F(ServerIdentityTest, OfACallThatHadBegunElsewhereTheEndIsUnknown) {
  json::object kept = waiting({"here", "", &here});
  json::object& call = kept.at("calls").at(0).get_object();
  call["state"] = "begun";
  for (const std::string_view where : {"task", "position", "neither"}) {
    json::object begun = kept;
    begun.at("calls").at(0).get_object()[where] = "secret";
    EXPECT_THAT(told(begun, {{"there", "", &there}}),
                HasSubstr("It is not known whether the call was carried out: its server is not"))
        << where;
    EXPECT_EQ(there, 0);
  }
}

}  // namespace
}  // namespace sluice
