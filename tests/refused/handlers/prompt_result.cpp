// expect: a prompt returns text, a vector of PromptMessages, or a PromptResult
#include <sluice/server.hpp>

void serve(sluice::Server& server) {
  server.prompt("p", "", [] { return 1; });
}
