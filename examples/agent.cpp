// An agent whose tool is a function of this program. The model is behind the URL of an API like
// that of OpenAI, and sees what the tool writes while it runs.
//
//   example-agent http://127.0.0.1:8080/v1 "Dive to 5 meters, and stop me if it gets dark"

#include "sluice/agent.hpp"

#include <chrono>
#include <iostream>
#include <string>

#include "sluice/server.hpp"

using namespace std::chrono_literals;

struct Depth {
  int meters;
};

sluice::Stream<std::string> dive(Depth depth, sluice::Call& call) {
  for (int at = 1; at <= depth.meters; ++at) {
    co_await call.sleep(100ms);
    co_yield sluice::text(std::to_string(at) + " m, " + (at < 4 ? "bright" : "dark") + "\n");
  }
  co_return "at the bottom";
}

int main(int argument_count, char** arguments) {
  if (argument_count != 3) {
    std::cerr << "usage: example-agent URL PROMPT\n";
    return 2;
  }
  sluice::Server own("own", "1.0");
  own.tool("dive", "Dives, and says what it sees", &dive);
  try {
    const sluice::Agent agent(
        sluice::remote_model({.url = arguments[1]}),
        {.servers = {{.label = "own", .client = sluice::connect(own)}},
         .policy = {.when = sluice::ReactionPolicy::When::match, .pattern = "dark"}});
    sluice::Run run = agent.run(arguments[2]);
    while (const auto event = run.next()) {
      if (event->type == sluice::AgentEventType::tool_output_delta) std::cout << "  | ";
      if (event->type == sluice::AgentEventType::tool_output_delta ||
          event->type == sluice::AgentEventType::output_text_delta) {
        std::cout << event->text << std::flush;
      }
    }
    const sluice::RunResult result = run.result();
    std::cout << "\n" << result.status << "\n";
    return result.is_completed() ? 0 : 1;
  } catch (const sluice::Error& error) {
    std::cerr << "example-agent: " << error.what() << "\n";
    return 1;
  }
}
