// A call that becomes a task. Clients that support tasks get an id at once, and ask for the result
// later. For other clients it is an ordinary call with progress.

#include <chrono>
#include <string>

#include "sluice/server.hpp"

using namespace std::chrono_literals;

struct Job {
  int steps = 3;
};

sluice::Task<std::string> render(Job in, sluice::Call& call) {
  for (int step = 1; step <= in.steps; ++step) {
    co_await call.sleep(100ms);
    call.progress(step, in.steps, "rendering");
  }
  co_return "Rendered in " + std::to_string(in.steps) + " steps";
}

int main(int count, char** arguments) {
  sluice::Server server("renderer", "1.0");
  server.tool("render", "Renders for a while", &render, {.tasks = sluice::TaskSupport::optional});
  return sluice::serve(server, sluice::command_line{count, arguments});
}
