// expect: a handler has one of the shapes Out\(\), Out\(In\), Out\(Call&\) and Out\(In, Call&\)
#include <sluice/server.hpp>

struct In {
  int a;
};

void serve(sluice::Server& server) {
  server.tool("t", "", [](In one, In other) { return one.a + other.a; });
}
