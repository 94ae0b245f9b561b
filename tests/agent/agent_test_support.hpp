#pragma once

#include <atomic>
#include <chrono>
#include <future>
#include <gtest/gtest.h>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "scripted_model.hpp"
#include "sluice/agent.hpp"
#include "sluice/server.hpp"

namespace sluice {

struct Count {
  int to;
};
struct Nothing {};

/// What the tools of a test wait for and tell.
struct Gates {
  std::promise<void> opened;
  std::shared_future<void> open = opened.get_future().share();
  std::atomic<int> begun = 0;
  std::promise<void> ended;
};

inline Server tools(Gates& gates) {
  Server server("tools", "1");
  const ToolOptions reads{.annotations = {.read_only = true}};
  server.tool(
      "count", "Counts aloud",
      [](Count in, Call& /*call*/) -> Stream<std::string> {
        for (int i = 1; i <= in.to; ++i) co_yield text(std::to_string(i) + " ");
        co_return "counted to " + std::to_string(in.to);
      },
      reads);
  // Says one thing, and another once the test lets it.
  server.tool("two_steps", "Does it in two steps",
              [&gates](Nothing, Call& call) -> Stream<std::string> {
                ++gates.begun;
                co_yield text("half");
                co_await call.in_background([open = gates.open] { open.wait(); });
                co_yield text("whole");
                co_return "both";
              });
  server.tool("hang", "Never ends", [&gates](Nothing, Call& call) -> Task<std::string> {
    struct Told {
      Gates* gates;
      ~Told() { gates->ended.set_value(); }
    };
    const Told told{&gates};
    ++gates.begun;
    co_await call.sleep(std::chrono::hours(1));
    co_return "no";
  });
  server.tool("log", "Writes log messages", [](Nothing, Call& call) {
    call.log(LoggingLevel::debug, "not this");
    call.log(LoggingLevel::info, "this");
    return std::string("logged");
  });
  return server;
}

class AgentApiTest : public ::testing::Test {
 protected:
  Agent agent(const ScriptedModel& model, AgentOptions options = {}) {
    options.servers.push_back({.label = "tools", .client = connect(tools(gates))});
    return Agent(model.model(), std::move(options));
  }

  Gates gates;
};

inline std::vector<AgentEvent> all_events(sluice::Run& run) {
  std::vector<AgentEvent> events;
  while (auto event = run.next()) events.push_back(*std::move(event));
  return events;
}

inline std::string text_of(const std::vector<AgentEvent>& events, AgentEventType type) {
  std::string out;
  for (const AgentEvent& event : events) {
    if (event.type == type) out += event.text;
  }
  return out;
}

/// Takes events up to one of this type.
inline AgentEvent wait_for(sluice::Run& run, AgentEventType type) {
  while (auto event = run.next()) {
    if (event->type == type) return *std::move(event);
  }
  throw std::runtime_error("the run has ended before");
}

}  // namespace sluice
