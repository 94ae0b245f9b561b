// A server with every feature: sluice-everything [--listen HOST:PORT]... [--unix PATH] [--stdio]

#include "everything.hpp"

int main(int count, char** arguments) {
  sluice::Server server("sluice-everything", "1.0",
                        {.instructions = "A server for tests of clients"});
  everything::add_tools(server);
  everything::add_questions(server);
  everything::add_tasks(server);
  everything::add_resources(server);
  everything::add_prompts(server);
  return sluice::serve(server, sluice::command_line{count, arguments, {.port = 3000}});
}
