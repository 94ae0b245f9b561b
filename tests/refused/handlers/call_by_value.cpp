// expect: a handler takes the call as
#include <sluice/server.hpp>

void serve(sluice::Server& server) {
  server.tool("t", "", [](sluice::Call call) { return 1; });
}
