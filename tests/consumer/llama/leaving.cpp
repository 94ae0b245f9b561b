// leaving FILE: ends while the model of the file answers and still has handles. At the end of the
// process, the thread of the model must be gone before what it uses.

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>

#include <sluice/agent.hpp>
#include <sluice/local_model.hpp>

namespace {

/// Is made before all that the library makes while it runs, so it goes after that.
struct Last {
  ~Last() {
    for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task")) {
      std::string name;
      std::getline(std::ifstream(thread.path() / "comm"), name);
      if (name == "sluice-llama") std::_Exit(1);
    }
  }
} last;

}  // namespace

int main(int, char** arguments) {
  const auto* agent = new sluice::Agent(sluice::local_model({.file = arguments[1]}));
  auto* run = new sluice::Run(agent->run("Tell me a story"));
  while (const auto event = run->next()) {
    if (event->type == sluice::AgentEventType::output_text_delta) break;
  }
  std::cout << "leaves\n";
}
