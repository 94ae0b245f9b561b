#include "sluice/agent.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <future>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "agent_test_support.hpp"
#include "memory_store.hpp"
#include "scripted_model.hpp"
#include "sluice/serve.hpp"
#include "sluice/server.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Type = AgentEventType;
using When = ReactionPolicy::When;

TEST_F(AgentApiTest, AModelCallsAToolWhoseOutputTheUserSees) {
  const ScriptedModel model({calls("count", {{"to", 3}}), says("It is 3.")});
  auto run = agent(model, {.name = "counter", .instructions = "Count."}).run("Count to 3");
  const std::vector<AgentEvent> events = all_events(run);
  EXPECT_EQ(events.front().type, Type::run_started);
  EXPECT_EQ(events.back().type, Type::run_done);
  for (std::size_t i = 0; i < events.size(); ++i) EXPECT_EQ(events[i].sequence_number, i);
  EXPECT_EQ(text_of(events, Type::tool_output_delta), "1 2 3 ");
  EXPECT_EQ(text_of(events, Type::output_text_delta), "It is 3.");
  const RunResult result = run.result();
  EXPECT_TRUE(result.is_completed());
  EXPECT_EQ(result.text, "It is 3.");
  EXPECT_EQ(result.usage.at("turns"), 2);
  EXPECT_TRUE(run.is_over());
  EXPECT_FALSE(run.next());
  EXPECT_EQ(run.step(std::chrono::steady_clock::now()).state, RunStep::State::done);

  const ModelRequest first = model.asked(0);
  EXPECT_THAT(first.messages.front().content, HasSubstr("Count."));
  EXPECT_EQ(first.messages.back().content, "Count to 3");
  EXPECT_EQ(first.tools.size(), 6U) << "with tool_status and tool_cancel";
  const ModelRequest second = model.asked(1);
  EXPECT_EQ(second.messages.back().role, "tool");
  EXPECT_THAT(second.messages.back().content, HasSubstr("counted to 3"));
  const json::object shown = run.to_object(events.front());
  EXPECT_EQ(shown.at("run_id"), json::value(run.id()));
  EXPECT_EQ(shown.at("agent"), "counter");
}

TEST_F(AgentApiTest, AModelReactsWhileTheToolRuns) {
  const ScriptedModel model({calls("two_steps"), says("Half of it is there."), says("Done.")});
  auto run = agent(model, {.policy = {.when = When::every_chunk}}).run("Go");
  EXPECT_EQ(wait_for(run, Type::reaction_done).type, Type::reaction_done);
  EXPECT_THAT(model.asked(1).messages.back().content, HasSubstr("half"));
  gates.opened.set_value();
  const RunResult result = run.result();
  EXPECT_TRUE(result.is_completed()) << result.reason;
  EXPECT_EQ(result.text, model.answers() == 3 ? "Done." : "There is nothing more to say.");
}

TEST_F(AgentApiTest, RunsOfOneAgentShareItsServers) {
  std::vector<ScriptedModel::Answer> answers(64, says("Done."));
  const ScriptedModel model(answers);
  const Agent one = agent(model);
  std::vector<sluice::Run> runs;
  for (int i = 0; i < 32; ++i) runs.push_back(one.run("Go"));
  for (auto& run : runs) EXPECT_EQ(run.result().text, "Done.");
  auto again = one.run("Go");
  EXPECT_EQ(again.result().text, "Done.");
  EXPECT_NE(again.id(), runs.front().id());
}

TEST_F(AgentApiTest, LogMessagesOfACallAreItsOutput) {
  const ScriptedModel model({calls("log"), says("Done.")});
  auto run = agent(model).run("Go");
  EXPECT_EQ(text_of(all_events(run), Type::tool_output_delta), "this");
}

