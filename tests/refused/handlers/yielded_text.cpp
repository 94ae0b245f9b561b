// expect: a Stream yields sluice::text
#include <sluice/server.hpp>

void serve(sluice::Server& server) {
  server.tool("t", "", []() -> sluice::Stream<std::string> {
    co_yield "x";
    co_return "y";
  });
}
