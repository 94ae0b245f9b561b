// expect: a handler throws an Error; it does not return one
#include <sluice/server.hpp>

void serve(sluice::Server& server) {
  server.tool("t", "", [] { return sluice::Error{1, "no"}; });
}