TEST_F(AgentApiTest, LogMessagesMayBeOfAnotherCallOverTheSameConnection) {
  // Over a socket and in this revision they do not say which call they belong to.
  std::string folder = ::testing::TempDir() + "sluice-agent-XXXXXX";
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  const std::string socket = folder + "/socket";
  auto serving = start(tools(gates), unix_socket{socket});
  ASSERT_TRUE(serving) << serving.error().message;
  Client client = connect("unix:" + socket, {.revision = "2025-06-18"});
  const auto agent_of = [&](const ScriptedModel& model) {
    return Agent(model.model(), {.servers = {{.label = "tools", .client = client}}});
  };
  const ScriptedModel waits({calls("hang")});
  auto run = agent_of(waits).run("Go");
  while (gates.begun == 0) std::this_thread::yield();
  EXPECT_EQ(client.call("log").result().text(), "logged");
  const ScriptedModel logs({calls("log"), says("Done.")});
  auto other = agent_of(logs).run("Go");
  EXPECT_EQ(text_of(all_events(other), Type::tool_output_delta), "");
  run.cancel();
  EXPECT_EQ(text_of(all_events(run), Type::tool_output_delta), "");
  gates.ended.get_future().wait();

  const ScriptedModel alone({calls("log"), says("Done.")});
  auto last = agent_of(alone).run("Go");
  EXPECT_THAT(text_of(all_events(last), Type::tool_output_delta), HasSubstr("this"));
  serving->stop();
  std::filesystem::remove_all(folder);
}

TEST_F(AgentApiTest, InputsComeFromAnyThread) {
  const ScriptedModel model({calls("two_steps"), says("Heard."), says("Done.")});
  auto run = agent(model).run("Go");
  wait_for(run, Type::tool_output_delta);
  std::string id;
  std::thread([&] { id = run.inject("Listen!"); }).join();
  EXPECT_EQ(wait_for(run, Type::input_delivered).data.at("input_id"), json::value(id));
  EXPECT_EQ(model.asked(1).messages.back().content, "Listen!");
  gates.opened.set_value();
  EXPECT_TRUE(run.result().is_completed());
  try {
    run.inject("Too late");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code, -32602);
  }
}

TEST_F(AgentApiTest, AnInputHasTextsAndImages) {
  const std::string gif = "GIF89a, a small one";
  const ScriptedModel model({calls("two_steps"), says("A cat, and a dog.")});
  auto run = agent(model, {.max_images = 2}).run({"What is this?", image_from_bytes(gif), "Look!"});
  const ChatMessage first = model.asked(0).messages.back();
  EXPECT_EQ(first.content, "What is this?\n\n[image: image/gif]\n\nLook!");
  ASSERT_EQ(first.images.size(), 1U);
  EXPECT_EQ(first.images[0].mime_type, "image/gif");
  EXPECT_EQ(*first.images[0].base64, *image_from_bytes(gif).base64);
  run.inject({image_from_bytes(gif), "And this?"}, RunInput::When::silent);
  gates.opened.set_value();
  EXPECT_TRUE(run.result().is_completed());
  const ChatMessage second = model.asked(1).messages.back();
  EXPECT_EQ(second.content, "[image: image/gif]\n\nAnd this?");
  EXPECT_EQ(second.images.size(), 1U);

  const auto code = [](const auto& work) {
    try {
      work();
    } catch (const Error& error) {
      return error.code;
    }
    return 0;
  };
  EXPECT_EQ(code([] { (void)image_from_bytes("<svg/>"); }), -32602);
  EXPECT_EQ(code([] { (void)AgentInput({"a", ChatImage()}); }), -32602);
  const ScriptedModel other({calls("two_steps")});
  const Agent blind = agent(other);
  EXPECT_EQ(code([&] { (void)blind.run({"Look!", image_from_bytes(gif)}); }), -32602);
  auto sees_nothing = blind.run("Go");
  EXPECT_EQ(code([&] { sees_nothing.inject({image_from_bytes(gif)}); }), -32602);
  EXPECT_EQ(code([&] { sees_nothing.inject({""}); }), -32602);
}

TEST_F(AgentApiTest, InputsComeFromManyThreadsAtOnce) {
  constexpr int kThreads = 8;
  constexpr int kInputs = 20;
  const ScriptedModel model({calls("two_steps"), says("Heard."), says("Done.")});
  auto run = agent(model, {.max_inputs = kThreads * kInputs}).run("Go");
  wait_for(run, Type::tool_output_delta);
  std::mutex mutex;
  std::set<std::string> ids;
  {
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < kThreads; ++thread) {
      threads.emplace_back([&] {
        for (int i = 0; i < kInputs; ++i) {
          // Whatever waits is delivered before the answer after the tool's end.
          std::string id = run.inject("Listen!", RunInput::When::silent);
          const std::lock_guard lock(mutex);
          ids.insert(std::move(id));
        }
      });
    }
  }
  EXPECT_EQ(ids.size(), std::size_t{kThreads} * kInputs) << "each has an id of its own";
  gates.opened.set_value();
  for (const AgentEvent& event : all_events(run)) {
    if (event.type != Type::input_delivered) continue;
    ids.erase(std::string(event.data.at("input_id").as_string()));
  }
  EXPECT_THAT(ids, ::testing::IsEmpty()) << "each is delivered";
}

