// expect: a blocking\(\) handler returns its result; a coroutine uses call.in_background\(\)
#include <sluice/server.hpp>

void serve(sluice::Server& server) {
  server.tool("t", "", sluice::blocking([]() -> sluice::Task<int> { co_return 1; }));
}
