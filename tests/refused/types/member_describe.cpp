// expect: the describe\(\) of a struct must be .static.
#include <sluice/server.hpp>

struct In {
  int a;
  auto describe() { return sluice::describe(sluice::field<&In::a>("a number")); }
};

void serve(sluice::Server& server) {
  server.tool("t", "", [](In in) { return in.a; });
}
