// expect: a handler is a function, or an object with one operator\(\) that is no template
#include <sluice/server.hpp>

struct In {
  int a;
};
struct Adder {
  int add(In in);
};

void serve(sluice::Server& server) {
  server.tool("t", "", &Adder::add);
}
