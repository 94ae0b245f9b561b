// expect: a handler takes its input by value or by const reference
#include <sluice/server.hpp>

struct In {
  int a;
};

void serve(sluice::Server& server) {
  server.tool("t", "", [](In& in) { return in.a; });
}
