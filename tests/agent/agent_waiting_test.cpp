// Who waits for the events of a run, and how.

#include <atomic>
#include <chrono>
#include <future>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>

#include "agent_test_support.hpp"
#include "memory_store.hpp"
#include "scripted_model.hpp"
#include "sluice/agent.hpp"
#include "sluice/server.hpp"

namespace sluice {
namespace {

using namespace std::chrono_literals;
using Type = AgentEventType;

class AgentWaitingTest : public AgentApiTest {
 protected:
  /// A run whose call is under way, and whose events were taken.
  std::optional<sluice::Run> hanging(const ScriptedModel& model) {
    std::optional<sluice::Run> run(agent(model).run("Go"));
    wait_for(*run, Type::tool_output_started);
    while (gates.begun == 0) std::this_thread::yield();
    while (run->poll()) {
    }
    return run;
  }
};

TEST_F(AgentWaitingTest, AStepTakesOneEventAtMost) {
  const ScriptedModel model({calls("two_steps"), says("Done.")});
  auto run = agent(model).run("Go");
  wait_for(run, Type::tool_output_delta);
  while (run.poll()) {
  }
  EXPECT_EQ(run.step(std::chrono::steady_clock::now()).state, RunStep::State::idle);
  EXPECT_EQ(run.step(std::chrono::steady_clock::now() + 1ms).state, RunStep::State::idle);
  gates.opened.set_value();
  const RunStep step = run.step(std::chrono::steady_clock::now() + 1h);
  ASSERT_EQ(step.state, RunStep::State::event);
  EXPECT_EQ(step.event->text, "whole");
  EXPECT_TRUE(run.result().is_completed());
}

TEST_F(AgentWaitingTest, AProgramWithALoopIsTold) {
  const ScriptedModel model({calls("two_steps"), says("Done.")});
  auto run = agent(model).run("Go");
  wait_for(run, Type::tool_output_delta);
  while (run.poll()) {
  }
  std::promise<void> told;
  run.on_next([&] { told.set_value(); });
  EXPECT_THROW(run.next(), std::logic_error);
  gates.opened.set_value();
  told.get_future().wait();
  EXPECT_EQ(run.poll()->text, "whole");
  EXPECT_TRUE(run.result().is_completed());
  bool is_told = false;
  run.on_next([&] { is_told = true; });
  EXPECT_TRUE(is_told) << "there are no further events";
}

TEST_F(AgentWaitingTest, WhoIsToldMayThrow) {
  const ScriptedModel model({calls("hang")});
  auto run = hanging(model);
  std::promise<void> told;
  run->on_next([&] {
    told.set_value();
    throw std::runtime_error("secret");
  });
  run->inject("Hello");
  told.get_future().wait();
  run->cancel();
  EXPECT_EQ(run->result().status, "cancelled");
}

TEST_F(AgentWaitingTest, WhoIsToldMayCancelTheRun) {
  const ScriptedModel model({calls("hang")});
  auto run = hanging(model);
  run->on_next([&] { run->cancel(); });
  run->inject("Hello");
  gates.ended.get_future().wait();
  EXPECT_EQ(run->result().status, "cancelled");
}

TEST_F(AgentWaitingTest, WhoIsToldMayDestroyTheRun) {
  const ScriptedModel model({calls("hang")});
  auto run = hanging(model);
  std::promise<void> gone;
  run->on_next([&] {
    run.reset();
    gone.set_value();
  });
  run->inject("Hello");
  gone.get_future().wait();
  gates.ended.get_future().wait();
}

/// Waits for a test whenever it is to save.
struct SlowStore final : MemoryStore {
  ~SlowStore() override { gone.set_value(); }
  std::uint64_t save(const std::string& run_id, const std::string& state,
                     std::uint64_t version) override {
    open.wait();
    return MemoryStore::save(run_id, state, version);
  }
  std::shared_future<void> open;
  std::promise<void> gone;
};

TEST_F(AgentWaitingTest, AnAgentThatEndsThereHoldsNobodyUp) {
  std::promise<void> opened;
  auto store = std::make_shared<SlowStore>();
  store->open = opened.get_future().share();
  std::future<void> store_gone = store->gone.get_future();
  const ScriptedModel model({calls("hang")});
  std::optional<sluice::Run> run(agent(model, {.store = std::move(store)}).run("Go"));
  wait_for(*run, Type::response_completed);  // the call waits for the store
  std::promise<void> gone;
  run->on_next([&] {
    run.reset();
    gone.set_value();
  });
  run->inject("Hello");
  EXPECT_EQ(gone.get_future().wait_for(5s), std::future_status::ready);
  opened.set_value();
  store_gone.wait();
}

TEST_F(AgentWaitingTest, NobodyIsToldOnceTheRunIsGone) {
  for (int i = 0; i < 100; ++i) {
    const ScriptedModel model({says("Hello.")});
    std::atomic<bool> is_gone = false;
    std::atomic<bool> was_late = false;
    {
      auto run = agent(model).run("Go");
      while (run.poll()) {
      }
      run.on_next([&] { was_late = is_gone.load(); });
    }
    is_gone = true;
    agent(model).run("Go").result();  // whatever the loop had to do before is done
    EXPECT_FALSE(was_late);
  }
}

TEST_F(AgentWaitingTest, OnlyOneMayWait) {
  const ScriptedModel model({calls("hang")});
  auto run = agent(model).run("Go");
  wait_for(run, Type::tool_output_started);
  // Whoever comes second is refused, and tries again.
  std::thread waits([&run] {
    for (;;) {
      try {
        EXPECT_EQ(run.result().status, "cancelled");
        return;
      } catch (const std::logic_error&) {
        std::this_thread::yield();
      }
    }
  });
  bool is_refused = false;
  while (!is_refused) {
    try {
      (void)run.step(std::chrono::steady_clock::now() + 1ms);
    } catch (const std::logic_error&) {
      is_refused = true;
    }
  }
  run.cancel();
  waits.join();
}

TEST_F(AgentWaitingTest, AHandlerOfAServerRunsAnAgent) {
  const ScriptedModel model({calls("count", {{"to", 2}}), says("It is 2.")});
  const Agent inner = agent(model);
  Server server("outer", "1");
  server.tool("ask", "Asks an agent", [inner](Nothing, Call& call) -> Task<std::string> {
    auto run = inner.run("Count to 2");
    std::string seen;
    while (auto event = co_await run.next(call)) {
      if (event->type == Type::tool_output_delta) seen += event->text;
    }
    co_return seen + "| " + run.result().text;
  });
  EXPECT_EQ(connect(server).call("ask").result().text(), "1 2 | It is 2.");
}

TEST_F(AgentWaitingTest, AHandlerThatIsRefusedDisturbsNobodyWhoWaits) {
  const ScriptedModel model({calls("two_steps"), says("Done.")});
  auto run = agent(model).run("Go");
  wait_for(run, Type::tool_output_delta);
  while (run.poll()) {
  }
  std::promise<void> told;
  run.on_next([&] { told.set_value(); });
  Server server("outer", "1");
  server.tool("wait", "Waits for an event", [&](Nothing, Call& call) -> Task<std::string> {
    try {
      (void)co_await run.next(call);
    } catch (const std::logic_error&) {
      co_return "refused";
    }
    co_return "waited";
  });
  EXPECT_EQ(connect(server).call("wait").result().text(), "refused");
  gates.opened.set_value();
  told.get_future().wait();
  EXPECT_EQ(run.poll()->text, "whole");
  EXPECT_TRUE(run.result().is_completed());
}

TEST_F(AgentWaitingTest, AHandlerThatIsGoneWaitsForNoEvent) {
  const ScriptedModel model({calls("hang"), says("Done.")});
  const Agent inner = agent(model);
  std::promise<void> began;
  Server server("outer", "1");
  server.tool("ask", "Asks an agent", [&](Nothing, Call& call) -> Task<std::string> {
    auto run = inner.run("Go");
    while (auto event = co_await run.next(call)) {
      if (event->type == Type::tool_output_started) began.set_value();
    }
    co_return "it has ended";
  });
  Client client = connect(server);
  {
    auto call = client.call("ask");
    began.get_future().wait();
  }
  gates.ended.get_future().wait();
}

}  // namespace
}  // namespace sluice
