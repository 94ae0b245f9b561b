// expect: the describe\(\) of a struct describes members of another struct
#include <sluice/server.hpp>

struct Other {
  int a;
};
struct In {
  int a;
  static auto describe() { return sluice::describe(sluice::field<&Other::a>("a number")); }
};

void serve(sluice::Server& server) {
  server.tool("t", "", [](In in) { return in.a; });
}