/// A call of an agent has no timeout but the run's.
TEST_F(AgentApiTest, ACallMayBeSilentForLongerThanItsClientWaits) {
  Server server = tools(gates);
  server.tool("sleep", "Says nothing", [](Nothing, Call& call) -> Task<std::string> {
    co_await call.sleep(1h);
    co_return "no";
  });
  Client client = connect(server, {.idle_timeout = 50ms});
  const ScriptedModel model({calls("two_steps"), says("Done.")});
  std::optional<Agent> patient;
  while (!patient) {
    try {
      patient.emplace(model.model(), AgentOptions{.servers = {{"tools", client}}});
    } catch (const Error& error) {
      ASSERT_EQ(error.code, kTimedOut) << "a slow machine needs longer for the list of tools";
    }
  }
  auto run = patient->run("Go");
  wait_for(run, Type::tool_output_delta);
  for (int i = 0; i < 3; ++i) {
    try {
      client.call("sleep").result();
      FAIL();
    } catch (const Error& error) {
      EXPECT_EQ(error.code, kTimedOut);
    }
  }
  gates.opened.set_value();
  EXPECT_TRUE(run.result().is_completed());
  EXPECT_THAT(model.asked(1).messages.back().content, HasSubstr("both"));
}

TEST_F(AgentApiTest, CallsWaitForApproval) {
  for (const bool agrees : {true, false}) {
    const ScriptedModel model({calls("log"), says("Done.")});
    auto run = agent(model, {.approval = unless_read_only}).run("Go");
    const AgentEvent asked = wait_for(run, Type::approval_required);
    EXPECT_THROW(run.approve("another"), Error);
    agrees ? run.approve(asked.call_id) : run.reject(asked.call_id, "not today");
    EXPECT_TRUE(run.result().is_completed());
    EXPECT_THAT(model.asked(1).messages.back().content, HasSubstr(agrees ? "logged" : "not today"));
  }
  const ScriptedModel model({calls("count", {{"to", 1}}), says("Done.")});
  auto run = agent(model, {.approval = unless_read_only}).run("Go");
  EXPECT_TRUE(run.result().is_completed()) << "it only reads";
}

TEST_F(AgentApiTest, CancellingReachesTheTool) {
  const ScriptedModel model({calls("hang"), says("Then not.")});
  auto run = agent(model).run("Go");
  const AgentEvent begun = wait_for(run, Type::tool_output_started);
  while (gates.begun == 0) std::this_thread::yield();
  run.cancel_call(begun.call_id);
  gates.ended.get_future().wait();
  EXPECT_EQ(run.result().text, "Then not.");
}

TEST_F(AgentApiTest, DroppingARunCancelsItsCalls) {
  const ScriptedModel model({calls("hang")});
  {
    auto run = agent(model).run("Go");
    while (gates.begun == 0) std::this_thread::yield();
  }
  gates.ended.get_future().wait();
}

TEST_F(AgentApiTest, ACancelledTurnLeavesTheRunItsInputs) {
  const ScriptedModel model({calls("hang"), says("Something else.")});
  auto run = agent(model).run("Go");
  while (gates.begun == 0) std::this_thread::yield();
  run.inject("Something else", RunInput::When::when_idle);
  run.cancel_turn();
  EXPECT_EQ(run.result().text, "Something else.");
}

TEST_F(AgentApiTest, AFunctionThatThrowsRefuses) {
  const ScriptedModel model({calls("count", {{"to", 1}}), says("Done.")});
  AgentOptions options;
  options.guardrails.arguments = [](const AgentTool&,
                                    const json::object&) -> std::expected<json::object, Error> {
    throw std::runtime_error("secret");
  };
  auto run = agent(model, std::move(options)).run("Go");
  EXPECT_TRUE(run.result().is_completed());
  EXPECT_EQ(model.asked(1).messages.back().content, "The call was not made: a check has failed");

  const ScriptedModel other({calls("count", {{"to", 1}}), says("Done.")});
  AgentOptions rules;
  rules.approval = [](const AgentTool&, const json::object&) -> std::string {
    throw Error{1, "the rule says so"};
  };
  auto asks = agent(other, std::move(rules)).run("Go");
  EXPECT_EQ(wait_for(asks, Type::approval_required).data.at("reason"), "the rule says so");
}

