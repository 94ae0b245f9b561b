// expect: a handler is a function, or an object with one operator\(\) that is no template
#include <functional>

#include <sluice/server.hpp>

int add(int a, int b);

void serve(sluice::Server& server) {
  server.tool("t", "", std::bind_front(add, 1));
}
