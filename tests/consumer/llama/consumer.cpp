// consumer FILE PROMPT: asks the model of the file.

#include <iostream>

#include <sluice/agent.hpp>
#include <sluice/local_model.hpp>

int main(int, char** arguments) {
  try {
    const sluice::Agent agent(sluice::local_model({.file = arguments[1]}));
    const sluice::RunResult result = agent.run(arguments[2]).result();
    std::cout << result.text << "\n";
    return result.is_completed() ? 0 : 1;
  } catch (const sluice::Error& error) {
    std::cerr << error.code << " " << error.message << "\n";
    return 2;
  }
}