TEST_F(AgentApiTest, ARuleOfPoliciesThatMakesNoSenseLeavesThatOfTheTool) {
  for (const bool throws : {true, false}) {
    Gates own;
    const ScriptedModel model({calls("two_steps"), says("Half."), says("Done.")});
    const Agent one(model.model(),
                    {.servers = {{.label = "tools", .client = connect(tools(own))}},
                     .policy = {.when = When::every_chunk},
                     .policy_rule = [throws](const AgentTool&, const json::object&) {
                       if (throws) throw std::runtime_error("secret");
                       return std::optional(ReactionPolicy{.when = When::match, .pattern = "("});
                     }});
    auto run = one.run("Go");
    const AgentEvent begun = wait_for(run, Type::tool_output_started);
    wait_for(run, Type::reaction_done);
    run.set_policy(begun.call_id, {.when = When::pass_through});
    EXPECT_THROW(run.set_policy(begun.call_id, {.when = When::every_n, .every = 0}), Error);
    EXPECT_THROW(run.set_policy("another", {}), Error);
    own.opened.set_value();
    const std::vector<AgentEvent> rest = all_events(run);
    EXPECT_EQ(std::ranges::count(rest, Type::reaction_started, &AgentEvent::type), 0);
  }
}

TEST_F(AgentApiTest, WhatMakesNoSenseIsRefused) {
  const ScriptedModel model({});
  const auto why = [&](AgentOptions options) {
    try {
      agent(model, std::move(options));
    } catch (const Error& error) {
      EXPECT_EQ(error.code, -32602);
      return error.message;
    }
    return std::string();
  };
  EXPECT_THAT(why({.policy = {.when = When::every_n, .every = 0}}), HasSubstr("every=0"));
  EXPECT_THAT(why({.max_running = 0}), HasSubstr("max_running"));
  EXPECT_THAT(why({.max_running_of_server = 0}), HasSubstr("max_running"));
  EXPECT_THAT(why({.policies = {{"nothing", {}}}}), HasSubstr("no tool nothing"));
  EXPECT_THAT(why({.graces = {{"nothing", 1s}}}), HasSubstr("no tool nothing"));
  EXPECT_THAT(why({.policies = {{"count", {.when = When::match, .pattern = "("}}}}),
              HasSubstr("policy of count"));
  EXPECT_THAT(why({.servers = {{.label = "tools", .client = connect(tools(gates))}}}),
              HasSubstr("the label \"tools\""));
  EXPECT_THAT(why({.budget = {.cost = 1}}), HasSubstr("there is no price"));
  EXPECT_THAT(why({.price = TokenPrice(), .reaction_price = TokenPrice()}),
              HasSubstr("there is no reaction_model"));
  for (const double amount : {-1.0, std::numeric_limits<double>::infinity(), std::nan("")}) {
    EXPECT_THAT(why({.budget = {.cost = amount}, .price = TokenPrice()}), HasSubstr("budget.cost"));
    EXPECT_THAT(why({.price = TokenPrice{.prompt = amount}}), HasSubstr("price.prompt"));
    EXPECT_THAT(why({.price = TokenPrice{.cached = amount}}), HasSubstr("price.cached"));
    EXPECT_THAT(why({.price = TokenPrice{.completion = amount}}), HasSubstr("price.completion"));
    EXPECT_THAT(
        why({.reaction_model = model.model(), .reaction_price = TokenPrice{.prompt = amount}}),
        HasSubstr("reaction_price.prompt"));
  }
}

TEST_F(AgentApiTest, ARunEndsWhenItHasCostAsMuchAsItMay) {
  const auto counts = [](int to) {
    return [to](const ModelRequest&, ModelAnswer& answer) {
      answer.call("count", {{"to", to}});
      answer.usage(100, 10);
    };
  };
  const ScriptedModel model({counts(1), counts(2), says("That is all.")});
  auto run =
      agent(model, {.budget = {.cost = 0.01}, .price = TokenPrice{.prompt = 50, .completion = 50}})
          .run("Count");
  const RunResult result = run.result();
  EXPECT_EQ(result.status, "incomplete");
  EXPECT_EQ(result.reason, "budget: cost");
  EXPECT_EQ(result.text, "That is all.");
  EXPECT_TRUE(model.asked(2).tools.empty());
  // The last answer came without usage: its 12 bytes are estimated as 3 tokens.
  EXPECT_DOUBLE_EQ(result.usage.at("cost").to_number<double>(), 0.011 + 3 * 50e-6);
}

