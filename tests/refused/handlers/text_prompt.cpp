// expect: a prompt or a resource template takes a struct of texts, sluice::Variables, or nothing
#include <string>

#include "sluice/server.hpp"

void refuse(sluice::Server& server) {
  server.prompt("greet", "Greets", [](std::string name) { return "Hello " + name; });
}
