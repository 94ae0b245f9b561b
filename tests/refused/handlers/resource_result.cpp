// expect: a resource returns text, ResourceContents, a vector of them, or a ResourceResult
#include <sluice/server.hpp>

void serve(sluice::Server& server) {
  server.resource("note://1", "one", [] {});
}
