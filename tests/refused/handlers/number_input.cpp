// expect: a tool takes a struct, or json::object
#include <sluice/server.hpp>

void serve(sluice::Server& server) {
  server.tool("t", "", [](int a) { return a; });
}
