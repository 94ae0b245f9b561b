#pragma once

#include <functional>
#include <gtest/gtest.h>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "agent/run/agent_run.hpp"
#include "agent/run/kept_run_test_support.hpp"

namespace sluice {

/// Front hands conversations over to the expert, and that back.
class HandoffTest : public ::testing::Test {
 protected:
  using RunningCalls = HandoffOptions::RunningCalls;

  RunAgent front() {
    AgentOptions options = front_options;
    options.name = "front";
    options.instructions = "You are the front.";
    options.explains_updates = explains;
    return {.engine = &bench.model,
            .reaction_engine = front_reacts,
            .tools = &bench.tools,
            .options = std::move(options),
            .handoffs = [this] {
              std::vector<RunHandoff> all = others;
              all.push_back(handoff("to_expert", "expert"));
              return all;
            }};
  }
  RunAgent expert() {
    AgentOptions options = expert_options;
    options.name = "expert";
    options.instructions = "You are the expert.";
    options.explains_updates = explains;
    return {.engine = &expert_model,
            .tools = &expert_tools,
            .options = std::move(options),
            .handoffs = [this] {
              return is_final ? std::vector<RunHandoff>()
                              : std::vector{handoff("to_front", "front")};
            }};
  }
  RunHandoff handoff(std::string tool, std::string agent) {
    const bool is_front = agent == "front";
    return {.tool = std::move(tool),
            .description = "Hands over",
            .running_calls = running_calls,
            .agent = std::move(agent),
            .reach = [this, is_front]() -> std::optional<RunAgent> {
              if (is_gone) return std::nullopt;
              return is_front ? front() : expert();
            }};
  }
  void begin() {
    bench.run = std::make_shared<AgentRun>(bench.loop, bench.events, front());
    if (keeps) bench.run->keep_with(bench.keeper);
  }
  void start() {
    begin();
    bench.start();
  }
  /// The front calls its tool `stream`, which runs, and hands over.
  void hand_over_with_call() {
    bench.model.call("stream");
    bench.model.call("to_expert");
    bench.model.end();
    bench.loop.run();
  }

  /// The front is to hand conversations over to another agent, too, by the tool `to_other`.
  void add_other(std::string name, FakeTools& tools,
                 std::function<std::vector<RunHandoff>()> handoffs = {}) {
    others.push_back({.tool = "to_other",
                      .description = "Hands over",
                      .agent = name,
                      .reach = [this, name, handoffs, at = &tools]() -> std::optional<RunAgent> {
                        AgentOptions options = reacting(ReactionPolicy::When::every_chunk);
                        options.name = name;
                        options.explains_updates = false;
                        return RunAgent{.engine = &other_model,
                                        .tools = at,
                                        .options = std::move(options),
                                        .handoffs = handoffs};
                      }});
  }

  AgentOptions front_options = reacting(ReactionPolicy::When::every_chunk);
  AgentOptions expert_options = reacting(ReactionPolicy::When::every_chunk);
  Engine* front_reacts = nullptr;
  std::vector<RunHandoff> others;  // of the front
  bool explains = false;
  RunningCalls running_calls = RunningCalls::transfer;
  bool is_gone = false;
  bool is_final = false;  // the expert hands nothing back
  bool keeps = false;
  KeptBench bench;
  FakeModel expert_model;
  FakeTools expert_tools;
  FakeModel other_model;
};

}  // namespace sluice