TEST_F(AgentApiTest, AServerThatIsGoneIsNamed) {
  const ScriptedModel model({});
  std::stop_source stop;
  Client client = connect(tools(gates), {.stop = stop.get_token()});
  stop.request_stop();
  try {
    const Agent gone(model.model(), {.servers = {{.label = "gone", .client = client}}});
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.message, HasSubstr("gone: "));
  }
}

TEST_F(AgentApiTest, AConversationGoesOnWithAnotherAgent) {
  const auto store = std::make_shared<MemoryStore>();
  const ScriptedModel first({calls("count", {{"to", 2}}), says("It is 2.")});
  auto run = agent(first, {.store = store}).run("Count to 2", "talk");
  EXPECT_EQ(run.id(), "talk");
  EXPECT_EQ(run.result().text, "It is 2.");
  const json::object snapshot = run.snapshot();

  const ScriptedModel second({says("Three.")});
  const Agent other = agent(second, {.store = store});
  auto more = other.resume("talk", "And then?");
  EXPECT_EQ(more.result().text, "Three.");
  EXPECT_EQ(second.asked(0).messages.size(), 6U);
  EXPECT_EQ(second.asked(0).messages.back().content, "And then?");
  // The one before does not know what was kept since.
  EXPECT_EQ(other.resume("talk").result().text, "Three.");
  auto branch = other.resume(snapshot, "And another way?");
  EXPECT_NE(branch.id(), "talk");
  EXPECT_EQ(branch.result().text, "There is nothing more to say.");
  EXPECT_EQ(second.asked(1).messages.size(), 6U);
}

TEST_F(AgentApiTest, ARunThatGoesOnElsewhereFailsHere) {
  const auto store = std::make_shared<MemoryStore>();
  const ScriptedModel model({calls("two_steps"), calls("hang"), says("Done.")});
  auto run = agent(model, {.store = store}).run("Go", "one");
  wait_for(run, Type::tool_output_delta);
  // Somebody else goes on with it, as after a failure of this process.
  const ScriptedModel others({says("Taken over.")});
  EXPECT_EQ(agent(others, {.store = store}).resume("one").result().text, "Taken over.");
  gates.opened.set_value();
  const RunResult result = run.result();
  EXPECT_EQ(result.status, "failed");
  EXPECT_THAT(result.reason, HasSubstr("goes on elsewhere"));
  EXPECT_EQ(gates.begun, 1) << "the other call was not made";
}

TEST_F(AgentApiTest, WhatIsNotKeptCannotGoOn) {
  const ScriptedModel model({});
  const auto code = [](const std::function<void()>& work) {
    try {
      work();
    } catch (const Error& error) {
      return error.code;
    }
    return 0;
  };
  EXPECT_EQ(code([&] { (void)agent(model).resume("none"); }), 404);
  const Agent keeps = agent(model, {.store = std::make_shared<MemoryStore>()});
  EXPECT_EQ(code([&] { (void)keeps.resume("none"); }), 404);
  EXPECT_EQ(code([&] { (void)keeps.resume(json::object()); }), -32602);
}

TEST_F(AgentApiTest, ACallThatIsATaskIsTakenUpAgain) {
  const auto store = std::make_shared<MemoryStore>();
  Server server("slow", "1");
  std::promise<void> opened;
  const std::shared_future<void> open = opened.get_future().share();
  std::atomic<int> begun = 0;
  server.tool("build", "Takes long",
              [&](Nothing, Call& call) -> Task<std::string> {
                ++begun;
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
  const auto has_task = [&] {
    return store->load("one").state.find("\"task\":") != std::string::npos;
  };
  while (!has_task()) std::this_thread::yield();
  // As a process that was killed would leave it.
  const std::string id = "two";
  store->save(id, store->load("one").state, 0);
  const ScriptedModel second({says("It is built.")});
  auto again = agent_for(second).resume(id);
  wait_for(again, Type::tool_output_started);
  opened.set_value();
  EXPECT_EQ(again.result().text, "It is built.");
  EXPECT_THAT(second.asked(0).messages.back().content, HasSubstr("built"));
  EXPECT_EQ(begun, 1);
}

}  // namespace
}  // namespace sluice
