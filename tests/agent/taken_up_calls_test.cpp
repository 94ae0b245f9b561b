// Calls over Streamable HTTP before 2026-07-28 that another agent goes on with, or another client.

#include <atomic>
#include <future>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "agent_test_support.hpp"
#include "memory_store.hpp"
#include "scripted_model.hpp"
#include "sluice/agent.hpp"
#include "sluice/serve.hpp"
#include "sluice/server.hpp"

namespace sluice {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;

/// A server at which each agent has a connection of its own.
class TakenUpCallsTest : public ::testing::Test {
 protected:
  TakenUpCallsTest() {
    add("change", false);
    add("look", true);
    auto started = start(server_, http{.port = 0});
    if (!started) throw Error(started.error());
    serving_.emplace(*std::move(started));
  }
  /// Adds a tool that says two things, and a third once `go_on` is set.
  void add(const std::string& name, bool only_reads) {
    server_.tool(name, "Says three things",
                 [this](Nothing, Call& call) -> Stream<std::string> {
                   ++begun;
                   co_yield text("one ");
                   co_yield text("two ");
                   co_await call.in_background([open = open_] { open.wait(); });
                   co_yield text("three");
                   co_return "done";
                 },
                 {.annotations = {.read_only = only_reads}});
  }
  [[nodiscard]] Client client() const {
    return connect(serving_->url(), {.revision = "2025-11-25"});
  }
  [[nodiscard]] Agent agent(const ScriptedModel& model,
                            std::shared_ptr<RunStore> store = {}) const {
    return Agent(model.model(),
                 {.servers = {{.label = "server", .client = client()}}, .store = std::move(store)});
  }
  /// Takes the first two chunks.
  static void take_two(sluice::Run& run) {
    std::string said;
    while (said != "one two ") said += wait_for(run, AgentEventType::tool_output_delta).text;
  }
  /// What is left of a run that has ended with the snapshot, and its connection with it.
  [[nodiscard]] json::object left(const std::string& tool) const {
    const ScriptedModel model({calls(tool)});
    sluice::Run run = agent(model).run("Go");
    take_two(run);
    return run.snapshot();
  }
  /// The output of a run, and how its call has ended.
  static std::string output_of(sluice::Run& run) {
    std::string out;
    for (const AgentEvent& event : all_events(run)) {
      if (event.type == AgentEventType::tool_output_delta) out += event.text;
      if (event.type != AgentEventType::tool_output_done) continue;
      out.append("; ").append(event.data.at("status").as_string()).append(": " + event.text);
    }
    return out;
  }

  /// Nobody listens any more.
  void stop() { serving_.reset(); }

  std::atomic<int> begun = 0;
  std::promise<void> go_on;

 private:
  std::shared_future<void> open_ = go_on.get_future().share();
  Server server_{"server", "1"};
  std::optional<Serving> serving_;
};

TEST_F(TakenUpCallsTest, GoOnInTheirSession) {
  const json::object snapshot = left("change");
  go_on.set_value();
  const ScriptedModel model({says("It is done.")});
  sluice::Run run = agent(model).resume(snapshot);
  EXPECT_EQ(output_of(run), "three; completed: done");
  EXPECT_EQ(run.result().text, "It is done.");
  EXPECT_EQ(model.asked(0).messages.back().content, "done");
  EXPECT_EQ(begun, 1);
}

TEST_F(TakenUpCallsTest, CanBeLeftAgain) {
  const ScriptedModel none({});
  json::object snapshot = left("change");
  {
    sluice::Run run = agent(none).resume(snapshot);
    wait_for(run, AgentEventType::tool_output_started);
    snapshot = run.snapshot();
  }
  go_on.set_value();
  const ScriptedModel model({says("It is done.")});
  sluice::Run run = agent(model).resume(snapshot);
  EXPECT_EQ(output_of(run), "three; completed: done");
  EXPECT_EQ(begun, 1);
}

TEST_F(TakenUpCallsTest, HaveAnUnknownEndIfTheirSessionIsForgotten) {
  json::object snapshot = left("change");
  json::value& position = snapshot.at("calls").at(0).at("position");
  json::value parts = json::parse(position.as_string());
  parts.at("session") = "forgotten";
  position = json::serialize(parts);
  const ScriptedModel model({says("Who knows?")});
  sluice::Run run = agent(model).resume(snapshot);
  EXPECT_THAT(output_of(run), HasSubstr("; unknown: It is not known whether"));
  EXPECT_EQ(begun, 1);
  go_on.set_value();
}

TEST_F(TakenUpCallsTest, AreMadeAnewIfTheyOnlyRead) {
  json::object snapshot = left("look");
  snapshot.at("calls").at(0).at("position") = "broken";
  go_on.set_value();
  const ScriptedModel model({says("It is done.")});
  sluice::Run run = agent(model).resume(snapshot);
  EXPECT_EQ(output_of(run), "one two three; completed: done");
  EXPECT_EQ(begun, 2);
}

TEST_F(TakenUpCallsTest, ThatCannotBeMadeAnewEndWithTheReason) {
  json::object snapshot = left("look");
  snapshot.at("calls").at(0).at("position") = "broken";
  go_on.set_value();
  const ScriptedModel model({says("It is not there.")});
  const Agent later = agent(model);
  stop();
  sluice::Run run = later.resume(snapshot);
  EXPECT_THAT(output_of(run), ContainsRegex("^; failed: The tool failed: .*onnect"));
  EXPECT_EQ(run.result().text, "It is not there.");
  EXPECT_EQ(begun, 1);
}

TEST_F(TakenUpCallsTest, OfARunInAStoreGoOn) {
  const auto store = std::make_shared<MemoryStore>();
  {
    const ScriptedModel model({calls("change")});
    sluice::Run run = agent(model, store).run("Go", "one");
    take_two(run);
    while (!store->load("one").state.contains("\"position\":")) std::this_thread::yield();
  }
  go_on.set_value();
  const ScriptedModel model({says("It is done.")});
  sluice::Run run = agent(model, store).resume("one");
  EXPECT_THAT(output_of(run), HasSubstr("three; completed: done"));
  EXPECT_EQ(begun, 1);
}

TEST_F(TakenUpCallsTest, GoOnWithAnotherClient) {
  std::string resumption;
  {
    Client first = client();
    auto call = first.call("change", {}, {.resumable = true});
    for (int taken = 0; taken < 2 || resumption.empty();) {
      const auto event = call.next();
      ASSERT_TRUE(event);
      if (!event->has_no_message) ++taken;
      resumption = event->resumption;
    }
    call.leave();
    EXPECT_FALSE(call.next());
  }
  go_on.set_value();
  Client second = client();
  auto call = second.resume(resumption);
  EXPECT_EQ(call.next()->message, "three");
  EXPECT_EQ(call.result().text(), "done");
  EXPECT_EQ(begun, 1);
  try {
    second.resume("{}").result();
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.code, 502);
  }
}

}  // namespace
}  // namespace sluice
