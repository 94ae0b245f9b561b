// expect: a resource takes its URI as a std::string, or nothing
#include <string>

#include <sluice/server.hpp>

struct In {
  int a;
};

void serve(sluice::Server& server) {
  server.resource("note://1", "one", [](In in) { return std::to_string(in.a); });
}
