// The tests' server, as a program on its standard input and output.

#include "served.hpp"

int main() {
  return sluice::serve(sluice::client_tests::make_server(), sluice::stdio{});
}
