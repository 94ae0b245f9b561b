#pragma once

#include "sluice/server.hpp"

namespace sluice::client_tests {

struct Numbers {
  int a = 0;
  int b = 0;
};
struct Total {
  int sum = 0;
};

/// The server that the tests of the client talk to.
Server make_server();

}  // namespace sluice::client_tests
