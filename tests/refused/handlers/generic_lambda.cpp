// expect: a handler is a function, or an object with one operator\(\) that is no template
#include <sluice/server.hpp>

void serve(sluice::Server& server) {
  server.tool("t", "", [](auto in) { return in; });
}
