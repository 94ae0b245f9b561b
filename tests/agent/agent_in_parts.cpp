// An agent whose run begins in one process and goes on in another, for the end-to-end tests:
//
//   sluice_agent_in_parts begin URL TOOL ARGUMENTS FILE CHUNKS killed|ended
//   sluice_agent_in_parts go-on URL FILE
//
// It prints the events as lines of JSON. `begin` writes a snapshot once it has so many chunks.

#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "scripted_model.hpp"
#include "sluice/agent.hpp"

namespace {

sluice::Agent agent(const sluice::ScriptedModel& model, std::string_view url) {
  sluice::AgentOptions options;
  options.servers = {
      {.label = "server", .client = sluice::connect(url, {.revision = "2025-11-25"})}};
  return sluice::Agent(model.model(), std::move(options));
}

void print(const sluice::Run& run, const sluice::AgentEvent& event) {
  std::cout << run.to_object(event) << std::endl;
}

int begin(std::span<char*> words) {
  const sluice::ScriptedModel model(
      {sluice::calls(words[1], sluice::json::parse(words[2]).get_object())});
  sluice::Run run = agent(model, words[0]).run("Go");
  const std::uint64_t chunks = std::stoull(words[4]);
  while (const auto event = run.next()) {
    print(run, *event);
    if (event->type != sluice::AgentEventType::tool_output_delta || event->last + 1 < chunks) {
      continue;
    }
    std::ofstream(words[3]) << run.snapshot() << std::flush;
    if (std::string_view(words[5]) == "killed") std::raise(SIGKILL);
    return EXIT_SUCCESS;
  }
  return EXIT_FAILURE;
}

int go_on(std::span<char*> words) {
  std::ifstream file(words[1]);
  const std::string snapshot(std::istreambuf_iterator<char>(file), {});
  const sluice::ScriptedModel model({sluice::says("It is done.")});
  sluice::Run run = agent(model, words[0]).resume(sluice::json::parse(snapshot).get_object());
  while (const auto event = run.next()) print(run, *event);
  return EXIT_SUCCESS;
}

}  // namespace

int main(int count, char** arguments) {
  const std::span<char*> words(arguments, static_cast<std::size_t>(count));
  if (count == 8 && std::string_view(words[1]) == "begin") return begin(words.subspan(2));
  if (count == 4 && std::string_view(words[1]) == "go-on") return go_on(words.subspan(2));
  return 2;
}
