// expect: a Task yields nothing: a handler with co_yield returns a sluice::Stream
#include <string>

#include <sluice/server.hpp>
#include <sluice/stream.hpp>

void serve(sluice::Server& server) {
  server.tool("t", "", []() -> sluice::Task<std::string> {
    co_yield sluice::text("one");
    co_return "two";
  });
}
